/** The changes that an operator makes to a delivery, without an attempt. */
import type { Policy } from "./policy.ts"
import { type Change, type DeliveryStatus, type LiveDelivery, settle, unchangedOf } from "./settle.ts"

/** A delivery in any state. */
export type AnyDelivery = Omit<LiveDelivery, "status"> & {
  readonly status: DeliveryStatus
  readonly deliveredAt: number | null
}

export function isLive(delivery: { readonly status: DeliveryStatus }): boolean {
  return delivery.status === "pending" || delivery.status === "failed"
}

/** Starts it anew: attempt 0, due now, age 0. */
export function revive(delivery: AnyDelivery, nowMs: number): Change {
  const anew = { status: "pending", attemptCount: 0, nextRetryAt: null, ageFrom: nowMs, stalls: 0 } as const
  return { ...unchangedOf(delivery, nowMs), ...anew, manual: true }
}

/** Sets another due time for an unfinished delivery. No attempt is counted, its age goes on, and an ordered delivery keeps its place. */
export function reschedule(delivery: AnyDelivery, dueAt: number, nowMs: number): Change {
  return { ...unchangedOf(delivery, nowMs), nextRetryAt: dueAt, manual: true }
}

/** Ends an unfinished delivery whose payload was removed. */
export function expunge(delivery: AnyDelivery, policy: Policy, nowMs: number): Change {
  return settle(delivery as LiveDelivery, { kind: "expunged" }, policy, nowMs, () => 0)
}

/** Ends an unfinished delivery. */
export function cancel(delivery: AnyDelivery, policy: Policy, nowMs: number): Change {
  return settle(delivery as LiveDelivery, { kind: "cancelled" }, policy, nowMs, () => 0)
}
