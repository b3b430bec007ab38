/** Forwards events to a local program: one plain HTTP request each, without redirects, within the event's deadline. */
import { type ClientRequest, request as httpRequest, type IncomingMessage } from "node:http"
import { request as httpsRequest } from "node:https"
import type { Clock, Timer } from "../core/clock.ts"
import { MOST_RESPONSE_BYTES } from "../core/relay-protocol.ts"
import { retryAfterMs } from "../core/retry-after.ts"
import type { AgentAnswer, AgentEvent, AgentHandler } from "./event.ts"
import { forwardedHeaders } from "./forward-headers.ts"
import { targetPath } from "./forward-path.ts"
import { networkProblem } from "./network-error.ts"

/** The outcome has a cap of its own. */
const MOST_RETRY_AFTER_SECONDS = 604_800
const TRUST = "give its authority to this program with NODE_EXTRA_CA_CERTS=FILE"

export function forwardTo(base: URL, clock: Clock): AgentHandler {
  return (event) => {
    const path = targetPath(base.pathname, event.path, event.query)
    if (path === null)
      return { result: "permanent", error: `the path ${event.path} leads out of ${base.href}` }
    // Its response would be a tunnel.
    if (event.method === "CONNECT") return { result: "permanent", error: "CONNECT is not forwarded" }
    return new Promise<AgentAnswer>((resolve) => {
      new LocalRequest(start(base, path, event), base.origin, clock, event.deadlineMs, resolve)
    })
  }
}

/** A connection for each request: one that was kept could be closed by a restart of the program just now. */
function start(base: URL, path: string, event: AgentEvent): ClientRequest {
  const send = base.protocol === "https:" ? httpsRequest : httpRequest
  const headers = forwardedHeaders(event, base.host)
  const request = send(base, { method: event.method, path, headers, agent: false })
  return request.end(event.body)
}

class LocalRequest {
  readonly #request: ClientRequest
  readonly #clock: Clock
  readonly #answer: (answer: AgentAnswer) => void
  readonly #deadline: Timer
  readonly #chunks: Buffer[] = []
  #bytes = 0
  #ifClosed = "closed the connection without an answer"

  constructor(
    request: ClientRequest,
    origin: string,
    clock: Clock,
    deadlineMs: number,
    answer: (answer: AgentAnswer) => void,
  ) {
    this.#request = request
    this.#clock = clock
    this.#answer = answer
    const late = `${origin} did not answer within ${deadlineMs / 1000} s`
    this.#deadline = clock.setTimer(deadlineMs, () => this.#failed(late))
    request.on("error", (error) => this.#failed(networkProblem(error, origin, TRUST)))
    request.on("response", (response) => this.#read(response))
    request.on("close", () => this.#failed(`${origin} ${this.#ifClosed}`))
  }

  #read(response: IncomingMessage): void {
    this.#ifClosed = "broke off its answer"
    response.on("error", () => {})
    response.on("data", (chunk: Buffer) => {
      this.#chunks.push(chunk)
      this.#bytes += chunk.length
      if (this.#bytes > MOST_RESPONSE_BYTES) this.#answered(response)
    })
    response.on("end", () => this.#answered(response))
  }

  #answered({ statusCode, headers }: IncomingMessage): void {
    const wait = retryAfterMs(headers["retry-after"] ?? null, this.#clock.wallNow(), MOST_RETRY_AFTER_SECONDS)
    this.#finish({ status: statusCode!, retryAfterSeconds: wait / 1000, body: Buffer.concat(this.#chunks) })
  }

  #failed(error: string): void {
    this.#finish({ result: "transient", error })
  }

  /** The first call counts. */
  #finish(answer: AgentAnswer): void {
    this.#answer(answer)
    this.#deadline.cancel()
    this.#request.destroy()
  }
}
