/** Delivery over HTTP: one request, one absolute deadline, a bounded response, no redirects. */
import type { Dispatcher } from "undici"
import type { Clock } from "../core/clock.ts"
import { describe } from "../core/errors.ts"
import type { FailureCause } from "../core/outcome.ts"
import { EgressError, type Guard } from "./egress/guard.ts"
import { Pools, retire } from "./egress/pools.ts"
import type { OutboundRequest, Transport, TransportResult } from "./transport.ts"

const MOST_BODY_BYTES = 65_536
const MOST_HEADERS = 256
/** More than a drip can bring before the deadline. Poured, so many cost 3 ms; as many as the bytes of an answer allow, 46 ms. */
const MOST_INTERIM_ANSWERS = 1000
const EXCERPT_BYTES = 512
const NOTHING = Buffer.alloc(0)

export class HttpTransport implements Transport {
  readonly #clock: Clock
  readonly #guard: Guard
  readonly #pools: Pools
  readonly #underWay = new Set<Exchange>()

  constructor(clock: Clock, guard: Guard) {
    this.#clock = clock
    this.#guard = guard
    this.#pools = new Pools(clock, guard)
  }

  send(request: OutboundRequest): Promise<TransportResult> {
    const target = this.#guard.target(request.url)
    if (target === null) return Promise.resolve(forbidden(request.url))
    const { origin, path } = target
    const { client, release } = this.#pools.borrow(request, origin)
    return new Promise((resolve) => {
      const deadline = this.#clock.setTimer(request.timeoutMs, () => {
        // A response may wait unread when our own event loop was held up; it gets one turn before the deadline counts.
        setImmediate(() => exchange.cut(TIMED_OUT))
      })
      const exchange = new Exchange((result) => {
        deadline.cancel()
        release()
        this.#underWay.delete(exchange)
        resolve(result)
      })
      this.#underWay.add(exchange)
      // Nothing here unpacks: 50 kB of gzip became 52 MB for who did.
      const headers = { ...request.headers, "accept-encoding": "identity" }
      client.dispatch({ origin, path, method: "POST", headers, body: request.body }, exchange)
      // A request that undici refuses never began, and nothing would tell that its connection is free.
      if (exchange.isOver) retire(client)
    })
  }

  forget(endpointId: string): void {
    this.#pools.forget(endpointId)
  }

  interrupt(): void {
    for (const exchange of this.#underWay) exchange.cut(INTERRUPTED)
  }

  async close(): Promise<void> {
    this.interrupt()
    this.#pools.close()
  }
}

function forbidden(url: string): TransportResult {
  return {
    outcome: { kind: "failure", cause: "target_forbidden" },
    responseStatus: null,
    responseBody: null,
    responseTruncated: false,
    detail: `${url} is not where webhooks may go`,
  }
}

const TIMED_OUT = new Error("the attempt's deadline passed")
const INTERRUPTED = new Error("interrupted by shutdown")
const LONG_ENOUGH = new Error("the rest of the body is not read")

/** One request under way; tells its result exactly once, whatever the receiver does. */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #tell: (result: TransportResult) => void
  /** Grows with what comes: kept as the pieces it came in, a body of single bytes took 7 MB for one request. */
  #body: Buffer = NOTHING
  #controller: Dispatcher.DispatchController | null = null
  #cutBy: Error | null = null
  #told = false
  #interimAnswers = 0
  #status = 0
  #location: string | null = null
  #retryAfter: string | null = null
  #bytes = 0
  #truncated = false

  constructor(tell: (result: TransportResult) => void) {
    this.#tell = tell
  }

  get isOver(): boolean {
    return this.#told
  }

  /** Ends the request now. One that still waits for a connection is told at once and aborted when it gets its turn. */
  cut(reason: Error): void {
    if (this.#told) return
    this.#cutBy = reason
    if (this.#controller !== null) this.#controller.abort(reason)
    this.#fail(reason)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#cutBy !== null) controller.abort(this.#cutBy)
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: { readonly [name: string]: string | string[] | undefined },
  ): void {
    // undici bounds the bytes of the headers, not their number.
    const tooMany = countHeaders(headers) > MOST_HEADERS
    // Interim answers (103) are not the answer; a receiver that pours them is cut off before the deadline.
    const pours = status < 200 && ++this.#interimAnswers > MOST_INTERIM_ANSWERS
    if (tooMany || pours) return this.#refuse(controller)
    if (status < 200) return
    this.#status = status
    // A redirect is never followed; where it pointed is worth more to whoever mends it than its body. 304 points nowhere.
    if (status < 400 && status >= 300 && status !== 304 && typeof headers.location === "string")
      this.#location = headers.location
    const retryAfter = headers["retry-after"]
    this.#retryAfter = typeof retryAfter === "string" ? retryAfter : null
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    const room = MOST_BODY_BYTES - this.#bytes
    const taken = Math.min(chunk.length, room)
    this.#makeRoom(this.#bytes + taken)
    chunk.copy(this.#body, this.#bytes, 0, taken)
    this.#bytes += taken
    if (chunk.length <= room) return
    this.#truncated = true
    this.#succeed()
    controller.abort(LONG_ENOUGH)
  }

  #makeRoom(bytes: number): void {
    if (bytes <= this.#body.length) return
    // Of its own: on its way to the store's thread, a piece of Node's shared buffer takes all 64 KiB along, 34 µs instead of 6.
    const larger = Buffer.allocUnsafeSlow(Math.max(bytes, Math.min(this.#body.length * 2, MOST_BODY_BYTES)))
    this.#body.copy(larger)
    this.#body = larger
  }

  #refuse(controller: Dispatcher.DispatchController): void {
    const error = new EgressError("response_too_large", "more headers or interim answers than are read")
    this.#fail(error)
    controller.abort(error)
  }

  onResponseEnd(): void {
    this.#succeed()
  }

  onResponseError(_controller: unknown, error: Error): void {
    this.#fail(error)
  }

  #succeed(): void {
    const body = this.#body.subarray(0, this.#bytes)
    this.#end({
      outcome: {
        kind: "response",
        status: this.#status,
        excerpt: this.#excerpt(body),
        retryAfter: this.#retryAfter,
      },
      responseStatus: this.#status,
      responseBody: body,
      responseTruncated: this.#truncated,
      detail: null,
    })
  }

  #excerpt(body: Buffer): string {
    return excerpt(this.#location === null ? body : Buffer.from(`redirects to ${this.#location}`))
  }

  #fail(error: Error): void {
    this.#end({
      outcome: error === INTERRUPTED ? { kind: "interrupted" } : { kind: "failure", cause: causeOf(error) },
      responseStatus: this.#status === 0 ? null : this.#status,
      responseBody: this.#bytes === 0 ? null : this.#body.subarray(0, this.#bytes),
      responseTruncated: this.#bytes > 0,
      detail: excerpt(Buffer.from(describe(error))),
    })
  }

  #end(result: TransportResult): void {
    if (this.#told) return
    this.#told = true
    this.#tell(result)
  }
}

function countHeaders(headers: { readonly [name: string]: string | string[] | undefined }): number {
  let count = 0
  for (const name in headers) count += Array.isArray(headers[name]) ? headers[name].length : 1
  return count
}

/** The start of a text from outside as one line: control characters and broken UTF-8 cannot reach a terminal or a log from here. */
function excerpt(body: Buffer): string {
  return body
    .subarray(0, EXCERPT_BYTES)
    .toString("utf8")
    .replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]+/gu, " ")
    .trim()
}

const CAUSES: { readonly [code: string]: FailureCause } = {
  ENOTFOUND: "dns_error",
  EAI_AGAIN: "dns_error",
  ECONNREFUSED: "connection_refused",
  ECONNRESET: "connection_reset",
  EPIPE: "connection_reset",
  UND_ERR_SOCKET: "connection_reset",
  UND_ERR_CONNECT_TIMEOUT: "timeout",
  ETIMEDOUT: "timeout",
  UND_ERR_HEADERS_OVERFLOW: "response_too_large",
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: "invalid_response",
  // undici asserts what it expects of a receiver: a status below 100, or a switch of protocols that nobody asked for.
  ERR_ASSERTION: "invalid_response",
}

/** What OpenSSL says of a certificate without saying "CERT". */
const TLS_CODES = new Set(
  "EPROTO UNABLE_TO_VERIFY_LEAF_SIGNATURE INVALID_CA INVALID_PURPOSE PATH_LENGTH_EXCEEDED HOSTNAME_MISMATCH".split(
    " ",
  ),
)

function causeOf(error: Error): FailureCause {
  if (error === TIMED_OUT) return "timeout"
  if (error instanceof EgressError) return error.failure
  const code = (error as { code?: string }).code ?? ""
  if (code.startsWith("HPE_"))
    return code === "HPE_HEADER_OVERFLOW" ? "response_too_large" : "invalid_response"
  if (
    code.startsWith("ERR_TLS") ||
    code.startsWith("ERR_SSL") ||
    code.includes("CERT") ||
    TLS_CODES.has(code)
  )
    return "tls_error"
  // What undici says of 100 and 101, which it takes from no receiver.
  if (error.name === "HTTPParserError" || /^bad (response|upgrade)$/.test(error.message))
    return "invalid_response"
  return CAUSES[code] ?? "network_error"
}
