/** Calls of a lane session, with the lane and the fencing token. */
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
  /** The row that the change was computed from: a row with another count is not changed. */
  readonly expectedAttemptCount: number
  /** An operator's retry moves the start of the age. */
  readonly expectedAgeFrom: number | null
  readonly appId: string
  readonly eventType: string
  readonly payloadBytes: number
  readonly change: Change
  readonly attempt: NewAttempt | null
  readonly settledAt: number
  readonly gate: GateUpdate | null
}

export interface FencedGiveBack extends Fence {
  readonly attempt: NewAttempt | null
}

export interface LaneFetch extends LaneWant {
  readonly endpointId: string
  readonly token: number
  /** The endpoint's version that the session knows; a newer one comes with the result. */
  readonly knownVersion: number | null
}

export interface FetchedLane extends LaneWork {
  /** Another worker has claimed the lane: nothing was fetched. */
  readonly lost: boolean
  /** From now on accepted deliveries are handed to the session. */
  readonly open: boolean
}

export function fenceSettlement(
  { endpointId, appId, token }: LaneClaim,
  { delivery, change, attempt, settledAt, gate }: Settlement,
): FencedSettlement {
  const { seq, id, messageId, attemptCount, ageFrom, eventType, payload } = delivery
  return {
    seq,
    deliveryId: id,
    messageId,
    endpointId,
    token,
    expectedAttemptCount: attemptCount,
    expectedAgeFrom: ageFrom,
    appId,
    eventType,
    payloadBytes: payload?.length ?? 0,
    change,
    attempt,
    settledAt,
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
