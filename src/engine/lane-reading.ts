/** Reads due deliveries of a lane from the store. */
import type { LaneClaim, LaneSession, LaneWork } from "../store/store.ts"
import type { LaneDependencies } from "./lane-dependencies.ts"
import { isRetry } from "./lane-queue.ts"
import type { LaneSender } from "./lane-sender.ts"
import type { LaneState } from "./lane-state.ts"

export interface LaneReading extends LaneWork {
  /** Due retries may be left in the store, since the retry budget had no more. */
  readonly isRetryLimited: boolean
}

/** Takes from the poll budget only as much as was found. Null: the store could not be read. */
export async function readLane(
  deps: LaneDependencies,
  { endpointId }: LaneClaim,
  lane: LaneState,
  session: LaneSession,
  { queue, sending, retriesInHand }: LaneSender,
  wanted: number,
  limit: number,
): Promise<LaneReading | null> {
  const { clock, budget, uptime, logger, instruments } = deps
  const hadWork = queue.length + sending.size > 0
  const want = {
    ...lane.nextShare(limit, retriesInHand, clock.now()),
    starting: lane.allowed - sending.size - queue.length,
    handoffPlaces: budget.isLimited ? 0 : lane.handoffPlaces(deps),
  }
  try {
    const startedAt = instruments.now()
    const work = await session.fetch(want, { now: clock.now(), wall: clock.wallNow() })
    const found = work.deliveries.length
    instruments.deliveriesFetched(found, instruments.now() - startedAt)
    uptime.reached(clock.now())
    budget.giveBack(limit - found)
    lane.fetched(payloadBytes(work), hadWork && found === wanted && queue.length === 0)
    const retries = work.deliveries.filter(isRetry).length
    return { ...work, isRetryLimited: want.retries < limit && retries >= want.retries }
  } catch (error) {
    uptime.failed()
    budget.giveBack(limit)
    logger.warn({ err: error, endpoint_id: endpointId }, "Due deliveries could not be read; trying again")
    return null
  }
}

function payloadBytes({ deliveries }: LaneWork): number {
  return deliveries.reduce((bytes, { payload }) => bytes + (payload?.length ?? 0), 0)
}
