/** A transport without a network: it answers at once, or after a time of the test's clock. For tests of virtual hours and days. */
import type { AttemptOutcome } from "../../src/core/outcome.ts"
import type { OutboundRequest, Transport, TransportResult } from "../../src/transport/transport.ts"
import type { TestClock } from "./clock.ts"

/** A status, or the cause of a missing response; `afterMs` later. */
export interface VirtualAnswer {
  readonly answer: number | "timeout" | "dns_error" | "connection_refused" | "network_error"
  readonly afterMs?: number
  /** The header of a response. */
  readonly retryAfter?: string
}

export interface VirtualRequest {
  readonly path: string
  readonly messageId: string
  readonly body: string
  readonly at: number
}

export class VirtualReceiver implements Transport {
  readonly requests: VirtualRequest[] = []
  readonly #clock: TestClock
  readonly #answers = new Map<string, (request: VirtualRequest) => VirtualAnswer>()
  readonly #inFlight = new Map<string, number>()
  /** The most requests that were in flight at once, by path. */
  readonly mostInFlight = new Map<string, number>()

  constructor(clock: TestClock) {
    this.#clock = clock
  }

  /** 200 unless told. */
  always(path: string, answer: VirtualAnswer["answer"], afterMs = 0): void {
    this.#answers.set(path, () => ({ answer, afterMs }))
  }

  by(path: string, answer: (request: VirtualRequest) => VirtualAnswer): void {
    this.#answers.set(path, answer)
  }

  get inFlight(): number {
    return [...this.#inFlight.values()].reduce((sum, count) => sum + count, 0)
  }

  to(path: string): VirtualRequest[] {
    return this.requests.filter((request) => request.path === path)
  }

  async send({ url, webhook, body }: OutboundRequest): Promise<TransportResult> {
    const path = new URL(url).pathname
    const text = typeof body === "string" ? body : Buffer.from(body).toString()
    const request = { path, messageId: webhook?.messageId ?? "", body: text, at: this.#clock.now() }
    this.requests.push(request)
    const answer: VirtualAnswer = this.#answers.get(path)?.(request) ?? { answer: 200 }
    const { afterMs = 0 } = answer
    const inFlight = (this.#inFlight.get(path) ?? 0) + 1
    this.#inFlight.set(path, inFlight)
    this.mostInFlight.set(path, Math.max(inFlight, this.mostInFlight.get(path) ?? 0))
    if (afterMs > 0) await new Promise<void>((resolve) => this.#clock.setTimer(afterMs, resolve))
    this.#inFlight.set(path, this.#inFlight.get(path)! - 1)
    return resultOf(answer)
  }

  reachOf(): null {
    return null
  }

  forget(): void {}

  interrupt(): number {
    return 0
  }

  async close(): Promise<void> {}
}

function resultOf({ answer, retryAfter }: VirtualAnswer): TransportResult {
  const status = typeof answer === "number" ? answer : null
  const outcome: AttemptOutcome =
    typeof answer === "number"
      ? {
          kind: "response",
          status: answer,
          excerpt: answer < 300 ? "" : `answer ${answer}`,
          retryAfter: retryAfter ?? null,
        }
      : { kind: "failure", cause: answer }
  return { outcome, responseStatus: status, responseBody: null, responseTruncated: false, detail: null }
}
