/** Calls of a lane session on their way into a database: with the lane and the token that fence them. */
import type { GateUpdate } from "../core/gate.ts"
import type { Change } from "../core/settle.ts"
import type { GivenBack, LaneClaim, LaneWant, LaneWork, NewAttempt, Settlement } from "./model.ts"

export interface Fence {
  readonly seq: number
  readonly deliveryId: string
  readonly messageId: string
  readonly endpointId: string
  readonly token: number
}

export interface FencedSettlement extends Fence {
  /** The count that the change was computed from: a row that somebody changed meanwhile is left as it is. */
  readonly expectedAttemptCount: number
  /** And the beginning of its age, which an operator's retry moves. */
  readonly expectedAgeFrom: number | null
  readonly change: Change
  readonly attempt: NewAttempt | null
  readonly gate: GateUpdate | null
}

export interface FencedGiveBack extends Fence {
  readonly attempt: NewAttempt | null
}

export interface LaneFetch extends LaneWant {
  readonly endpointId: string
  readonly token: number
  /** The version of the endpoint that the session knows; a newer one comes with the answer. */
  readonly knownVersion: number | null
}

export interface FetchedLane extends LaneWork {
  /** The claim no longer stands: another worker has the lane, and nothing was fetched. */
  readonly lost: boolean
  /** Deliveries may be handed over from now on. */
  readonly open: boolean
}

export function fenceSettlement(
  { endpointId, token }: LaneClaim,
  { delivery, change, attempt, gate }: Settlement,
): FencedSettlement {
  const { seq, id, messageId, attemptCount, ageFrom } = delivery
  return {
    seq,
    deliveryId: id,
    messageId,
    endpointId,
    token,
    expectedAttemptCount: attemptCount,
    expectedAgeFrom: ageFrom,
    change,
    attempt,
    gate,
  }
}

export function fenceGiveBack(
  { endpointId, token }: LaneClaim,
  { delivery, attempt }: GivenBack,
): FencedGiveBack {
  return {
    seq: delivery.seq,
    deliveryId: delivery.id,
    messageId: delivery.messageId,
    endpointId,
    token,
    attempt,
  }
}
