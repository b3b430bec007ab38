/**
 * What the egress guard costs: deliveries per second through it, and through a transport that opens plain undici pools and
 * asks nobody. Both go to an address written out; looking a name up is the network's time, and kept in a cache.
 */
import { type Dispatcher, Pool } from "undici"
import { type Clock, systemClock } from "../src/core/clock.ts"
import type { OutboundRequest, Transport, TransportResult } from "../src/transport/transport.ts"

const ROUNDS = 16

/** A library that is open: `run` gives the deliveries per second of so many messages. */
export interface Runner {
  run(count: number): Promise<number>
  close(): Promise<void>
}

export interface GuardFigures {
  readonly guardedPerSecond: number
  readonly plainPerSecond: number
  readonly ratio: number
  /** The same of the processor's time, which a busy machine disturbs less. */
  readonly cpuRatio: number
}

/** `open` takes the transport to use, or none for Posthorn's own. */
export async function measureGuard(
  open: (transport?: Transport) => Promise<Runner>,
  count: number,
): Promise<GuardFigures> {
  const guarded = await open()
  const plain = await open(new PlainTransport(systemClock()))
  const rounds: { readonly guarded: Round; readonly plain: Round }[] = []
  for (let round = -2; round < ROUNDS; round++) {
    // Short rounds by turns, each first every other time: both see the same machine, and what disturbs one round is one of many.
    const first = round % 2 === 0 ? await timed(guarded, count) : null
    const figures = { plain: await timed(plain, count), guarded: first ?? (await timed(guarded, count)) }
    if (round >= 0) rounds.push(figures)
  }
  await guarded.close()
  await plain.close()
  return {
    guardedPerSecond: median(rounds.map((round) => round.guarded.perSecond)),
    plainPerSecond: median(rounds.map((round) => round.plain.perSecond)),
    ratio: median(rounds.map((round) => round.guarded.perSecond / round.plain.perSecond)),
    cpuRatio: median(rounds.map((round) => round.plain.cpuMs / round.guarded.cpuMs)),
  }
}

interface Round {
  readonly perSecond: number
  readonly cpuMs: number
}

async function timed(runner: Runner, count: number): Promise<Round> {
  const before = process.cpuUsage()
  const perSecond = await runner.run(count)
  const { user, system } = process.cpuUsage(before)
  return { perSecond, cpuMs: (user + system) / 1000 }
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  return (sorted[(sorted.length - 1) >> 1]! + sorted[sorted.length >> 1]!) / 2
}

function read(url: string): { readonly origin: string; readonly path: string } {
  const { origin, pathname, search } = new URL(url)
  return { origin, path: pathname + search }
}

/** The least that sends a request and tells what came back: a pool for each endpoint, a deadline, nothing vetted or limited. */
class PlainTransport implements Transport {
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
