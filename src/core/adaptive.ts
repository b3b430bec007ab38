/** Adaptive backoff: the cause of a failure sets the least delay before the next attempt. */
import { longestDelay } from "./backoff.ts"
import type { AttemptOutcome } from "./outcome.ts"
import type { Policy } from "./policy.ts"

/** Without a `Retry-After` that is honoured, a receiver that says it is overloaded gets this many times the delay. */
const BUSY_FACTOR = 2

/** Never shorter than the schedule's delay, and never above the schedule's longest one. `holdMs`: a Retry-After that is honoured. */
export function adaptedDelayMs(
  policy: Policy,
  outcome: AttemptOutcome,
  scheduledMs: number,
  holdMs: number,
): number {
  if (policy.adaptive === false) return scheduledMs
  const floorMs = floorOf(policy.adaptive, outcome, scheduledMs, holdMs)
  return Math.max(scheduledMs, Math.min(floorMs, longestDelay(policy.delays) * 1000))
}

function floorOf(
  floors: Exclude<Policy["adaptive"], false>,
  outcome: AttemptOutcome,
  scheduledMs: number,
  holdMs: number,
): number {
  switch (outcome.kind) {
    case "failure":
      return (floors[outcome.cause] ?? 0) * 1000
    case "response": {
      const isBusy = (outcome.status === 429 || outcome.status === 503) && holdMs === 0
      return Math.max((floors[outcome.status] ?? 0) * 1000, isBusy ? BUSY_FACTOR * scheduledMs : 0)
    }
    case "ack":
      return 0
    default:
      return outcome satisfies never
  }
}
