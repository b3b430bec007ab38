/** Whether requests to an endpoint may start: the vocabulary of reasons, and the part of the answer that the store knows. */

import type { BreakerTransition } from "./breaker.ts"
import type { FailingTransition } from "./failing.ts"
import type { Protection } from "./protection.ts"

/**
 * In the order in which they are named when several apply. `held`: a Retry-After of the receiver. `breaker`: the circuit breaker is open.
 * `probe`: it is half-open, and another request is its probe. `ramp`: the backlog goes out slowly after an outage. `budget`: the retry
 * budget is spent; first attempts may start. `agent`: the endpoint's agent is not connected.
 */
export type GateReason =
  | "deleted"
  | "disabled"
  | "paused"
  | "held"
  | "breaker"
  | "probe"
  | "concurrency"
  | "rate"
  | "ramp"
  | "budget"
  | "agent"

/** The part of a gate that the owner of the lane learns from outcomes. */
export interface LearnedGate {
  /** Retry-After: nothing starts before this time. */
  readonly holdUntil: number | null
  readonly protection: Protection
}

/** The part of a gate that the store keeps. */
export interface GateState extends LearnedGate {
  readonly deleted: boolean
  readonly disabled: boolean
  readonly paused: boolean
}

/** `gone`: the receiver answered 410. `failing`: it had no success for too long. */
export const DISABLE_REASONS = ["manual", "gone", "failing"] as const
export type DisableReason = (typeof DISABLE_REASONS)[number]

export type GateTransition = BreakerTransition | FailingTransition

export interface LoadedGate extends GateState {
  /** Goes up when an operator resets the gate: the store refuses updates that were computed before the reset. */
  readonly epoch: number
  /** Of the update that was written last. */
  readonly token: number
  readonly revision: number
}

/**
 * A change of the learned part, written with the settle that caused it. Settles of one lane may run at once: within an epoch the store keeps
 * the update with the highest fencing token, and under one token the one with the highest revision.
 */
export interface GateUpdate extends LearnedGate {
  readonly epoch: number
  readonly revision: number
  /** No request may start any more: deliveries that are being handed over are recalled. */
  readonly closes: boolean
  /** Why the endpoint is disabled with this update; null: it is not. */
  readonly disables: DisableReason | null
  /** Told when the update is written, with the state before; not stored. */
  readonly transitions: readonly GateTransition[]
  readonly previous: Protection
}

export interface Closed<R extends GateReason = GateReason> {
  readonly reason: R
  /** Null when somebody else decides when. */
  readonly until: number | null
}

/** Null while the stored part of the gate lets requests start. */
export function closedBy(
  { deleted, disabled, paused, holdUntil, protection }: GateState,
  now: number,
): Closed<"deleted" | "disabled" | "paused" | "held" | "breaker"> | null {
  if (deleted) return { reason: "deleted", until: null }
  if (disabled) return { reason: "disabled", until: null }
  if (paused) return { reason: "paused", until: null }
  const heldUntil = holdUntil ?? 0
  const openUntil = protection.until ?? 0
  if (heldUntil > now && heldUntil >= openUntil) return { reason: "held", until: heldUntil }
  if (openUntil > now) return { reason: "breaker", until: openUntil }
  return null
}
