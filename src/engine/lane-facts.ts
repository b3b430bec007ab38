/** Gathers the facts that the lane's state machine decides by. */
import type { LaneSession } from "../store/store.ts"
import type { LaneDependencies } from "./lane-dependencies.ts"
import type { LaneFacts } from "./lane-machine.ts"
import type { LaneSender } from "./lane-sender.ts"
import type { LaneState } from "./lane-state.ts"

/** After this many starts a lane gives way, if others wait for its place. */
const QUANTUM = 100

export function mustGiveWay({ budget, othersWait }: LaneDependencies, { started }: LaneSender): boolean {
  return budget.isLimited || (started >= QUANTUM && othersWait())
}

export function factsOf(
  deps: LaneDependencies,
  lane: LaneState,
  { isOpen }: LaneSession,
  { queue, sending, unsettled }: LaneSender,
): LaneFacts {
  const { ahead, isOrdered } = lane
  return {
    queued: queue.length,
    queuedPlaces: queue.places,
    mostPlaces: lane.handoffPlaces(deps) + ahead,
    sending: sending.size,
    unsettled,
    ahead,
    ordered: isOrdered,
    isOpen,
    mayRest: deps.mayRest(),
    stopping: deps.stopping(),
  }
}
