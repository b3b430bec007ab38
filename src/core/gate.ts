/** Whether requests to an endpoint may start: the vocabulary of reasons, and the part of the answer that the store knows. */

/** In the order in which they are named when several apply. `held`: a Retry-After of the receiver. */
export type GateReason = "deleted" | "disabled" | "paused" | "held" | "concurrency" | "rate"

/** The part of a gate that the owner of the lane learns from outcomes. */
export interface LearnedGate {
  /** Retry-After: nothing starts before this time. */
  readonly holdUntil: number | null
}

/** The part of a gate that the store keeps. */
export interface GateState extends LearnedGate {
  readonly deleted: boolean
  readonly disabled: boolean
  readonly paused: boolean
}

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
}

export interface Closed<R extends GateReason = GateReason> {
  readonly reason: R
  /** Null when somebody else decides when. */
  readonly until: number | null
}

/** Null while the stored part of the gate lets requests start. */
export function closedBy(
  { deleted, disabled, paused, holdUntil }: GateState,
  now: number,
): Closed<"deleted" | "disabled" | "paused" | "held"> | null {
  if (deleted) return { reason: "deleted", until: null }
  if (disabled) return { reason: "disabled", until: null }
  if (paused) return { reason: "paused", until: null }
  if (holdUntil !== null && holdUntil > now) return { reason: "held", until: holdUntil }
  return null
}
