/**
 * The circuit breaker of an endpoint, as pure functions from state and signal to state.
 *
 *   closed ── failures in a row, or too many in the window ──▶ open ── until ──▶ half-open: one probe
 *     ▲                                                         ▲                   │        │
 *     └── backlog is gone ── ramping ◀────────────── good ──────┼───────────────────┘        │
 *                               └────────── fails again ────────┴───────────── bad ──────────┘
 */
import type { Random } from "./backoff.ts"
import type { Outcome } from "./outcome.ts"
import type { BreakerPolicy } from "./policy.ts"
import { HEALTHY, type Protection } from "./protection.ts"

/** Whether a receiver is up, as an outcome shows. */
export type Signal = "up" | "down"

/** Null: no request ended, so the outcome shows nothing. */
export function signalOf(outcome: Outcome): Signal | null {
  switch (outcome.kind) {
    case "response":
      return outcome.status >= 500 || outcome.status === 408 ? "down" : "up"
    case "failure":
      // Posthorn refused the target, or got no token for it: the receiver was not asked.
      return outcome.cause === "target_forbidden" || outcome.cause === "auth_error" ? null : "down"
    case "ack":
      return outcome.result === "transient" ? "down" : "up"
    default:
      return null
  }
}

/** Recent attempts, as the owner of the lane remembers them. */
export interface Recent {
  /** Within the breaker's window, this outcome included. */
  readonly attempts: number
  readonly downs: number
  /** Deliveries a second in the minutes before. */
  readonly rate: number
  /** Nothing is queued or due any more. */
  readonly isBacklogGone: boolean
}

/** How much faster than before the outage the backlog may go out. */
const RAMP_FACTOR = 1.5
/** Far more than a lane sends. */
const MOST_RAMP = 10_000
/** ±20 %, so that breakers that opened together do not probe together. */
const JITTER = 0.2

/** `isProbe`: the request started while the breaker was half-open. Other outcomes do not decide an open breaker. */
export function learn(
  state: Protection,
  signal: Signal,
  isProbe: boolean,
  recent: Recent,
  policy: BreakerPolicy,
  now: number,
  random: Random,
): Protection {
  if (state.phase === "open") {
    if (!isProbe) return state
    return signal === "up"
      ? recovered(state, recent, policy, now)
      : opened(state, recent, policy, now, random)
  }
  const downs = signal === "up" ? 0 : state.downs + 1
  if (signal === "down" && mustOpen(downs, recent, policy))
    return policy.report ? reported(state, downs) : opened({ ...state, downs }, recent, policy, now, random)
  const isOver = state.phase === "ramping" && recent.isBacklogGone && signal === "up"
  const next: Protection = isOver ? { ...state, phase: "closed", since: now, ramp: null } : state
  const reportedStill = next.reported && signal === "down"
  if (next === state && downs === state.downs && reportedStill === state.reported) return state
  return { ...next, downs, reported: reportedStill }
}

function mustOpen(downs: number, recent: Recent, policy: BreakerPolicy): boolean {
  if (downs >= policy.failures) return true
  return recent.attempts >= policy.attempts && recent.downs >= policy.ratio * recent.attempts
}

function reported(state: Protection, downs: number): Protection {
  return state.reported && downs === state.downs ? state : { ...state, downs, reported: true }
}

function opened(
  state: Protection,
  { rate }: Pick<Recent, "rate">,
  policy: BreakerPolicy,
  now: number,
  random: Random,
): Protection {
  const step = state.phase === "open" ? state.step : stepAfterHealth(state, policy, now)
  const openMs = openMsOf(step, policy) * (1 - JITTER + 2 * JITTER * random())
  return {
    ...state,
    phase: "open",
    since: state.phase === "open" ? state.since : now,
    until: now + Math.round(openMs),
    step: step + 1,
    // From before the outage: while the breaker is open or ramping, the rate says nothing.
    ramp: state.ramp ?? rampFor(rate, policy),
  }
}

function rampFor(rate: number, { ramp }: BreakerPolicy): number {
  return Math.max(ramp, Math.floor(rate * RAMP_FACTOR))
}

/** Without jitter. */
export function openMsOf(step: number, { open, maxOpen }: BreakerPolicy): number {
  // 2 ** 1024 is Infinity, which the longest time bounds.
  return Math.min(open * 2 ** step, maxOpen) * 1000
}

/** One step back for each interval, as long as the last open one, in which the breaker stayed closed. */
function stepAfterHealth({ step, since }: Protection, policy: BreakerPolicy, now: number): number {
  let left = step
  for (let healthyMs = now - since; left > 0; left--) {
    healthyMs -= openMsOf(left - 1, policy)
    if (healthyMs < 0) break
  }
  return left
}

/** Without a backlog there is nothing to ramp. A breaker that was opened by hand takes the rate that the owner still remembers. */
function recovered(
  state: Protection,
  { rate, isBacklogGone }: Recent,
  policy: BreakerPolicy,
  now: number,
): Protection {
  const after = { ...state, since: now, downs: 0 }
  if (isBacklogGone) return { ...after, phase: "closed", ramp: null }
  return { ...after, phase: "ramping", ramp: state.ramp ?? rampFor(rate, policy) }
}

/** For a policy whose breaker was removed, or only reports: the breaker neither holds nor slows the lane. */
export function withoutBreaker(state: Protection): Protection {
  if (state.phase === "closed" && state.until === null) return state
  return { ...state, phase: "closed", since: 0, until: null, step: 0, downs: 0, ramp: null }
}

/** A ramp that lasts this long limits a receiver that works: a sender that sends more than the limit would never catch up. */
const RAMP_EXACT_MS = 1_800_000
const RAMP_DOUBLES_MS = 600_000

/** The rate limit while ramping, in requests a second; null in other phases. After half an hour it doubles every ten minutes. */
export function rampAt(
  { phase, since, ramp }: Protection,
  policy: BreakerPolicy,
  now: number,
): number | null {
  if (phase !== "ramping") return null
  const doublings = Math.floor((now - since - RAMP_EXACT_MS) / RAMP_DOUBLES_MS) + 1
  return Math.min((ramp ?? policy.ramp) * 2 ** Math.max(0, doublings), MOST_RAMP)
}

export type BreakerTransition = "opened" | "closed"

/** The change that operators are told of. A breaker that only reports is told as if it had opened. */
export function transitionOf(before: Protection, after: Protection): BreakerTransition | null {
  const wasOpen = before.phase === "open" || before.reported
  const isOpen = after.phase === "open" || after.reported
  if (isOpen && (!wasOpen || before.until !== after.until)) return "opened"
  return wasOpen && !isOpen ? "closed" : null
}

/** By an operator: closed, without a ramp, as if it had never opened, and with a full retry budget. */
export function reset({ failures, failingSince, isFailing, lastError, warnings }: Protection): Protection {
  return { ...HEALTHY, failures, failingSince, isFailing, lastError, warnings }
}

/** By an operator: open now, as after a failure. */
export function tripped(state: Protection, policy: BreakerPolicy, now: number, random: Random): Protection {
  return { ...opened({ ...state, downs: 0 }, { rate: 0 }, policy, now, random), ramp: state.ramp }
}
