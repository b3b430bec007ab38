/** Reading due deliveries of a lane from the store. */
import type { LaneClaim, LaneSession, LaneWork } from "../store/store.ts"
import type { LaneDependencies } from "./lane-dependencies.ts"
import type { LaneSender } from "./lane-sender.ts"
import type { LaneState } from "./lane-state.ts"

/** Null when the store could not be read. */
export async function readLane(
  deps: LaneDependencies,
  { endpointId }: LaneClaim,
  lane: LaneState,
  session: LaneSession,
  { queue, sending }: LaneSender,
  limit: number,
): Promise<LaneWork | null> {
  const { clock, budget, uptime, logger } = deps
  const want = {
    ...lane.nextShare(limit),
    starting: lane.allowed - sending.size - queue.length,
    handoffPlaces: budget.isLimited ? 0 : lane.handoffPlaces(deps),
  }
  try {
    const work = await session.fetch(want, { now: clock.now(), wall: clock.wallNow() })
    uptime.reached(clock.now())
    return work
  } catch (error) {
    uptime.failed()
    logger.warn({ err: error, endpoint_id: endpointId }, "Due deliveries could not be read; trying again")
    return null
  }
}

export function payloadBytes({ deliveries }: LaneWork): number {
  return deliveries.reduce((bytes, { payload }) => bytes + (payload?.length ?? 0), 0)
}
