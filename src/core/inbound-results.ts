/** What became of a request to a source. */

export const REFUSAL_REASONS = [
  /** There is no such source, or it is disabled. */
  "unknown",
  "rate",
  "size",
  /** The body did not come in time, or the sender went away. */
  "timeout",
  "handshake",
  "signature",
  /** The server is overloaded or closing, or the store failed: the provider tries again. */
  "unavailable",
] as const
export type RefusalReason = (typeof REFUSAL_REASONS)[number]

const REFUSALS = REFUSAL_REASONS.map((reason) => `refused_${reason}` as const)

export const INBOUND_RESULTS = ["accepted", "duplicate", "handshake", ...REFUSALS] as const
export type InboundResult = (typeof INBOUND_RESULTS)[number]
