/** Why an endpoint has its state of health, in a sentence. */

import type { AttemptWindow } from "./attempt-window.ts"
import { disablesAt } from "./failing.ts"
import type { AgentAbsence, HealthFacts, HealthState } from "./health.ts"
import type { Protection } from "./protection.ts"
import { countText, durationText, percentText, timeText } from "./wording.ts"

/** For an operator: the cause, the last error, and what happens next. */
export function reasonOf(
  health: HealthState,
  facts: HealthFacts,
  lastHour: AttemptWindow,
  now: number,
): string {
  switch (health) {
    case "disabled":
      return whyDisabled(facts)
    case "paused":
      return "paused by hand; resume it to send the waiting deliveries"
    case "offline":
      return sentence(whyOffline(facts.absence!), waitingText(facts.absence!), givingUp(facts.absence!, now))
    case "open":
      return sentence(whyOpen(facts), lastError(facts), nextRequest(facts, now))
    case "failing":
      return sentence(whyFailing(facts.protection), lastError(facts), slowedBy(facts, now), disabling(facts))
    case "degraded":
    case "healthy":
      return sentence(rateText(lastHour), lastError(facts), slowedBy(facts, now))
    default:
      return health satisfies never
  }
}

function whyDisabled(facts: HealthFacts): string {
  const { disabledAt, disabledReason, protection } = facts
  switch (disabledReason) {
    case "manual":
      return "disabled by hand"
    case "gone":
      return "disabled: the receiver answered 410 Gone"
    case "failing": {
      const { failingSince } = protection
      const isKnown = disabledAt !== null && failingSince !== null
      const span = isKnown ? ` for ${durationText(disabledAt - failingSince)}` : ""
      return sentence(`disabled: no success${span}`, lastError(facts))
    }
    case null:
      return "disabled; the reason was not recorded"
    default:
      return disabledReason satisfies never
  }
}

function whyOffline({ agent, since, hasOtherKey, lastSeenAt }: AgentAbsence): string {
  if (hasOtherKey) return `its agent ${agent} is connected with a key for other endpoints`
  if (lastSeenAt === null) return `its agent ${agent} was never connected`
  return `its agent ${agent} has not been connected since ${timeText(since)}`
}

function waitingText({ waiting }: AgentAbsence): string | null {
  if (waiting === null || waiting.count === 0) return null
  const text = countText(waiting.count, "delivery waits", "deliveries wait")
  return waiting.isLowerBound ? `at least ${text}` : text
}

function givingUp({ givenUpAt }: AgentAbsence, now: number): string | null {
  if (givenUpAt === null) return null
  return `the oldest delivery is given up ${givenUpAt > now ? `at ${timeText(givenUpAt)}` : "now"}`
}

function whyOpen({ protection: { downs }, policy: { breaker } }: HealthFacts): string {
  // A breaker that opens by itself has had a failure.
  if (downs === 0) return "the circuit breaker was opened by hand"
  if (breaker === false || downs >= breaker.failures)
    return `the circuit breaker opened after ${countText(downs, "failure")} in a row`
  const part = percentText(breaker.ratio)
  return `the circuit breaker opened since ${part} or more of the attempts within ${breaker.window} s failed`
}

function nextRequest({ protection: { until } }: HealthFacts, now: number): string {
  if (until !== null && until > now) return `no request before ${timeText(until)}`
  return "the next delivery that is due probes the endpoint"
}

function whyFailing({ failures }: Protection): string {
  if (failures === 0) return "it was failing when it was enabled, and had no success since"
  return failures === 1 ? "the last attempt failed" : `the last ${failures} attempts failed`
}

function disabling({ protection, policy: { autoDisable } }: HealthFacts): string | null {
  const at = disablesAt(protection, autoDisable)
  return at === null ? null : `without a success it is disabled at ${timeText(at)} at the earliest`
}

function rateText({ attempts, successRate }: AttemptWindow): string {
  if (successRate === null) return "no attempts in the last hour"
  return `${percentText(successRate)} of ${countText(attempts, "attempt")} in the last hour succeeded`
}

function slowedBy({ holdUntil, protection, policy }: HealthFacts, now: number): string | null {
  if (holdUntil !== null && holdUntil > now) return `a Retry-After holds it until ${timeText(holdUntil)}`
  const { retriesAt } = protection
  if (policy.budget !== false && retriesAt !== null && retriesAt > now)
    return `the retry budget is spent; retries wait until ${timeText(retriesAt)}`
  const isRamping = protection.phase === "ramping" && policy.breaker !== false && !policy.breaker.report
  return isRamping ? "the backlog of an outage goes out slowly" : null
}

function lastError({ protection }: HealthFacts): string | null {
  return protection.lastError === null ? null : `last error: ${protection.lastError}`
}

function sentence(...parts: readonly (string | null)[]): string {
  return parts.filter((part) => part !== null).join("; ")
}
