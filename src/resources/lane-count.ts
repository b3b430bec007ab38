/** How many deliveries wait for an endpoint, without reading a long lane to its end. */
import type { Store } from "../store/store.ts"

export interface LaneCount {
  readonly count: number
  /** True: a queue reached `most`, so that more may wait. */
  readonly isLowerBound: boolean
}

const ONE = { limit: 1, order: "ascending", from: null, back: false } as const

/** Counts at most `most` deliveries of each queue. */
export async function countLane(
  store: Pick<Store, "listLanes">,
  endpointId: string,
  most: number,
): Promise<LaneCount> {
  const [lane] = await store.listLanes({ endpointId }, ONE, most)
  if (lane === undefined) return { count: 0, isLowerBound: false }
  return { count: lane.waiting + lane.retrying, isLowerBound: lane.isLowerBound }
}
