/** Every part, in the order in which they run. */
import type { Part } from "../harness/bench.ts"
import { apiPart } from "./api.ts"
import { backlogPart } from "./backlog.ts"
import { deliverParts } from "./deliver.ts"
import { guardPart } from "./guard.ts"
import { isolationPart } from "./isolation.ts"
import { latencyPart } from "./latency.ts"
import { peerParts } from "./peers.ts"
import { retryPart } from "./retry.ts"
import { startPart } from "./start.ts"
import { threadPart } from "./thread.ts"
import { workersPart } from "./workers.ts"

export const PARTS: readonly Part[] = [
  ...deliverParts,
  ...peerParts,
  backlogPart,
  isolationPart,
  latencyPart,
  startPart,
  retryPart,
  apiPart,
  workersPart,
  guardPart,
  threadPart,
]
