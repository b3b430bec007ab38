/** How a request leaves: over HTTP here; a relay agent's connection is another transport with the same outcome. */
import type { ClientTls } from "../core/auth.ts"
import type { Bytes } from "../core/bytes.ts"
import type { AttemptOutcome } from "../core/outcome.ts"

export interface OutboundRequest {
  readonly endpointId: string
  /** Of the endpoint: connections made for an older version are not used. */
  readonly version: number
  readonly url: string
  /** The same object for every request of this version: what is made of it is kept. */
  readonly headers: { readonly [name: string]: string }
  /** Left out for a request that is no webhook. None of what it says may be among `headers`. */
  readonly webhook?: WebhookHead
  readonly body: Bytes
  /** One deadline for the whole attempt, from name resolution to the last byte of the body. */
  readonly timeoutMs: number
  readonly connectTimeoutMs: number
  readonly tls: ClientTls
}

/** What a webhook says of itself; each transport has its own way to say it. */
export interface WebhookHead {
  readonly contentType: string
  /** The same for every attempt. */
  readonly messageId: string
  readonly timestampSeconds: number
  readonly signature: string
  readonly authorization: string | null
}

export interface TransportResult {
  readonly outcome: AttemptOutcome | { readonly kind: "interrupted" }
  readonly responseStatus: number | null
  readonly responseBody: Bytes | null
  /** The body was longer than what is kept. */
  readonly responseTruncated: boolean
  /** For the operator's log only: what a tenant sees is the outcome's cause. */
  readonly detail: string | null
}

export interface Transport {
  /** Never rejects for what a receiver does; a rejection is a fault of our own. */
  send(request: OutboundRequest): Promise<TransportResult>
  /** Drops the connections to an endpoint that was changed or deleted. */
  forget(endpointId: string): void
  /** Cuts off the requests under way, and says how many they were; those sends end as `interrupted`. */
  interrupt(): number
  close(): Promise<void>
}
