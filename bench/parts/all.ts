/**
 * Every part, in the order in which they run: those that need a database server come last. One that is there, and has something to tidy up,
 * takes its time from whatever is measured meanwhile.
 */
import type { Part } from "../harness/bench.ts"
import { apiPart } from "./api.ts"
import { backlogPart } from "./backlog.ts"
import { deliverToServers, deliverToSqlite } from "./deliver.ts"
import { guardPart } from "./guard.ts"
import { isolationPart } from "./isolation.ts"
import { latencyPart } from "./latency.ts"
import { peerParts } from "./peers.ts"
import { retryPart } from "./retry.ts"
import { startPart } from "./start.ts"
import { threadPart } from "./thread.ts"
import { workersPart } from "./workers.ts"

export const PARTS: readonly Part[] = [
  deliverToSqlite,
  backlogPart,
  isolationPart,
  latencyPart,
  startPart,
  retryPart,
  apiPart,
  guardPart,
  threadPart,
  ...deliverToServers,
  ...peerParts,
  workersPart,
]
