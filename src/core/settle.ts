/**
 * The life of a delivery, in one pure function: what an outcome makes of it.
 * The stores only apply the change that comes out; no other place knows these rules.
 */
import { delayMs, type Random } from "./backoff.ts"
import { type AttemptOutcome, errorDetail, judge, type Outcome } from "./outcome.ts"
import type { DeadReason, Policy } from "./policy.ts"
import { retryAfterMs } from "./retry-after.ts"

export const DELIVERY_STATUSES = ["pending", "failed", "delivered", "dead"] as const
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number]
export type LiveStatus = "pending" | "failed"

/** What the rules need to know of a delivery that is not finished. Times in milliseconds. */
export interface LiveDelivery {
  readonly status: LiveStatus
  readonly attemptCount: number
  /** The message's own limit; null leaves it to the policy. */
  readonly maxAttempts: number | null
  readonly receivedAt: number
  /** Where its age runs from; null when an operator's SQL revived it: from its next settle. */
  readonly ageFrom: number | null
  /** Null is due now. */
  readonly nextRetryAt: number | null
  readonly lastAttemptedAt: number | null
  /** How often it was under way when its worker stopped, or when our own code failed on it. */
  readonly stalls: number
}

export interface Change {
  readonly status: DeliveryStatus
  readonly deadReason: DeadReason | null
  readonly attemptCount: number
  readonly nextRetryAt: number | null
  readonly lastAttemptedAt: number | null
  readonly deliveredAt: number | null
  /** Null leaves the last error standing; a delivered one has none. */
  readonly errorDetail: string | null
  readonly ageFrom: number
  readonly stalls: number
  /** When retention may remove it; null keeps it. */
  readonly purgeAt: number | null
  /** An operator asked for its next attempt. */
  readonly manual: boolean
  /** 410: the endpoint wants no more. */
  readonly disableEndpoint: boolean
  /** Retry-After: the whole lane waits until then. */
  readonly holdLaneUntil: number | null
}

/** A delivery that stopped its worker, or broke our own code, this often is set aside. */
export const MOST_STALLS = 5
/**
 * How long a delivery waits that was in the hands of a worker when it stopped, by how often that happened. The first time it goes
 * again at once. Then it waits, longer each time: whatever stops workers at random rarely finds it under way again, while one that
 * stops them itself is found out. (With no wait, four kills within a second set innocent ones aside.)
 */
export const STALL_WAITS_MS: readonly number[] = [0, 0, 1000, 10_000, 60_000]
const STALL_DELAY_MS = 1000

export function settle(
  delivery: LiveDelivery,
  outcome: Outcome,
  policy: Policy,
  nowMs: number,
  random: Random,
  wallMs = nowMs,
): Change {
  const ageFrom = delivery.ageFrom ?? nowMs
  const unchanged: Change = {
    status: delivery.status,
    deadReason: null,
    attemptCount: delivery.attemptCount,
    nextRetryAt: delivery.nextRetryAt,
    lastAttemptedAt: delivery.lastAttemptedAt,
    deliveredAt: null,
    errorDetail: errorDetail(outcome),
    ageFrom,
    stalls: delivery.stalls,
    purgeAt: null,
    manual: false,
    disableEndpoint: false,
    holdLaneUntil: null,
  }
  switch (outcome.kind) {
    case "interrupted":
      return unchanged
    case "overdue":
      return dead(unchanged, "expired", delivery, policy, nowMs)
    case "cancelled":
      return dead(unchanged, "cancelled", delivery, policy, nowMs)
    case "expunged":
      return dead(unchanged, "expunged", delivery, policy, nowMs)
    case "stalled":
      return dead(unchanged, "error", delivery, policy, nowMs)
    case "fault":
      return setBack(unchanged, delivery, policy, nowMs)
    case "response":
    case "failure":
    case "ack":
      return afterAttempt(unchanged, outcome, delivery, policy, nowMs, random, wallMs)
    default:
      return outcome satisfies never
  }
}

/**
 * Whether a due delivery is too old to be tried. `unheldSince`: the end of the last hold of ours or of the operator's (a pause, a
 * disabled endpoint, our own downtime). A delivery whose age ended by then was kept from being tried, and gets one attempt first.
 * Waiting behind another delivery, for a receiver that hangs or for its Retry-After is no such hold.
 */
export function isOverdue(
  delivery: LiveDelivery,
  policy: Policy,
  nowMs: number,
  unheldSince: number,
): boolean {
  const endsAt = ageEndsAt(delivery.ageFrom, policy)
  return endsAt !== null && nowMs >= endsAt && endsAt > unheldSince
}

/** When a delivery is too old to be tried again; null is never. */
export function ageEndsAt(ageFrom: number | null, policy: Policy): number | null {
  return policy.maxAge === null || ageFrom === null ? null : ageFrom + Math.round(policy.maxAge * 1000)
}

function afterAttempt(
  unchanged: Change,
  outcome: AttemptOutcome,
  delivery: LiveDelivery,
  policy: Policy,
  nowMs: number,
  random: Random,
  wallMs: number,
): Change {
  const attemptCount = delivery.attemptCount + 1
  const attempted: Change = { ...unchanged, attemptCount, lastAttemptedAt: nowMs, stalls: 0 }
  const verdict = judge(outcome, policy)
  switch (verdict) {
    case "delivered":
      return {
        ...attempted,
        status: "delivered",
        nextRetryAt: null,
        deliveredAt: nowMs,
        errorDetail: null,
        purgeAt: purgeAt("delivered", policy, delivery, nowMs),
      }
    case "rejected":
      return dead(attempted, "rejected", delivery, policy, nowMs)
    case "gone":
      return { ...dead(attempted, "gone", delivery, policy, nowMs), disableEndpoint: true }
    case "retry":
      return retry(attempted, outcome, delivery, policy, nowMs, random, wallMs)
    default:
      return verdict satisfies never
  }
}

function retry(
  attempted: Change,
  outcome: AttemptOutcome,
  delivery: LiveDelivery,
  policy: Policy,
  nowMs: number,
  random: Random,
  wallMs: number,
): Change {
  const maxAttempts = delivery.maxAttempts ?? policy.maxAttempts
  if (maxAttempts !== null && attempted.attemptCount >= maxAttempts) {
    return dead(attempted, "exhausted", delivery, policy, nowMs)
  }
  const endsAt = ageEndsAt(attempted.ageFrom, policy)
  if (endsAt !== null && nowMs >= endsAt) return dead(attempted, "expired", delivery, policy, nowMs)

  const holdMs = laneHoldMs(outcome, policy, wallMs)
  const dueAt = nowMs + Math.max(delayMs(policy, attempted.attemptCount, random), holdMs)
  return {
    ...attempted,
    status: "failed",
    // No attempt follows the end of its age, so the next thing that happens to it is that end.
    nextRetryAt: endsAt === null ? dueAt : Math.min(dueAt, endsAt),
    holdLaneUntil: holdMs > 0 ? nowMs + holdMs : null,
  }
}

/** A date is a time of the wall clock; what is left until then is a delay from now on. */
function laneHoldMs(outcome: AttemptOutcome, policy: Policy, wallMs: number): number {
  if (outcome.kind !== "response" || (outcome.status !== 429 && outcome.status !== 503)) return 0
  return retryAfterMs(outcome.retryAfter, wallMs, policy.retryAfter)
}

/** Not an attempt: tried again soon, or set aside when our own code fails on it again and again. */
function setBack(unchanged: Change, delivery: LiveDelivery, policy: Policy, nowMs: number): Change {
  const stalls = delivery.stalls + 1
  if (stalls >= MOST_STALLS) return dead({ ...unchanged, stalls }, "error", delivery, policy, nowMs)
  return { ...unchanged, stalls, nextRetryAt: nowMs + STALL_DELAY_MS * 2 ** stalls }
}

function dead(
  change: Change,
  reason: DeadReason,
  delivery: LiveDelivery,
  policy: Policy,
  nowMs: number,
): Change {
  return {
    ...change,
    status: "dead",
    deadReason: reason,
    nextRetryAt: null,
    purgeAt: purgeAt(reason, policy, { ...delivery, lastAttemptedAt: change.lastAttemptedAt }, nowMs),
  }
}

function purgeAt(
  outcome: "delivered" | DeadReason,
  policy: Policy,
  delivery: LiveDelivery,
  nowMs: number,
): number | null {
  const rule = policy.retention[outcome]
  if (rule === undefined) return null
  const fromMs = {
    delivered_at: nowMs,
    last_attempted_at: delivery.lastAttemptedAt ?? nowMs,
    received_at: delivery.receivedAt,
  }[rule.from]
  return fromMs + Math.round(rule.after * 1000)
}
