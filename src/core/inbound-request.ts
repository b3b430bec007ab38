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

/**
 * They belong to one connection or to the sender's login, proxies in front of the source added them, or they make a receiver take the
 * POST for another method: the next receiver must not get them.
 */
const NOT_PASSED_ON = new Set(
  (
    "host content-length transfer-encoding connection keep-alive te trailer upgrade http2-settings expect accept-encoding " +
    "proxy-authenticate proxy-authorization proxy-connection authorization cookie cookie2 set-cookie " +
    "forwarded via cdn-loop x-real-ip x-client-ip true-client-ip cf-connecting-ip cf-connecting-ipv6 " +
    "x-http-method x-http-method-override x-method-override " +
    "content-type idempotency-key traceparent tracestate baggage"
  ).split(" "),
)
const OF_PROXIES = /^x-forwarded-/

/** Signature headers of the provider would collide with Posthorn's own: `webhook-id` becomes `x-source-webhook-id`. */
const SIGNATURE_HEADER = /^(webhook|svix)-/

/** By default Apache refuses requests with more headers, and nginx with more bytes of them. */
const MOST_HEADERS = 100
const MOST_HEADER_BYTES = 32_768
const SEPARATORS = ": \r\n".length

/** The headers that an HTTP endpoint gets beside Posthorn's own. `others`: names that the request has anyway. */
export function passedOn({ headers }: InboundRequest, others: readonly string[] = []): readonly HeaderPair[] {
  const taken = new Set([...others, ...namedByConnection(headers)].map(comparable))
  const passed: HeaderPair[] = []
  let room = MOST_HEADER_BYTES
  for (const [name, value] of headers) {
    const compared = comparable(name)
    if (NOT_PASSED_ON.has(compared) || OF_PROXIES.test(compared) || taken.has(compared)) continue
    const sent = SIGNATURE_HEADER.test(compared) ? `x-source-${name}` : name
    if (taken.has(comparable(sent))) continue
    const bytes = sent.length + value.length + SEPARATORS
    if (passed.length === MOST_HEADERS || bytes > room) continue
    room -= bytes
    passed.push([sent, value])
  }
  return passed
}

/** CGI and WSGI give a program `webhook_id` and `webhook-id` under one name. */
function comparable(name: string): string {
  return name.toLowerCase().replaceAll("_", "-")
}

/** The headers that were meant for the source alone. */
function namedByConnection(headers: readonly HeaderPair[]): readonly string[] {
  const values = headers.filter(([name]) => name.toLowerCase() === "connection").map(([, value]) => value)
  return values.join().split(/[\s,]+/)
}
