/** What a handler gets, and what it answers. */
import type { HeaderPair } from "../core/inbound-request.ts"
import type { AckResult, EventFrame } from "../core/relay-protocol.ts"
import { decodeBody } from "./encoding.ts"

/** A webhook, as an agent hands it to its program. */
export interface AgentEvent {
  /** The same for each attempt: a program that has seen it before need not do the work again. */
  readonly deliveryId: string
  readonly messageId: string
  readonly endpointId: string
  /** The source that took the webhook in; null for a message that was sent by the API. */
  readonly sourceId: string | null
  readonly eventType: string
  /** From 1. */
  readonly attempt: number
  /** An operator asked for this attempt. */
  readonly manual: boolean
  readonly receivedAt: Date
  readonly method: string
  /** Behind the source's URL, percent-encoded as it came: empty, or with a leading slash. */
  readonly path: string
  /** As it came: empty, or with a leading question mark. */
  readonly query: string
  /** In their order, with the case of their names; a name may occur more than once. */
  readonly headers: readonly HeaderPair[]
  readonly body: Uint8Array
  /** W3C trace context. */
  readonly traceparent: string | null
  /** The time for one request to a local program. A handler may take longer, at most an hour: the agent tells the server. */
  readonly deadlineMs: number
}

/**
 * What a handler returns: nothing or "success", "permanent" (do not try again), "transient" (try again), or details. Without `result` the
 * status decides: 2xx is a success, 4xx permanent, and 408, 425, 429 and all others transient. A handler that throws has failed transiently.
 */
export type AgentAnswer =
  | undefined
  | AckResult
  | {
      readonly result?: AckResult
      /** An HTTP status. */
      readonly status?: number
      /** Why it failed, for people. */
      readonly error?: string
      /** Of a transient failure: not sooner than this. */
      readonly retryAfterSeconds?: number
      /** Kept with the attempt: the first 64 KiB. */
      readonly body?: string | Uint8Array
    }

export type AgentHandler = (event: AgentEvent) => AgentAnswer | Promise<AgentAnswer> | Promise<void>

export function eventFrom(frame: EventFrame): AgentEvent {
  return {
    deliveryId: frame.id,
    messageId: frame.messageId,
    endpointId: frame.endpointId,
    sourceId: frame.sourceId,
    eventType: frame.eventType,
    attempt: frame.attempt,
    manual: frame.manual,
    receivedAt: new Date(frame.receivedAt),
    method: frame.method,
    path: frame.path,
    query: frame.query,
    headers: frame.headers,
    body: decodeBody(frame),
    traceparent: frame.traceparent,
    deadlineMs: frame.deadline,
  }
}
