/** The PostgreSQL store, shared by many processes. */

import { getRandomValues } from "node:crypto"
import { BoundedCache } from "../../core/bounded-cache.ts"
import { hasCode, invalid } from "../../core/errors.ts"
import { createIds } from "../../core/ids.ts"
import { withoutPassword } from "../../core/location.ts"
import type { Instruments } from "../../observe/instruments.ts"
import type { Store } from "../store.ts"
import { Acceptor } from "./acceptor.ts"
import { Database } from "./connection.ts"
import type { Context } from "./context.ts"
import { toOpeningError } from "./errors.ts"
import { LaneSessions } from "./lane-sessions.ts"
import { locate } from "./locate.ts"
import { keyFromStore } from "./meta.ts"
import { migrate } from "./migrate.ts"
import { OPERATIONS, type OutsideOperations } from "./operations.ts"
import { Partitions } from "./partitions.ts"
import { PgSchema } from "./pg-schema.ts"
import { Pipelines } from "./pipeline.ts"

export interface PostgresStoreOptions {
  readonly url: string
  /** By default the schema in the URL, then the one that has the tables, then `posthorn`. */
  readonly schema?: string | null
  /** Application name of the connections. */
  readonly name: string
  readonly instruments?: Instruments
}

export interface PostgresStore extends Store {
  readonly database: Database
  readonly partitions: Partitions
  /** The key in the database, for use without a given key. */
  encryptionKey(): Promise<string>
  /** For tests: the connections end as in a crash. */
  kill(): Promise<void>
}

/** Bound of the applications that are known to get messages from this process. */
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
    ...(Object.fromEntries(bound) as Omit<Store, OutsideOperations>),
    acceptMany: (...args) => acceptor.accept(...args),
    openLane: (...args) => sessions.open(...args),
    changedOutside: async () => false,
    database,
    partitions,
    encryptionKey: () => keyFromStore(context),
    close: async () => {
      await acceptor.close()
      await database.close()
    },
    kill: () => database.kill(),
  }
}

async function openDatabase(options: PostgresStoreOptions): Promise<Database> {
  const { url, name, schema = null, instruments } = options
  refuseNoUrl(url)
  const where = withoutPassword(url)
  let database: Database | null = null
  try {
    database = new Database(url, name, new PgSchema((await locate(url, schema)).schema), instruments)
    await migrate(database)
    return database
  } catch (error) {
    await database?.close()
    const isPlain = hasCode(error, "store_unavailable")
    throw toOpeningError(isPlain ? (error.cause ?? error) : error, where)
  }
}

/** The error does not contain the URL: it may have a password. */
function refuseNoUrl(url: string): void {
  if (!/^postgres(ql)?:\/\//.test(url) || !URL.canParse(url))
    throw invalid(
      "store",
      "must be a URL like postgres://user:password@host:5432/database; in the password, write characters such as # / ? @ as %23 %2F %3F %40",
    )
}
