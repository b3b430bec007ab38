/** All parts in their order: latencies before large files, and database servers last, because their background work disturbs others. */
import type { Part } from "../harness/bench.ts"
import { apiOnPostgres, apiPart } from "./api.ts"
import { backlogPart } from "./backlog.ts"
import { dashboardPart } from "./dashboard.ts"
import { deliverToServers, deliverToSqlite } from "./deliver.ts"
import { failingNeighboursPart } from "./failing-neighbours.ts"
import { guardPart } from "./guard.ts"
import { isolationPart } from "./isolation.ts"
import { latencyPart } from "./latency.ts"
import { observePart } from "./observe.ts"
import { peerParts } from "./peers.ts"
import { protectionPart } from "./protection.ts"
import { relayPart } from "./relay.ts"
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
  protectionPart,
  failingNeighboursPart,
  observePart,
  relayPart,
  dashboardPart,
  threadPart,
  backlogPart,
  startPart,
  ...deliverToServers,
  apiOnPostgres,
  ...peerParts,
  workersPart,
]
