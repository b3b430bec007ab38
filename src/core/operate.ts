/** What an operator's hand makes of a delivery: the changes that no attempt brings about. */
import type { Policy } from "./policy.ts"
import { type Change, type DeliveryStatus, type LiveDelivery, settle } from "./settle.ts"

/** A delivery in any state. */
export type AnyDelivery = Omit<LiveDelivery, "status"> & {
  readonly status: DeliveryStatus
  readonly deliveredAt: number | null
}

export function isLive(delivery: { readonly status: DeliveryStatus }): boolean {
  return delivery.status === "pending" || delivery.status === "failed"
}

/** Back to the beginning: attempt 0, due now, its age starts anew. */
export function revive(delivery: AnyDelivery, nowMs: number): Change {
  return {
    status: "pending",
    deadReason: null,
    attemptCount: 0,
    nextRetryAt: null,
    lastAttemptedAt: delivery.lastAttemptedAt,
    deliveredAt: null,
    errorDetail: null,
    ageFrom: nowMs,
    stalls: 0,
    purgeAt: null,
    manual: true,
    disableEndpoint: false,
    holdLaneUntil: null,
  }
}

/**
 * Due at another time. It stays what it is: no attempt is counted, its age goes on, and an ordered delivery keeps its place. Only a
 * delivery that is not finished can be.
 */
export function reschedule(delivery: AnyDelivery, dueAt: number, nowMs: number): Change {
  return {
    status: delivery.status,
    deadReason: null,
    attemptCount: delivery.attemptCount,
    nextRetryAt: dueAt,
    lastAttemptedAt: delivery.lastAttemptedAt,
    deliveredAt: null,
    errorDetail: null,
    ageFrom: delivery.ageFrom ?? nowMs,
    stalls: delivery.stalls,
    purgeAt: null,
    manual: true,
    disableEndpoint: false,
    holdLaneUntil: null,
  }
}

/** Its payload is gone: dead, with the reason `expunged`. Only a delivery that is not finished can be. */
export function expunge(delivery: AnyDelivery, policy: Policy, nowMs: number): Change {
  return settle(delivery as LiveDelivery, { kind: "expunged" }, policy, nowMs, () => 0)
}

/** Called off: dead, with the reason `cancelled`. Only a delivery that is not finished can be. */
export function cancel(delivery: AnyDelivery, policy: Policy, nowMs: number): Change {
  return settle(delivery as LiveDelivery, { kind: "cancelled" }, policy, nowMs, () => 0)
}
