/**
 * The frames between a server and an agent, `posthorn.relay.v1` (docs/relay-protocol.md). Both sides use these types and parsers. A frame is
 * one JSON object in a WebSocket text message.
 */
import type { HeaderPair } from "./inbound-request.ts"

export const RELAY_PROTOCOL = "posthorn.relay.v1"
/** The path of the WebSocket on the server. */
export const RELAY_PATH = "/api/v1/relay"

/** The name of an agent in an endpoint's URL, `relay://NAME`. */
export const AGENT_NAME = /^[a-z0-9-]{1,63}$/

export const HEARTBEAT_MS = 20_000
/** A side that got nothing for this long, neither a frame nor a pong, closes the connection. */
export const DEAD_MS = 45_000
/** The first frame must come within this time. */
export const HELLO_MS = 10_000
/** The most events that an agent may have unacknowledged. */
export const MOST_CREDIT = 16
/** The largest frame that a server takes: an acknowledgement with 64 KiB of response, as base64. */
export const MOST_AGENT_FRAME_BYTES = 131_072
/** The most frames of an agent without a use in ten seconds; more are a flood. */
export const MOST_NOISE = 300
/** The part of the local program's response that an agent passes on. */
export const MOST_RESPONSE_BYTES = 65_536
/** How far `working` frames can move the deadline of an event. */
export const MOST_WORKING_MS = 3_600_000

/** WebSocket close codes with a meaning in this protocol. Behind those from 4400 to 4407 and 4429 an agent is at fault. */
export const CLOSE = {
  done: 1000,
  goingAway: 1001,
  binary: 1003,
  tooBig: 1009,
  /** The server cannot take the agent now; connect again later. */
  unavailable: 1013,
  badFrame: 4400,
  badKey: 4401,
  foreignEvent: 4403,
  silent: 4408,
  replaced: 4409,
  flood: 4429,
} as const

/** The beginning of a body or response. `body` where it is UTF-8, `base64` where it is not. */
export type EncodedBody =
  | { readonly body: string; readonly base64?: undefined }
  | { readonly base64: string; readonly body?: undefined }

export interface HelloFrame {
  readonly kind: "hello"
  /** The NAME of `relay://NAME`. */
  readonly agent: string
  /** For people: the program and its version. */
  readonly version: string
  /** The most events that the agent wants at once. */
  readonly credit: number
}

export type AckResult = "success" | "permanent" | "transient"

export interface AckFrame {
  readonly kind: "ack"
  readonly id: string
  readonly attempt: number
  readonly token: string
  readonly result: AckResult
  /** The HTTP status of the local program. */
  readonly status: number | null
  /** Why it failed, for people. */
  readonly error: string | null
  /** Seconds, after a transient failure. */
  readonly retryAfter: number | null
  readonly response: (EncodedBody & { readonly truncated?: boolean }) | null
}

/** The agent still works on the event: its deadline starts anew. */
export interface WorkingFrame {
  readonly kind: "working"
  readonly id: string
  readonly token: string
}

/** From now on the agent takes at most `n` events at once. 0 pauses. */
export interface CreditFrame {
  readonly kind: "credit"
  readonly n: number
}

/** From an agent: it takes no more events, and leaves when those in flight are settled. From a server: it stops; connect again. */
export interface DrainFrame {
  readonly kind: "drain"
}

export type AgentFrame = HelloFrame | AckFrame | WorkingFrame | CreditFrame | DrainFrame

export interface WelcomeFrame {
  readonly kind: "welcome"
  readonly session: string
  /** Goes up with each connection of the agent. A higher one replaces a lower one. */
  readonly epoch: number
  /** Seconds between the server's pings. */
  readonly heartbeat: number
}

export type EventFrame = EncodedBody & {
  readonly kind: "event"
  /** The delivery: the same for each attempt. */
  readonly id: string
  readonly attempt: number
  /** An operator asked for this attempt: an agent that remembers an outcome from before runs the event again. */
  readonly manual: boolean
  /** Of this attempt on this connection; an acknowledgement repeats it. */
  readonly token: string
  readonly messageId: string
  readonly eventType: string
  readonly endpointId: string
  /** The source that took the webhook in; null for a message that was sent by the API. */
  readonly sourceId: string | null
  /** ISO 8601. */
  readonly receivedAt: string
  readonly method: string
  readonly path: string
  readonly query: string
  readonly headers: readonly HeaderPair[]
  /** Milliseconds until the attempt counts as a transient failure. */
  readonly deadline: number
  /** W3C trace context, where receivers get it. */
  readonly traceparent: string | null
}

/** The outcome of an acknowledged event is committed. */
export interface SettledFrame {
  readonly kind: "settled"
  readonly id: string
  readonly attempt: number
  /** What became of the delivery; null: its outcome did not count, since somebody else changed it. */
  readonly status: "delivered" | "dead" | "failed" | "pending" | null
}

/** The answer to a frame of an unknown kind, and to an acknowledgement that came too late. */
export interface ErrorFrame {
  readonly kind: "error"
  readonly code: "unknown_kind" | "late"
  readonly detail: string
  readonly id: string | null
}

export type ServerFrame = WelcomeFrame | EventFrame | SettledFrame | DrainFrame | ErrorFrame
