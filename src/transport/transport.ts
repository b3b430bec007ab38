/** The contract of a transport: how a request leaves. `router.ts` chooses one by the scheme of the URL; `http.ts` is the one for HTTP. */

import type { AttemptTiming } from "../core/attempt-timing.ts"
import type { ClientTls } from "../core/auth.ts"
import type { Bytes } from "../core/bytes.ts"
import type { HeaderPair } from "../core/inbound-request.ts"
import type { AttemptOutcome } from "../core/outcome.ts"
import type { DeliveryStatus } from "../core/settle.ts"
import type { AttemptSpan } from "../observe/tracing.ts"

export interface OutboundRequest {
  readonly endpointId: string
  /** The endpoint's version. Connections that were opened for an older version are not used. */
  readonly version: number
  readonly url: string
  /** The same object for every request of this version: it is the key of a cache. */
  readonly headers: { readonly [name: string]: string }
  /** Left out for a request that is no webhook (OAuth tokens). `headers` must have none of the headers that this one becomes. */
  readonly webhook?: WebhookHead
  readonly body: Bytes
  /** One deadline for the whole attempt, from name resolution to the last byte of the body. */
  readonly timeoutMs: number
  readonly connectTimeoutMs: number
  readonly tls: ClientTls
}

/** The metadata of a webhook. Each transport writes it in its own form. */
export interface WebhookHead {
  readonly contentType: string
  /** The same for every attempt. */
  readonly messageId: string
  readonly timestampSeconds: number
  readonly signature: string
  readonly authorization: string | null
  /** The trace context, where the receiver gets it. */
  readonly traceparent: string | null
  /** Headers of the request that a source took in. None has the name of another header of the request. */
  readonly passedOn: readonly HeaderPair[]
  readonly delivery: DeliveryHead
}

/** For a transport that passes the delivery on as a whole, with the request that a source took in. */
export interface DeliveryHead {
  readonly id: string
  /** Finished attempts before this one. */
  readonly attemptCount: number
  /** An operator asked for this attempt. */
  readonly manual: boolean
  readonly eventType: string
  readonly receivedAt: number
  /** As `core/inbound-request.ts` writes it; null for a message that no source took in. */
  readonly inbound: string | null
}

/** Whether a request may start now. `absent`: the endpoint's agent is not connected. `busy`: the agent takes no more at once. */
export type Reach = "open" | "busy" | "absent"

export interface TransportResult {
  readonly outcome: AttemptOutcome | { readonly kind: "interrupted" }
  readonly responseStatus: number | null
  readonly responseBody: Bytes | null
  /** The body was longer than the limit; only its beginning is kept. */
  readonly responseTruncated: boolean
  /** For the operator's log only; a tenant sees the outcome's cause. */
  readonly detail: string | null
  /** Left out where Posthorn opens no connection for the request. */
  readonly timing?: AttemptTiming
  /** Called when the outcome is written. Null: it did not count, since somebody else had changed the delivery. */
  readonly settled?: (status: DeliveryStatus | null) => void
}

/** What the engine uses. */
export interface Transport {
  /** Never rejects because of a receiver; a rejection is a fault of our own. `span` is told of the request's phases. */
  send(request: OutboundRequest, span?: AttemptSpan | null): Promise<TransportResult>
  /** Null: requests to this endpoint may always start. */
  reachOf(endpoint: EndpointAddress): (() => Reach) | null
  /** Drops the connections of an endpoint that was changed or deleted. */
  forget(endpointId: string): void
  /** Cuts off the requests in flight and returns their number; their sends end as `interrupted`. */
  interrupt(): number
  close(): Promise<void>
}

export interface EndpointAddress {
  readonly id: string
  readonly url: string
}

/** A transport that the router can choose. */
export interface SchemeTransport extends Transport {
  /** As `URL.protocol` writes them: `["http:", "https:"]`. */
  readonly schemes: readonly string[]
  /** Only endpoints that Posthorn makes for itself have these schemes; they are refused from every caller. */
  readonly isInternal?: true
  /** Only the process that has an endpoint's connection can serve its lane: lanes are claimed by endpoint, not by transport. */
  readonly isBound?: true
  /** Why requests cannot go to this URL, as a sentence that follows the name of the field, or null. */
  urlProblem(url: string): Promise<string | null>
}
