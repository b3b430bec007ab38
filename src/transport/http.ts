/** Delivery over HTTP: one request, one absolute deadline, a bounded response, no redirects. */
import { type Bytes, toBuffer } from "../core/bytes.ts"
import type { Clock } from "../core/clock.ts"
import { describe } from "../core/errors.ts"
import { HEADER_NAME, NOT_IN_A_HEADER } from "../core/header.ts"
import type { FailureCause } from "../core/outcome.ts"
import { Deadlines, type Limited } from "./deadlines.ts"
import type { AnswerReader } from "./egress/answer.ts"
import type { Asker, Connection } from "./egress/connection.ts"
import { EgressError, type Guard, type Target } from "./egress/guard.ts"
import { Pools } from "./egress/pools.ts"
import type { OutboundRequest, Transport, TransportResult, WebhookHead } from "./transport.ts"

const EXCERPT_BYTES = 512

export class HttpTransport implements Transport {
  readonly #guard: Guard
  readonly #pools: Pools
  /** What every request of an endpoint begins with; null for a header that cannot be sent. */
  readonly #beginnings = new WeakMap<
    OutboundRequest["headers"],
    { readonly url: string; readonly text: string | null }
  >()
  readonly #deadlines: Deadlines<UnderWay>
  #isClosed = false

  constructor(clock: Clock, guard: Guard) {
    this.#deadlines = new Deadlines(clock)
    this.#guard = guard
    this.#pools = new Pools(clock, guard)
  }

  send(request: OutboundRequest): Promise<TransportResult> {
    const target = this.#guard.target(request.url)
    if (target === null) return Promise.resolve(forbidden(request.url))
    const head = this.#headOf(request, target)
    if (head === null)
      return Promise.resolve(
        noAnswer({ kind: "failure", cause: "network_error" }, "a header has what cannot stand in a line"),
      )
    if (this.#isClosed) return Promise.resolve(noAnswer({ kind: "interrupted" }, "closed"))
    const connection = this.#pools.borrow(request, target.origin)
    const { promise, resolve } = Promise.withResolvers<TransportResult>()
    const underWay = new UnderWay(request.timeoutMs, this.#deadlines, connection, resolve)
    connection.request(head, request.body, underWay)
    return promise
  }

  /** Null for a header that cannot be sent. */
  #headOf(request: OutboundRequest, target: Target): string | null {
    const beginning = this.#beginningOf(request, target)
    const own = request.webhook === undefined ? "" : webhookLines(request.webhook)
    if (beginning === null || own === null) return null
    return `${beginning}${own}content-length: ${request.body.length}\r\n\r\n`
  }

  #beginningOf({ url, headers }: OutboundRequest, { host, path }: Target): string | null {
    const known = this.#beginnings.get(headers)
    if (known?.url === url) return known.text
    // Nothing here unpacks: 50 kB of gzip became 52 MB for who did.
    const sent = { host, ...headers, connection: "keep-alive", "accept-encoding": "identity" }
    const entries = Object.entries(sent)
    const canBeSent = entries.every(([name, value]) => HEADER_NAME.test(name) && !NOT_IN_A_HEADER.test(value))
    const lines = entries.map(([name, value]) => `${name}: ${value}\r\n`)
    const text = canBeSent ? [`POST ${path} HTTP/1.1\r\n`, ...lines].join("") : null
    this.#beginnings.set(headers, { url, text })
    return text
  }

  forget(endpointId: string): void {
    this.#pools.forget(endpointId)
  }

  interrupt(): number {
    const all = this.#deadlines.all()
    for (const one of all) one.cut(INTERRUPTED)
    return all.length
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.interrupt()
    this.#pools.close()
  }
}

/** A request until its answer, with nothing of its bytes: hundreds are kept at once, and the collector would copy them again and again. */
class UnderWay implements Limited, Asker {
  readonly timeoutMs: number
  readonly #deadlines: Deadlines<UnderWay>
  readonly #resolve: (result: TransportResult) => void
  #connection: Connection
  #isOver = false

  constructor(
    timeoutMs: number,
    deadlines: Deadlines<UnderWay>,
    connection: Connection,
    resolve: (result: TransportResult) => void,
  ) {
    this.timeoutMs = timeoutMs
    this.#deadlines = deadlines
    this.#connection = connection
    this.#resolve = resolve
    deadlines.add(this)
  }

  cut(reason: Error): void {
    this.#connection.cut(reason)
  }

  moved(to: Connection): void {
    this.#connection = to
  }

  /** A response may wait unread when our own event loop was held up; it gets one turn before the deadline counts. */
  timeIsOver(): void {
    setImmediate(() => {
      if (!this.#isOver) this.cut(TIMED_OUT)
    })
  }

  ended(answer: AnswerReader, error: Error | null): void {
    this.#isOver = true
    this.#deadlines.delete(this)
    this.#resolve(error === null ? answered(answer) : failed(answer, error))
  }
}

const TIMED_OUT = new EgressError("timeout", "the attempt's deadline passed")
const INTERRUPTED = new Error("interrupted by shutdown")

/** Under the names of Standard Webhooks and of Svix. Null for a value that would end its line; the signature is base64. */
function webhookLines(webhook: WebhookHead): string | null {
  const { contentType, messageId: id, timestampSeconds, signature, authorization } = webhook
  if (NOT_IN_A_HEADER.test(contentType) || NOT_IN_A_HEADER.test(id)) return null
  if (authorization !== null && NOT_IN_A_HEADER.test(authorization)) return null
  const login = authorization === null ? "" : `authorization: ${authorization}\r\n`
  const own = `content-type: ${contentType}\r\nidempotency-key: ${id}\r\n`
  const standard = `webhook-id: ${id}\r\nwebhook-timestamp: ${timestampSeconds}\r\nwebhook-signature: ${signature}\r\n`
  const svix = `svix-id: ${id}\r\nsvix-timestamp: ${timestampSeconds}\r\nsvix-signature: ${signature}\r\n`
  return own + standard + svix + login
}

function forbidden(url: string): TransportResult {
  const outcome = { kind: "failure", cause: "target_forbidden" } as const
  return noAnswer(outcome, `${url} is not where webhooks may go`)
}

function noAnswer(outcome: TransportResult["outcome"], detail: string): TransportResult {
  return {
    outcome,
    responseStatus: null,
    responseBody: null,
    responseTruncated: false,
    detail,
  }
}

function answered({ head, body, isTruncated }: AnswerReader): TransportResult {
  const { status, location, retryAfter } = head!
  // A redirect is never followed; where it pointed is worth more to whoever mends it than its body. 304 points nowhere.
  const isRedirect = status >= 300 && status < 400 && status !== 304 && location !== null
  const shown = isRedirect ? Buffer.from(`redirects to ${location}`) : body
  return {
    outcome: { kind: "response", status, excerpt: status < 300 ? "" : excerpt(shown), retryAfter },
    responseStatus: status,
    responseBody: body,
    responseTruncated: isTruncated,
    detail: null,
  }
}

function failed({ head, body }: AnswerReader, error: Error): TransportResult {
  return {
    outcome: error === INTERRUPTED ? { kind: "interrupted" } : { kind: "failure", cause: causeOf(error) },
    responseStatus: head?.status ?? null,
    responseBody: body.length === 0 ? null : body,
    responseTruncated: body.length > 0,
    detail: excerpt(Buffer.from(describe(error))),
  }
}

/** The start of a text from outside as one line: control characters and broken UTF-8 cannot reach a terminal or a log from here. */
function excerpt(body: Bytes): string {
  return toBuffer(body)
    .subarray(0, EXCERPT_BYTES)
    .toString("utf8")
    .replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]+/gu, " ")
    .trim()
}

const CAUSES: { readonly [code: string]: FailureCause } = {
  ECONNREFUSED: "connection_refused",
  ECONNRESET: "connection_reset",
  EPIPE: "connection_reset",
  ETIMEDOUT: "timeout",
}

/** What OpenSSL says of a certificate without saying "CERT". */
const TLS_CODES = new Set(
  "EPROTO UNABLE_TO_VERIFY_LEAF_SIGNATURE INVALID_CA INVALID_PURPOSE PATH_LENGTH_EXCEEDED HOSTNAME_MISMATCH".split(
    " ",
  ),
)

function causeOf(error: Error): FailureCause {
  if (error instanceof EgressError) return error.failure
  // A DOMException has a number there.
  const code = String((error as { code?: unknown }).code ?? "")
  if (
    code.startsWith("ERR_TLS") ||
    code.startsWith("ERR_SSL") ||
    code.startsWith("ERR_OSSL") ||
    code.includes("CERT") ||
    TLS_CODES.has(code)
  )
    return "tls_error"
  return CAUSES[code] ?? "network_error"
}
