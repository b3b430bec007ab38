/**
 * The retry budget of an endpoint: a token bucket, as pure functions. The state is the number of tokens spent, so a full bucket of any size is
 * zero. A retry that succeeds costs nothing: after an outage, the budget does not hold up the recovery.
 */
import { type AttemptOutcome, isSuccess } from "./outcome.ts"
import type { BudgetPolicy } from "./policy.ts"
import type { Protection } from "./protection.ts"

const MINUTE_MS = 60_000

type Spent = Pick<Protection, "spent" | "spentAt">

/** Tokens flow back with time. */
export function spentNow(
  { spent, spentAt }: Spent,
  { tokens, perMinute }: BudgetPolicy,
  now: number,
): number {
  if (spent === 0) return 0
  const back = (Math.max(0, now - spentAt) / MINUTE_MS) * perMinute
  return Math.max(0, Math.min(spent, tokens) - back)
}

/** How many retries may start; `inHand`: retries that are queued or in flight, each of which may still fail. */
export function retriesLeft(state: Spent, policy: BudgetPolicy, inHand: number, now: number): number {
  const affordable = Math.floor((policy.tokens - spentNow(state, policy, now)) / policy.retry)
  return Math.max(0, affordable - inHand)
}

/** When one more retry may start, if those in hand fail and nothing succeeds. */
export function nextRetryAt(state: Spent, policy: BudgetPolicy, inHand: number, now: number): number {
  const missing = (inHand + 1) * policy.retry - (policy.tokens - spentNow(state, policy, now))
  return now + Math.max(0, Math.ceil((missing / policy.perMinute) * MINUTE_MS))
}

/** `isCharged`: the attempt was a retry, and no probe of the circuit breaker. */
export function learnCost(
  state: Protection,
  outcome: AttemptOutcome,
  isCharged: boolean,
  policy: BudgetPolicy,
  now: number,
): Protection {
  const change = isSuccess(outcome) ? -policy.success : isCharged ? costOf(outcome, policy) : 0
  if (change === 0) return state
  const spent = Math.min(policy.tokens, Math.max(0, spentNow(state, policy, now) + change))
  if (spent === 0 && state.spent === 0) return state
  const after = { spent, spentAt: spent === 0 ? 0 : now }
  if (retriesLeft(after, policy, 0, now) === 0)
    return { ...state, ...after, retriesAt: nextRetryAt(after, policy, 0, now) }
  return { ...state, ...after, retriesAt: state.retriesAt && Math.min(state.retriesAt, now) }
}

function costOf(outcome: AttemptOutcome, { retry, timeout }: BudgetPolicy): number {
  return outcome.kind === "failure" && outcome.cause === "timeout" ? timeout : retry
}
