/** Every operation of the store's contract, as it runs on SQLite's thread. */
import type { Store } from "../store.ts"
import * as accepting from "./accept.ts"
import * as adding from "./add.ts"
import * as amending from "./amend.ts"
import * as applications from "./applications.ts"
import * as attempts from "./attempts.ts"
import type { Context, Operation } from "./context.ts"
import * as deliveries from "./deliveries.ts"
import * as endpoints from "./endpoints.ts"
import * as entries from "./entries.ts"
import * as laneStatus from "./lane-status.ts"
import * as lanes from "./lanes.ts"
import * as maintenance from "./maintenance.ts"
import * as messages from "./messages.ts"
import * as meta from "./meta.ts"
import * as policies from "./policies.ts"
import { sumRollups } from "./rollups.ts"
import * as bounds from "./search-bound.ts"
import * as settling from "./settle.ts"
import { survey } from "./survey.ts"
import * as tasks from "./tasks.ts"
import { listWorkers } from "./workers.ts"

/** Reads by id or name, on a second thread, so that they delay no send. */
const LOOKUPS = {
  getApplication: applications.getApplication,
  getEndpoint: endpoints.getEndpoint,
  getEndpoints: endpoints.getEndpoints,
  getGates: endpoints.getGates,
  getPolicy: policies.getPolicy,
  getEntry: entries.getEntry,
  getEntries: entries.getEntries,
  scanLanes: lanes.scanLanes,
  getDelivery: deliveries.getDelivery,
  getAttempt: attempts.getAttempt,
  getMessage: messages.getMessage,
  getMessages: messages.getMessages,
  getPayloadSizes: messages.getPayloadSizes,
  findMessages: messages.findMessages,
  getTask: tasks.getTask,
  listRunningTasks: tasks.listRunningTasks,
}

/** Reads of many rows, on a third thread, so that a long list delays only other lists. */
export const LISTS = {
  listApplications: applications.listApplications,
  listEndpoints: endpoints.listEndpoints,
  getActivity: endpoints.getActivity,
  listPolicies: policies.listPolicies,
  listEntries: entries.listEntries,
  listDeliveries: deliveries.listDeliveries,
  boundDeliveries: bounds.boundDeliveries,
  countDeliveries: deliveries.countDeliveries,
  countByStatus: deliveries.countByStatus,
  groupDead: deliveries.groupDead,
  usage: messages.usage,
  listLanes: laneStatus.listLanes,
  listWorkers,
  survey,
  listAttempts: attempts.listAttempts,
  boundAttempts: bounds.boundAttempts,
  countAttempts: attempts.countAttempts,
  countStatusCodes: attempts.countStatusCodes,
  sumRollups,
  listMessages: messages.listMessages,
  boundMessages: bounds.boundMessages,
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
  updateEndpointIfVersion: endpoints.updateEndpointIfVersion,
  enableEndpointIfDisabled: endpoints.enableEndpointIfDisabled,
  deleteEndpoint: endpoints.deleteEndpoint,
  putPolicy: policies.putPolicy,
  deletePolicyIfUnused: policies.deletePolicyIfUnused,
  saveEntryIfUnchanged: entries.saveEntryIfUnchanged,
  deleteEntry: entries.deleteEntry,
  accept: accepting.accept,
  changedOutside: (context: Context) => context.takeChangedByOthers(),
  openTokens: meta.openTokens,
  bindEncryptionKey: meta.bindEncryptionKey,
  fetch: lanes.fetch,
  settle: settling.settle,
  giveBack: settling.giveBack,
  closeLane: lanes.closeLane,
  expungeAttempt: attempts.expungeAttempt,
  expungeMessage: messages.expungeMessage,
  addIfMissing: adding.addIfMissing,
  amendIfUnchanged: amending.amendIfUnchanged,
  createTask: tasks.createTask,
  cancelTask: tasks.cancelTask,
  stepTaskIfCurrent: tasks.stepTaskIfCurrent,
  purge: maintenance.purge,
  check: meta.check,
}

export type OperationName = keyof typeof READS | keyof typeof WRITES

/** Methods that the store composes of operations. */
export type OutsideThread = "acceptMany" | "openLane" | "close"

type Contract = { [name in Exclude<keyof Store, OutsideThread>]: Operation<name> }
export const OPERATIONS = { ...READS, ...WRITES } satisfies Contract
