/** A webhook as a source took it in: kept with its message, so that it can be passed on as it came. The body is the message's payload. */

export type HeaderPair = readonly [name: string, value: string]

export interface InboundRequest {
  readonly sourceId: string
  readonly method: string
  /** The part of the path behind the source's URL, percent-encoded as it came: empty, or with a leading slash. */
  readonly path: string
  /** As it came: empty, or with a leading question mark. */
  readonly query: string
  /** In their order, with the case of their names; a name may occur more than once. */
  readonly headers: readonly HeaderPair[]
}

/** As it is stored with its message. */
export function writeInbound(request: InboundRequest): string {
  return JSON.stringify(request)
}

/** Posthorn wrote the text; one that an operator typed throws. */
export function readInbound(stored: string): InboundRequest {
  return JSON.parse(stored)
}

/** They belong to one connection, or to the sender's login: the next receiver must not get them. */
const NOT_PASSED_ON = new Set(
  (
    "host content-length transfer-encoding connection keep-alive te trailer upgrade expect accept-encoding " +
    "proxy-authenticate proxy-authorization proxy-connection authorization cookie cookie2 set-cookie " +
    "content-type idempotency-key traceparent tracestate baggage"
  ).split(" "),
)

/** Signature headers of the provider would collide with Posthorn's own: `webhook-id` becomes `x-source-webhook-id`. */
const SIGNATURE_HEADER = /^(webhook|svix)-/i

/** The headers that an HTTP endpoint gets beside Posthorn's own. */
export function passedOn({ headers }: InboundRequest): readonly HeaderPair[] {
  const named = new Set(
    headers
      .filter(([name]) => name.toLowerCase() === "connection")
      .flatMap(([, value]) =>
        value
          .toLowerCase()
          .split(",")
          .map((name) => name.trim()),
      ),
  )
  return headers
    .filter(([name]) => !NOT_PASSED_ON.has(name.toLowerCase()) && !named.has(name.toLowerCase()))
    .map(([name, value]) => (SIGNATURE_HEADER.test(name) ? [`x-source-${name}`, value] : [name, value]))
}
