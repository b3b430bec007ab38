/** Whether requests to an endpoint may start: the vocabulary of reasons, and the part of the answer that the store knows. */

/** In the order in which they are named when several apply. `held`: a Retry-After of the receiver. */
export type GateReason = "deleted" | "disabled" | "paused" | "held" | "concurrency" | "rate"

/** What the store keeps of a lane's gate. */
export interface GateState {
  readonly deleted: boolean
  readonly disabled: boolean
  readonly paused: boolean
  /** Retry-After: nothing starts before this time. */
  readonly holdUntil: number | null
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
