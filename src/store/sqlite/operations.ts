/** Every operation of the store's contract, as it runs on SQLite's thread. */
import { statfsSync } from "node:fs"
import { dirname } from "node:path"
import { PosthornError } from "../../core/errors.ts"
import type { Store, StoreHealth } from "../store.ts"
import * as accepting from "./accept.ts"
import * as adding from "./add.ts"
import * as amending from "./amend.ts"
import * as applications from "./applications.ts"
import * as attempts from "./attempts.ts"
import type { Context } from "./context.ts"
import * as counts from "./counts.ts"
import * as deliveries from "./deliveries.ts"
import * as endpoints from "./endpoints.ts"
import * as entries from "./entries.ts"
import * as laneStatus from "./lane-status.ts"
import * as lanes from "./lanes.ts"
import * as maintenance from "./maintenance.ts"
import * as messages from "./messages.ts"
import * as policies from "./policies.ts"
import * as settling from "./settle.ts"
import * as tasks from "./tasks.ts"
import { listWorkers } from "./workers.ts"

/** Reads of what is named: they run on a second thread, so that they hold up no send. */
const LOOKUPS = {
  getApplication: applications.getApplication,
  getEndpoint: endpoints.getEndpoint,
  getEndpoints: endpoints.getEndpoints,
  getGates: endpoints.getGates,
  getPolicy: policies.getPolicy,
  getEntry: entries.getEntry,
  scanLanes: lanes.scanLanes,
  getDelivery: deliveries.getDelivery,
  getAttempt: attempts.getAttempt,
  getMessage: messages.getMessage,
  getMessages: messages.getMessages,
  getTask: tasks.getTask,
  listRunningTasks: tasks.listRunningTasks,
}

/** Reads that may have to go through many rows: on a third, so that a long list holds up nothing but other lists. */
export const LISTS = {
  listApplications: applications.listApplications,
  listEndpoints: endpoints.listEndpoints,
  listPolicies: policies.listPolicies,
  listEntries: entries.listEntries,
  listDeliveries: deliveries.listDeliveries,
  countDeliveries: counts.countDeliveries,
  countByStatus: counts.countByStatus,
  groupDead: counts.groupDead,
  usage: messages.usage,
  listLanes: laneStatus.listLanes,
  listWorkers,
  listAttempts: attempts.listAttempts,
  countAttempts: attempts.countAttempts,
  listMessages: messages.listMessages,
  countMessages: messages.countMessages,
  listTasks: tasks.listTasks,
  readTask: tasks.readTask,
  readTaskMessages: tasks.readTaskMessages,
}

export const READS = { ...LOOKUPS, ...LISTS }

export const WRITES = {
  createApplication: applications.createApplication,
  updateApplication: applications.updateApplication,
  deleteApplication: applications.deleteApplication,
  createEndpoint: endpoints.createEndpoint,
  updateEndpoint: endpoints.updateEndpoint,
  deleteEndpoint: endpoints.deleteEndpoint,
  putPolicy: policies.putPolicy,
  deletePolicy: policies.deletePolicy,
  saveEntry: entries.saveEntry,
  deleteEntry: entries.deleteEntry,
  accept: accepting.accept,
  changedOutside: (context: Context) => context.takeChangedByOthers(),
  openTokens,
  bindEncryptionKey,
  fetch: lanes.fetch,
  settle: settling.settle,
  giveBack: settling.giveBack,
  closeLane: lanes.closeLane,
  expungeAttempt: attempts.expungeAttempt,
  expungeMessage: messages.expungeMessage,
  add: adding.add,
  amend: amending.amend,
  createTask: tasks.createTask,
  cancelTask: tasks.cancelTask,
  stepTask: tasks.stepTask,
  purge: maintenance.purge,
  check,
}

export type OperationName = keyof typeof READS | keyof typeof WRITES

/** Methods that the store makes of operations of the thread. */
export type OutsideThread = "openLane" | "close"

/** The contract, seen from the thread: the same methods, synchronous, with the context before their arguments. */
type OnThread<S> = {
  [name in keyof S]: S[name] extends (...args: infer A) => Promise<infer R>
    ? (context: Context, ...args: A) => R
    : never
}
export const OPERATIONS = { ...READS, ...WRITES } satisfies Omit<OnThread<Store>, OutsideThread | "accept">

/** A run of numbers for this opening of the file, above those of every earlier one. */
function openTokens({ connection }: Context): number {
  connection
    .sql(
      "INSERT INTO meta VALUES ('epoch', '1') ON CONFLICT DO UPDATE SET value = CAST(value AS INTEGER) + 1",
    )
    .run()
  const row = connection.sql("SELECT CAST(value AS INTEGER) AS epoch FROM meta WHERE key = 'epoch'").get()
  return (row!.epoch as number) * 2 ** 32
}

/** The first key is remembered by its fingerprint; another one could not read the secrets. */
function bindEncryptionKey({ connection }: Context, fingerprint: string): void {
  connection.sql("INSERT INTO meta VALUES ('encryption_key', ?) ON CONFLICT DO NOTHING").run(fingerprint)
  const bound = connection.sql("SELECT value FROM meta WHERE key = 'encryption_key'").get()!.value
  if (bound !== fingerprint) {
    const text = `the secrets in this store were encrypted with key ${bound}, not with this one (${fingerprint}): give the key it was created with`
    throw new PosthornError("wrong_encryption_key", text)
  }
}

/** Room for one large message and what is written with it: below this a send may be refused. */
const LEAST_FREE_BYTES = 2 * 1024 * 1024

/** A write that needs the lock and the disk as every other, and a look at how much room is left. */
function check({ connection }: Context): StoreHealth {
  connection.sql("INSERT INTO meta VALUES ('checked', '0') ON CONFLICT DO UPDATE SET value = 1 - value").run()
  const file = connection.db.location()
  if (file !== null) {
    const { bavail, bsize } = statfsSync(dirname(file))
    if (bavail * bsize < LEAST_FREE_BYTES)
      throw new PosthornError("store_full", "the disk is full: less than 2 MiB are left; free some space")
  }
  return { kind: "sqlite", version: process.versions.sqlite ?? "" }
}
