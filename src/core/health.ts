/** The health of an endpoint: one state, since when, and why, as a pure function of its stored state and its hourly sums. */
import { type AttemptWindow, DAY_HOURS, type HourlySum, windowOf } from "./attempt-window.ts"
import type { DisableReason } from "./gate.ts"
import { reasonOf } from "./health-reason.ts"
import type { Policy } from "./policy.ts"
import type { Protection } from "./protection.ts"

/**
 * From the best to the worst, by how little is delivered. `failing` is `Protection.isFailing`. `open`: the circuit breaker is open or
 * half-open. `degraded`: under 95 % of the attempts of the last hour succeeded. `offline`: the endpoint's agent is not connected.
 */
export const HEALTH_STATES = [
  "healthy",
  "degraded",
  "failing",
  "open",
  "offline",
  "paused",
  "disabled",
] as const
export type HealthState = (typeof HEALTH_STATES)[number]

const DEGRADED_BELOW = 0.95

export interface HealthFacts {
  readonly disabled: boolean
  readonly disabledAt: number | null
  readonly disabledReason: DisableReason | null
  readonly paused: boolean
  readonly pausedAt: number | null
  readonly holdUntil: number | null
  readonly protection: Protection
  readonly createdAt: number
  readonly policy: Pick<Policy, "breaker" | "budget" | "autoDisable">
  /** Null: its agent is connected, or it has none. */
  readonly absence: AgentAbsence | null
}

/** The endpoint's agent is not connected. */
export interface AgentAbsence {
  readonly agent: string
  readonly since: number
  /** It is connected with a key that does not reach the endpoint. */
  readonly hasOtherKey: boolean
  /** Null: it was never connected. */
  readonly lastSeenAt: number | null
  /** Deliveries; null: nobody counted them. */
  readonly waiting: { readonly count: number; readonly isLowerBound: boolean } | null
  /** When age ends the oldest delivery that waits; null: never, or nothing waits. */
  readonly givenUpAt: number | null
}

export interface Health {
  readonly health: HealthState
  /** Null when nothing recorded it, as for `healthy`. */
  readonly since: number | null
  /** For an operator. */
  readonly why: string
  readonly lastHour: AttemptWindow
  readonly lastDay: AttemptWindow
}

/** `sums` are those of the last day. */
export function healthOf(facts: HealthFacts, sums: readonly HourlySum[], now: number): Health {
  const lastHour = windowOf(sums, now, 1)
  const health = stateOf(facts, lastHour, now)
  return {
    health,
    since: sinceOf(health, facts, sums),
    why: reasonOf(health, facts, lastHour, now),
    lastHour,
    lastDay: windowOf(sums, now, DAY_HOURS),
  }
}

function stateOf(facts: HealthFacts, { successRate }: AttemptWindow, now: number): HealthState {
  if (facts.disabled) return "disabled"
  if (facts.paused) return "paused"
  if (facts.absence !== null) return "offline"
  if (isOpen(facts, now)) return "open"
  if (facts.protection.isFailing) return "failing"
  return successRate !== null && successRate < DEGRADED_BELOW ? "degraded" : "healthy"
}

/** Without a breaker in the policy, an open time that was stored before still runs out, and no probe follows. */
function isOpen({ protection, policy: { breaker } }: HealthFacts, now: number): boolean {
  if (protection.until !== null && protection.until > now) return true
  return protection.phase === "open" && breaker !== false && !breaker.report
}

function sinceOf(health: HealthState, facts: HealthFacts, sums: readonly HourlySum[]): number | null {
  switch (health) {
    case "disabled":
      return facts.disabledAt
    case "paused":
      return facts.pausedAt
    case "offline":
      return facts.absence!.since
    case "open":
      return facts.protection.since || null
    case "failing":
      return facts.protection.failingSince
    case "degraded":
      return Math.max(degradedSince(sums) ?? 0, facts.createdAt)
    case "healthy":
      return null
    default:
      return health satisfies never
  }
}

/** The start of the latest run of hours that are each under 95 %. Hours without attempts do not end the run. */
function degradedSince(sums: readonly HourlySum[]): number | null {
  let since: number | null = null
  for (const { hour, attempts, succeeded } of sums.toSorted((a, b) => b.hour - a.hour)) {
    if (attempts === 0) continue
    if (succeeded < DEGRADED_BELOW * attempts) since = hour
    else if (since !== null) break
  }
  return since
}
