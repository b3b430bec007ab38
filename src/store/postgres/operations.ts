/** Every operation of the store's contract that is a call of its own. */
import type { Store } from "../store.ts"
import * as adding from "./add.ts"
import * as amending from "./amend.ts"
import * as applications from "./applications.ts"
import * as attempts from "./attempts.ts"
import type { Operation } from "./context.ts"
import * as deliveries from "./deliveries.ts"
import * as endpoints from "./endpoints.ts"
import * as entries from "./entries.ts"
import * as laneStatus from "./lane-status.ts"
import { scanLanes } from "./lanes.ts"
import * as maintenance from "./maintenance.ts"
import * as messages from "./messages.ts"
import { bindEncryptionKey, check } from "./meta.ts"
import * as policies from "./policies.ts"
import { sumRollups } from "./rollups.ts"
import * as bounds from "./search-bound.ts"
import { survey } from "./survey.ts"
import * as tasks from "./tasks.ts"
import * as workers from "./workers.ts"

/** Methods that share statements with other calls, or that belong to the store as a whole. */
export type OutsideOperations = "acceptMany" | "openLane" | "changedOutside" | "close"

type Contract = { [name in Exclude<keyof Store, OutsideOperations>]: Operation<name> }

/** The modules export helpers, too; the type leaves these out. */
export const OPERATIONS: Contract = {
  ...adding,
  ...amending,
  ...applications,
  ...attempts,
  ...bounds,
  ...deliveries,
  ...endpoints,
  ...entries,
  ...laneStatus,
  scanLanes,
  ...maintenance,
  ...messages,
  bindEncryptionKey,
  check,
  ...policies,
  sumRollups,
  survey,
  ...tasks,
  ...workers,
}
