/** What becomes of agents' connections and events: closed lists, for metrics and events. */
import { type AckResult, CLOSE } from "./relay-protocol.ts"

/** `lost`: without a word, or with a code of the agent's own. */
const REASONS = {
  done: "done",
  goingAway: "going_away",
  binary: "binary",
  tooBig: "too_big",
  unavailable: "unavailable",
  badFrame: "bad_frame",
  badKey: "bad_key",
  foreignEvent: "foreign_event",
  silent: "silent",
  replaced: "replaced",
  flood: "flood",
} as const satisfies { readonly [name in keyof typeof CLOSE]: string }
export const END_REASONS = [...Object.values(REASONS), "lost"] as const
/** Why a connection ended. */
export type EndReason = (typeof END_REASONS)[number]

const NAMES = Object.keys(CLOSE) as (keyof typeof CLOSE)[]

/** `code`: of WebSocket's close frame. */
export function endReasonOf(code: number): EndReason {
  const name = NAMES.find((one) => CLOSE[one] === code)
  return name === undefined ? "lost" : REASONS[name]
}

/**
 * `key`: it is wrong, expired, or no agent's. `protocol`: another subprotocol. `elsewhere`: this process holds no agents. `unavailable`: too
 * many connections, a server that stops, or a store that cannot be read.
 */
export const CONNECTION_REFUSALS = ["key", "protocol", "elsewhere", "unavailable"] as const
export type ConnectionRefusal = (typeof CONNECTION_REFUSALS)[number]

/** A connection that was accepted is counted again when it ends. */
export const CONNECTION_RESULTS = [
  "accepted",
  ...CONNECTION_REFUSALS.map((refusal) => `refused_${refusal}` as const),
  ...END_REASONS.map((reason) => `closed_${reason}` as const),
] as const
export type ConnectionResult = (typeof CONNECTION_RESULTS)[number]

/** `late`: after the deadline of its event, or for the second time. */
export const ACKNOWLEDGEMENT_RESULTS = [
  "success",
  "permanent",
  "transient",
  "late",
] as const satisfies readonly (AckResult | "late")[]
export type AcknowledgementResult = (typeof ACKNOWLEDGEMENT_RESULTS)[number]
