/** How a request leaves: over HTTP here; a relay agent's connection is another transport with the same outcome. */
import type { ClientTls } from "../core/auth.ts"
import type { AttemptOutcome } from "../core/outcome.ts"

export interface OutboundRequest {
  readonly endpointId: string
  /** Of the endpoint: connections made for an older version are not used. */
  readonly version: number
  readonly url: string
  /** The same object for every request of this version: what is made of it is kept. */
  readonly headers: { readonly [name: string]: string }
  /** Of this request alone, names and values by turns; none of them is among the others. */
  readonly ownHeaders?: readonly string[]
  readonly body: Uint8Array
  /** One deadline for the whole attempt, from name resolution to the last byte of the body. */
  readonly timeoutMs: number
  readonly connectTimeoutMs: number
  readonly tls: ClientTls
}

export interface TransportResult {
  readonly outcome: AttemptOutcome | { readonly kind: "interrupted" }
  readonly responseStatus: number | null
  readonly responseBody: Uint8Array | null
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
  /** Cuts off what is under way; those sends end as `interrupted`. */
  interrupt(): void
  close(): Promise<void>
}
