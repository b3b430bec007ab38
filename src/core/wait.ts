/** Why a delivery waits, and when its next attempt starts, for the library, the API and the command line. */
import type { Moment } from "./clock.ts"
import { closedBy, type GateState } from "./gate.ts"

/**
 * `sending`: its request is in flight. `due`: it is in the lane's queue. `scheduled`: the sender gave a later time. `retry`: the delay after
 * a failure. `behind`: an ordered endpoint sends another delivery first. `held`: a Retry-After of the receiver. `breaker`: the endpoint's
 * circuit breaker is open. `budget`: the endpoint's retry budget is spent. `agent`: the endpoint's agent is not connected.
 */
export const WAIT_REASONS = [
  "sending",
  "due",
  "scheduled",
  "retry",
  "behind",
  "held",
  "breaker",
  "budget",
  "agent",
  "paused",
  "disabled",
  "deleted",
] as const
export type WaitReason = (typeof WAIT_REASONS)[number]

/** An unfinished delivery. */
export interface Waiting {
  readonly seq?: number
  /** Null: due now. */
  readonly nextRetryAt: number | null
  /** It waits for its first attempt at a time that the sender gave; `dated`: a date of the wall clock. */
  readonly deferred: boolean
  readonly dated: boolean
}

/** What keeps an endpoint's deliveries from being sent. */
export interface Gate extends GateState {
  /** Of an ordered endpoint: the delivery that all others wait for. */
  readonly head: { readonly seq: number; readonly nextRetryAt: number | null } | null
}

export interface Wait {
  readonly reason: WaitReason
  /**
   * The earliest start; null: it has started, or an operator decides. With the reason `agent`, the time at which the delivery is given up
   * unless the agent connects before; null: it waits for ever, or nobody knows.
   */
  readonly at: number | null
}

/** The endpoint's agent is not connected. */
export interface AgentAbsent {
  /** When age ends the delivery; null: never. */
  readonly givenUpAt: number | null
}

export function waitOf(
  waiting: Waiting,
  gate: Gate,
  isSending: boolean,
  { now, wall }: Moment,
  absent: AgentAbsent | null = null,
): Wait {
  if (isSending) return { reason: "sending", at: null }
  const closed = closedBy(gate, now)
  if (closed !== null && closed.until === null) return { reason: closed.reason, at: null }
  // A date is compared with the wall clock, and shown as it was given.
  const aheadMs = waiting.dated ? now - wall : 0
  const own: Wait = {
    reason: waiting.deferred ? "scheduled" : "retry",
    at: Math.max((waiting.nextRetryAt ?? 0) + aheadMs, now),
  }
  // Its delay would say when the next attempt starts, and without the agent there is none.
  if (absent !== null && (own.reason !== "scheduled" || own.at! <= now)) {
    const at = absent.givenUpAt
    return { reason: "agent", at: at !== null && at > now ? at : null }
  }
  const isBehind = gate.head !== null && !waiting.deferred && gate.head.seq !== waiting.seq
  const head: Wait = { reason: "behind", at: isBehind ? Math.max(gate.head.nextRetryAt ?? 0, now) : now }
  const held: Wait = { reason: closed?.reason ?? "held", at: closed?.until ?? 0 }
  const isRetry = waiting.nextRetryAt !== null && !waiting.deferred
  const budget: Wait = { reason: "budget", at: isRetry ? (gate.protection.retriesAt ?? 0) : 0 }
  const last = [own, head, held, budget].reduce((latest, one) => (one.at! > latest.at! ? one : latest))
  if (last.at! > now) return last === own ? { ...own, at: own.at! - aheadMs } : last
  return { reason: isBehind ? "behind" : "due", at: now }
}
