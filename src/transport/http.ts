/** The transport for `http:` and `https:`: one POST, one absolute deadline, a bounded response, no redirects. */
import type { Clock } from "../core/clock.ts"
import type { AttemptPhase, AttemptSpan } from "../observe/tracing.ts"
import { type Deadlined, Deadlines } from "./deadlines.ts"
import { guardedOpener } from "./egress/connect.ts"
import type { Guard } from "./egress/guard.ts"
import { TransportError } from "./error.ts"
import type { Connection, RequestOwner } from "./http1/connection.ts"
import { Pools } from "./http1/pools.ts"
import { RequestHeads } from "./http1/request-head.ts"
import type { ResponseReader } from "./http1/response.ts"
import { PhaseTimer } from "./phase-timer.ts"
import { completed, failed, forbidden, INTERRUPTED, withoutResponse } from "./result.ts"
import type { OutboundRequest, SchemeTransport, TransportResult } from "./transport.ts"

export class HttpTransport implements SchemeTransport {
  readonly schemes: readonly string[]
  readonly #clock: Clock
  readonly #guard: Guard
  readonly #pools: Pools
  readonly #heads = new RequestHeads()
  readonly #deadlines: Deadlines<RequestInFlight>
  #isClosed = false

  constructor(clock: Clock, guard: Guard) {
    this.schemes = guard.schemes
    this.#clock = clock
    this.#deadlines = new Deadlines(clock)
    this.#guard = guard
    this.#pools = new Pools(clock, (options) => guardedOpener(guard, clock, options))
  }

  urlProblem(url: string): Promise<string | null> {
    return this.#guard.urlProblem(url)
  }

  send(request: OutboundRequest, span: AttemptSpan | null = null): Promise<TransportResult> {
    const target = this.#guard.target(request.url)
    if (target === null) return Promise.resolve(forbidden(request.url))
    const head = this.#heads.of(request, target)
    if (head === null)
      return Promise.resolve(
        withoutResponse(
          { kind: "failure", cause: "network_error" },
          "a header has a forbidden character in its name or value",
        ),
      )
    if (this.#isClosed) return Promise.resolve(withoutResponse({ kind: "interrupted" }, INTERRUPTED.message))
    const connection = this.#pools.borrow(request, target.origin)
    const { promise, resolve } = Promise.withResolvers<TransportResult>()
    const inFlight = new RequestInFlight(
      request.timeoutMs,
      this.#deadlines,
      this.#clock,
      connection,
      span,
      resolve,
    )
    connection.request(head, request.body, inFlight)
    return promise
  }

  reachOf(): null {
    return null
  }

  forget(endpointId: string): void {
    this.#pools.forget(endpointId)
  }

  interrupt(): number {
    const all = this.#deadlines.all()
    for (const request of all) request.cut(INTERRUPTED)
    return all.length
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.interrupt()
    this.#pools.close()
  }
}

/** A request until its response. It holds none of the request's bytes: with hundreds in flight, garbage collection would copy them repeatedly. */
class RequestInFlight implements Deadlined, RequestOwner {
  readonly timeoutMs: number
  readonly #deadlines: Deadlines<RequestInFlight>
  readonly #clock: Clock
  readonly #phases: PhaseTimer
  readonly #span: AttemptSpan | null
  readonly #resolve: (result: TransportResult) => void
  #connection: Connection
  #isOver = false

  constructor(
    timeoutMs: number,
    deadlines: Deadlines<RequestInFlight>,
    clock: Clock,
    connection: Connection,
    span: AttemptSpan | null,
    resolve: (result: TransportResult) => void,
  ) {
    this.timeoutMs = timeoutMs
    this.#deadlines = deadlines
    this.#clock = clock
    this.#phases = new PhaseTimer(clock.now())
    this.#connection = connection
    this.#span = span
    this.#resolve = resolve
    deadlines.add(this)
  }

  cut(reason: Error): void {
    this.#connection.cut(reason)
  }

  reached(phase: AttemptPhase): void {
    this.#phases.reached(phase, this.#clock.now())
    if (this.#span === null) return
    this.#span.mark(phase)
    if (phase === "first_byte") this.#span.peer(this.#connection.peerAddress)
  }

  moved(to: Connection): void {
    this.#connection = to
    this.#phases.restart(this.#clock.now())
  }

  /** A response may be unread because our own event loop was blocked: one more tick to read it before the request is cut. */
  deadlinePassed(): void {
    setImmediate(() => {
      if (!this.#isOver) this.cut(TIMED_OUT)
    })
  }

  ended(response: ResponseReader, error: Error | null): void {
    this.#isOver = true
    this.#deadlines.delete(this)
    const result = error === null ? completed(response) : failed(response, error)
    this.#resolve({ ...result, timing: this.#phases })
  }
}

const TIMED_OUT = new TransportError("timeout", "the attempt's deadline passed")
