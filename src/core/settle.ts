/** The life of a delivery in one pure function: an outcome becomes a change. The stores only apply it; no other code has these rules. */
import { adaptedDelayMs } from "./adaptive.ts"
import { delayMs, type Random } from "./backoff.ts"
import { type AttemptOutcome, errorDetail, judge, type Outcome } from "./outcome.ts"
import type { DeadReason, Policy } from "./policy.ts"
import { retryAfterMs } from "./retry-after.ts"

export const DELIVERY_STATUSES = ["pending", "failed", "delivered", "dead"] as const
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number]
export type LiveStatus = "pending" | "failed"

/** An unfinished delivery, as far as these rules need it. Times in milliseconds. */
export interface LiveDelivery {
  readonly status: LiveStatus
  readonly attemptCount: number
  /** The message's own limit; null: the policy's. */
  readonly maxAttempts: number | null
  readonly receivedAt: number
  /** The start of its age; null after an operator's SQL revived it: its age starts with the next settle. */
  readonly ageFrom: number | null
  /** Null: due now. */
  readonly nextRetryAt: number | null
  readonly lastAttemptedAt: number | null
  /** How often its worker stopped, or our own code failed, during an attempt. */
  readonly stalls: number
}

export interface Change {
  readonly status: DeliveryStatus
  readonly deadReason: DeadReason | null
  readonly attemptCount: number
  readonly nextRetryAt: number | null
  readonly lastAttemptedAt: number | null
  readonly deliveredAt: number | null
  readonly deadAt: number | null
  /** Null keeps the stored error, unless the delivery is delivered. */
  readonly errorDetail: string | null
  readonly ageFrom: number
  readonly stalls: number
  /** When retention may remove it; null: never. */
  readonly purgeAt: number | null
  /** An operator asked for its next attempt. */
  readonly manual: boolean
  /** After a 410. */
  readonly disableEndpoint: boolean
  /** Retry-After: the whole lane waits until this time. */
  readonly holdLaneUntil: number | null
}

/** A delivery with this number of stalls is set aside: `dead`, reason `error`. */
export const MOST_STALLS = 5
/**
 * The wait after a worker stopped during an attempt, by the number of stalls. The waits grow, so that random stops rarely hit the same
 * delivery again: without them, four kills within a second set deliveries aside that had stopped no worker.
 */
export const STALL_WAITS_MS: readonly number[] = [0, 0, 1000, 10_000, 60_000]
const STALL_DELAY_MS = 1000

interface SettleInput {
  readonly delivery: LiveDelivery
  readonly policy: Policy
  readonly nowMs: number
  readonly random: Random
  readonly wallMs: number
}

export function settle(
  delivery: LiveDelivery,
  outcome: Outcome,
  policy: Policy,
  nowMs: number,
  random: Random,
  wallMs = nowMs,
): Change {
  const input = { delivery, policy, nowMs, random, wallMs }
  const unchanged: Change = { ...unchangedOf(delivery, nowMs), errorDetail: errorDetail(outcome) }
  switch (outcome.kind) {
    case "interrupted":
      return unchanged
    case "overdue":
      return dead(unchanged, "expired", input)
    case "cancelled":
    case "expunged":
      return dead(unchanged, outcome.kind, input)
    case "stalled":
      return dead(unchanged, "error", input)
    case "fault":
      return setBack(unchanged, input)
    case "response":
    case "failure":
    case "ack":
      return afterAttempt(unchanged, outcome, input)
    default:
      return outcome satisfies never
  }
}

export function unchangedOf(
  delivery: Omit<LiveDelivery, "status"> & { readonly status: DeliveryStatus },
  nowMs: number,
): Change {
  return {
    status: delivery.status,
    deadReason: null,
    attemptCount: delivery.attemptCount,
    nextRetryAt: delivery.nextRetryAt,
    lastAttemptedAt: delivery.lastAttemptedAt,
    deliveredAt: null,
    deadAt: null,
    errorDetail: null,
    ageFrom: delivery.ageFrom ?? nowMs,
    stalls: delivery.stalls,
    purgeAt: null,
    manual: false,
    disableEndpoint: false,
    holdLaneUntil: null,
  }
}

/**
 * Whether a due delivery is too old to be tried. `sendableSince`: when the endpoint was last resumed or enabled, or the store was last
 * reached again, whichever is later. A delivery whose age ended before that time gets one attempt first.
 */
export function isOverdue(
  delivery: LiveDelivery,
  policy: Policy,
  nowMs: number,
  sendableSince: number,
): boolean {
  const endsAt = ageEndsAt(delivery.ageFrom, policy)
  return endsAt !== null && nowMs >= endsAt && endsAt > sendableSince
}

/** When a delivery is too old to be tried again; null: never. */
export function ageEndsAt(ageFrom: number | null, policy: Policy): number | null {
  return policy.maxAge === null || ageFrom === null ? null : ageFrom + Math.round(policy.maxAge * 1000)
}

function afterAttempt(unchanged: Change, outcome: AttemptOutcome, input: SettleInput): Change {
  const { delivery, policy, nowMs } = input
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
        purgeAt: purgeAt("delivered", nowMs, input),
      }
    case "rejected":
      return dead(attempted, "rejected", input)
    case "gone":
      return { ...dead(attempted, "gone", input), disableEndpoint: true }
    case "retry":
      return retry(attempted, outcome, input)
    default:
      return verdict satisfies never
  }
}

function retry(attempted: Change, outcome: AttemptOutcome, input: SettleInput): Change {
  const { delivery, policy, nowMs, random, wallMs } = input
  const maxAttempts = delivery.maxAttempts ?? policy.maxAttempts
  if (maxAttempts !== null && attempted.attemptCount >= maxAttempts)
    return dead(attempted, "exhausted", input)
  const endsAt = ageEndsAt(attempted.ageFrom, policy)
  if (endsAt !== null && nowMs >= endsAt) return dead(attempted, "expired", input)

  const holdMs = laneHoldMs(outcome, policy, wallMs)
  const scheduledMs = delayMs(policy, attempted.attemptCount, random)
  const dueAt = nowMs + Math.max(adaptedDelayMs(policy, outcome, scheduledMs, holdMs), holdMs)
  return {
    ...attempted,
    status: "failed",
    // No attempt follows the end of its age: the delivery is due then, to expire.
    nextRetryAt: endsAt === null ? dueAt : Math.min(dueAt, endsAt),
    holdLaneUntil: holdMs > 0 ? nowMs + holdMs : null,
  }
}

/** A date in Retry-After is compared with the wall clock; the time that is left is a delay of the steady clock. */
function laneHoldMs(outcome: AttemptOutcome, policy: Policy, wallMs: number): number {
  if (outcome.kind === "ack") {
    const { result, retryAfterSeconds: seconds } = outcome
    return result === "transient" && seconds != null
      ? retryAfterMs(String(seconds), wallMs, policy.retryAfter)
      : 0
  }
  if (outcome.kind !== "response" || (outcome.status !== 429 && outcome.status !== 503)) return 0
  return retryAfterMs(outcome.retryAfter, wallMs, policy.retryAfter)
}

/** A fault of our own is no attempt: the delivery is tried again soon, and set aside after too many faults. */
function setBack(unchanged: Change, input: SettleInput): Change {
  const stalls = input.delivery.stalls + 1
  if (stalls >= MOST_STALLS) return dead({ ...unchanged, stalls }, "error", input)
  return { ...unchanged, stalls, nextRetryAt: input.nowMs + STALL_DELAY_MS * 2 ** stalls }
}

function dead(change: Change, reason: DeadReason, input: SettleInput): Change {
  return {
    ...change,
    status: "dead",
    deadReason: reason,
    deadAt: input.nowMs,
    nextRetryAt: null,
    purgeAt: purgeAt(reason, change.lastAttemptedAt, input),
  }
}

function purgeAt(
  outcome: "delivered" | DeadReason,
  lastAttemptedAt: number | null,
  { delivery, policy, nowMs }: SettleInput,
): number | null {
  const rule = policy.retention[outcome]
  if (rule === undefined) return null
  const fromMs = {
    delivered_at: nowMs,
    last_attempted_at: lastAttemptedAt ?? nowMs,
    received_at: delivery.receivedAt,
  }[rule.from]
  return fromMs + Math.round(rule.after * 1000)
}
