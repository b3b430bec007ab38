/** The PostgreSQL store: the contract, shared by as many processes as there are. */

import { getRandomValues } from "node:crypto"
import { BoundedCache } from "../../core/bounded-cache.ts"
import { invalid, PosthornError } from "../../core/errors.ts"
import { createIds } from "../../core/ids.ts"
import { withoutPassword } from "../../core/location.ts"
import type { Store } from "../store.ts"
import { Acceptor } from "./acceptor.ts"
import * as adding from "./add.ts"
import * as amending from "./amend.ts"
import * as applications from "./applications.ts"
import * as attempts from "./attempts.ts"
import { Database } from "./connection.ts"
import type { Context } from "./context.ts"
import * as counts from "./counts.ts"
import * as deliveries from "./deliveries.ts"
import * as endpoints from "./endpoints.ts"
import * as entries from "./entries.ts"
import { toOpeningError } from "./errors.ts"
import { LaneSessions } from "./lane-sessions.ts"
import { listLanes } from "./lane-status.ts"
import * as lanes from "./lanes.ts"
import { locate } from "./locate.ts"
import * as maintenance from "./maintenance.ts"
import * as messages from "./messages.ts"
import { migrate } from "./migrate.ts"
import * as operations from "./operations.ts"
import { Partitions } from "./partitions.ts"
import { PgSchema } from "./pg-schema.ts"
import { Pipelines } from "./pipeline.ts"
import * as policies from "./policies.ts"
import * as tasks from "./tasks.ts"
import { listWorkers } from "./workers.ts"

export interface PostgresStoreOptions {
  readonly url: string
  /** Of the tables; unless told, the one that the URL names, then the one that has them, then `posthorn`. */
  readonly schema?: string | null
  /** What the server shows as the name of our connections. */
  readonly name: string
}

export interface PostgresStore extends Store {
  readonly database: Database
  readonly partitions: Partitions
  /** The key that is kept in the database, for when none is given. */
  encryptionKey(): Promise<string>
  /** For tests: the connections end as in a crash. */
  kill(): Promise<void>
}

const OPERATIONS = {
  createApplication: applications.createApplication,
  getApplication: applications.getApplication,
  listApplications: applications.listApplications,
  updateApplication: applications.updateApplication,
  deleteApplication: applications.deleteApplication,
  createEndpoint: endpoints.createEndpoint,
  getEndpoint: endpoints.getEndpoint,
  getEndpoints: endpoints.getEndpoints,
  getGates: endpoints.getGates,
  listEndpoints: endpoints.listEndpoints,
  updateEndpoint: endpoints.updateEndpoint,
  deleteEndpoint: endpoints.deleteEndpoint,
  putPolicy: policies.putPolicy,
  getPolicy: policies.getPolicy,
  listPolicies: policies.listPolicies,
  deletePolicy: policies.deletePolicy,
  saveEntry: entries.saveEntry,
  getEntry: entries.getEntry,
  listEntries: entries.listEntries,
  deleteEntry: entries.deleteEntry,
  scanLanes: lanes.scanLanes,
  changedOutside: async () => false,
  getDelivery: deliveries.getDelivery,
  listDeliveries: deliveries.listDeliveries,
  countDeliveries: counts.countDeliveries,
  countByStatus: counts.countByStatus,
  groupDead: counts.groupDead,
  listLanes,
  listWorkers,
  listAttempts: attempts.listAttempts,
  countAttempts: attempts.countAttempts,
  getAttempt: attempts.getAttempt,
  expungeAttempt: attempts.expungeAttempt,
  getMessage: messages.getMessage,
  getMessages: messages.getMessages,
  listMessages: messages.listMessages,
  countMessages: messages.countMessages,
  usage: messages.usage,
  expungeMessage: messages.expungeMessage,
  add: adding.add,
  amend: amending.amend,
  createTask: tasks.createTask,
  getTask: tasks.getTask,
  listTasks: tasks.listTasks,
  listRunningTasks: tasks.listRunningTasks,
  cancelTask: tasks.cancelTask,
  readTask: tasks.readTask,
  readTaskMessages: tasks.readTaskMessages,
  stepTask: tasks.stepTask,
  purge: maintenance.purge,
  bindEncryptionKey: operations.bindEncryptionKey,
  check: operations.check,
}

/** The contract with the context before each method's arguments. */
type WithContext<S> = {
  [name in keyof S]: S[name] extends (...args: infer A) => infer R
    ? (context: Context, ...args: A) => R
    : never
}
/** What many calls do together, in one statement. */
type Batched = "accept" | "openLane"
OPERATIONS satisfies WithContext<Omit<Store, Batched | "close">>

/** Applications for which this process is known to accept messages. */
const MOST_ACCEPTING = 100_000

export async function openPostgresStore(options: PostgresStoreOptions): Promise<PostgresStore> {
  const database = await openDatabase(options)
  const partitions = new Partitions(database)
  const accepting = new BoundedCache<string, true>(MOST_ACCEPTING)
  const ids = createIds((into) => getRandomValues(into))
  const context: Context = { database, partitions, ids, accepting }
  const sessions = new LaneSessions(new Pipelines(context))
  const acceptor = new Acceptor(context, sessions, accepting)
  const bound = Object.entries(OPERATIONS).map(([name, operation]) => [
    name,
    (operation as (context: Context, ...args: unknown[]) => unknown).bind(null, context),
  ])
  return {
    ...(Object.fromEntries(bound) as Omit<Store, Batched | "close">),
    accept: (...args) => acceptor.accept(...args),
    openLane: (...args) => sessions.open(...args),
    database,
    partitions,
    encryptionKey: () => operations.keyFromStore(context),
    close: async () => {
      await acceptor.close()
      await database.close()
    },
    kill: () => database.kill(),
  }
}

async function openDatabase({ url, name, schema = null }: PostgresStoreOptions): Promise<Database> {
  refuseNoUrl(url)
  const where = withoutPassword(url)
  let database: Database | null = null
  try {
    database = new Database(url, name, new PgSchema((await locate(url, schema)).schema))
    await migrate(database)
    return database
  } catch (error) {
    await database?.close()
    const isPlain = error instanceof PosthornError && error.code === "store_unavailable"
    throw toOpeningError(isPlain ? (error.cause ?? error) : error, where)
  }
}

/** Not the URL itself: it may hold a password. */
function refuseNoUrl(url: string): void {
  if (!/^postgres(ql)?:\/\//.test(url) || !URL.canParse(url))
    throw invalid(
      "store",
      "must be a URL like postgres://user:password@host:5432/database; in the password, write characters such as # / ? @ as %23 %2F %3F %40",
    )
}
