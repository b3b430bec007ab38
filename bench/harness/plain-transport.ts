/** A transport that guards nothing, to see what the guard costs. */
import { type Dispatcher, Pool } from "undici"
import type { Clock } from "../../src/core/clock.ts"
import type { OutboundRequest, Transport, TransportResult } from "../../src/transport/transport.ts"

/** The least that sends a request and tells what came back: a pool for each endpoint, a deadline, nothing vetted or limited. */
export class PlainTransport implements Transport {
  readonly #clock: Clock
  readonly #pools = new Map<string, Pool>()
  readonly #targets = new Map<string, { readonly origin: string; readonly path: string }>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  send({ endpointId, url, headers, body, timeoutMs }: OutboundRequest): Promise<TransportResult> {
    // Kept as the guard keeps it: reading it anew for every request flattered the guard.
    const target = this.#targets.get(url) ?? read(url)
    this.#targets.set(url, target)
    const { origin, path } = target
    const pool = this.#pools.get(endpointId) ?? new Pool(origin, { pipelining: 1 })
    this.#pools.set(endpointId, pool)
    return new Promise((resolve, reject) => {
      const chunks: Buffer[] = []
      let status = 0
      let controller: Dispatcher.DispatchController | null = null
      const deadline = this.#clock.setTimer(timeoutMs, () => controller?.abort(new Error("too late")))
      const handler: Dispatcher.DispatchHandler = {
        onRequestStart: (started) => {
          controller = started
        },
        onResponseStart: (_controller, code) => {
          status = code
        },
        onResponseData: (_controller, chunk) => void chunks.push(chunk),
        onResponseEnd: () => {
          deadline.cancel()
          const responseBody = Buffer.concat(chunks)
          resolve({
            outcome: { kind: "response", status, excerpt: responseBody.toString(), retryAfter: null },
            responseStatus: status,
            responseBody,
            responseTruncated: false,
            detail: null,
          })
        },
        onResponseError: (_controller, error) => {
          deadline.cancel()
          reject(error)
        },
      }
      pool.dispatch(
        { origin, path, method: "POST", headers: headers as Record<string, string>, body },
        handler,
      )
    })
  }

  forget(): void {}

  interrupt(): void {}

  async close(): Promise<void> {
    await Promise.all([...this.#pools.values()].map((pool) => pool.destroy()))
  }
}

function read(url: string): { readonly origin: string; readonly path: string } {
  const { origin, pathname, search } = new URL(url)
  return { origin, path: pathname + search }
}
