/**
 * Every part, in the order in which they run: what measures latencies before what makes large files, and those that need a database server
 * last. A server that has something to tidy up, and a disk that is told to forget a gigabyte, take their time from whatever is measured
 * meanwhile.
 */
import type { Part } from "../harness/bench.ts"
import { apiOnPostgres, apiPart } from "./api.ts"
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
  isolationPart,
  latencyPart,
  retryPart,
  apiPart,
  guardPart,
  threadPart,
  backlogPart,
  startPart,
  ...deliverToServers,
  apiOnPostgres,
  ...peerParts,
  workersPart,
]
