/**
 * The only place that opens outbound connections: keep-alive pools, one for each endpoint and origin, dropped when idle, when their
 * endpoint changes, and when they are old, so that a change of DNS or of the rules takes effect.
 */
import { Pool } from "undici"
import type { Clock, Timer } from "../../core/clock.ts"
import type { OutboundRequest } from "../transport.ts"
import { guardedConnector } from "./connect.ts"
import type { Guard } from "./guard.ts"

const IDLE_MS = 30_000
const MOST_AGE_MS = 300_000
const KEEP_ALIVE_MS = 10_000
const MOST_HEADER_BYTES = 16_384

interface Entry {
  readonly pool: Pool
  readonly key: string
  readonly openedAt: number
  usedAt: number
  active: number
}

export class Pools {
  readonly #clock: Clock
  readonly #guard: Guard
  readonly #entries = new Map<string, Entry>()
  readonly #closing = new AbortController()
  #sweep: Timer | null = null

  constructor(clock: Clock, guard: Guard) {
    this.#clock = clock
    this.#guard = guard
  }

  /** The pool for a request; the caller says when the request is over. */
  borrow(request: OutboundRequest, origin: string): { readonly pool: Pool; release(): void } {
    const { endpointId } = request
    const key = `${origin} ${request.version} ${request.connectTimeoutMs}`
    const now = this.#clock.now()
    let entry = this.#entries.get(endpointId)
    if (entry === undefined || entry.key !== key || now - entry.openedAt >= MOST_AGE_MS) {
      this.forget(endpointId)
      entry = { pool: this.#open(request, origin), key, openedAt: now, usedAt: now, active: 0 }
      this.#entries.set(endpointId, entry)
      this.#sweep ??= this.#clock.setTimer(IDLE_MS, () => this.#dropIdle())
    }
    const borrowed = entry
    borrowed.active++
    return {
      pool: borrowed.pool,
      release: () => {
        borrowed.active--
        borrowed.usedAt = this.#clock.now()
      },
    }
  }

  #open(request: OutboundRequest, origin: string): Pool {
    return new Pool(origin, {
      connect: guardedConnector({
        guard: this.#guard,
        clock: this.#clock,
        endpointId: request.endpointId,
        timeoutMs: request.connectTimeoutMs,
        tls: request.tls,
        signal: this.#closing.signal,
      }),
      // The attempt has one absolute deadline of its own; undici's timers are idle timers, which a drip of bytes defeats.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: KEEP_ALIVE_MS,
      maxHeaderSize: MOST_HEADER_BYTES,
      pipelining: 1,
      allowH2: false,
    })
  }

  forget(endpointId: string): void {
    const entry = this.#entries.get(endpointId)
    if (entry === undefined) return
    this.#entries.delete(endpointId)
    // Requests under way finish; `close` waits for them.
    entry.pool.close().catch(() => {})
  }

  #dropIdle(): void {
    this.#sweep = null
    const now = this.#clock.now()
    for (const [endpointId, entry] of this.#entries) {
      if (entry.active === 0 && now - entry.usedAt >= IDLE_MS) this.forget(endpointId)
    }
    if (this.#entries.size > 0) this.#sweep = this.#clock.setTimer(IDLE_MS, () => this.#dropIdle())
  }

  async close(): Promise<void> {
    this.#sweep?.cancel()
    const pools = [...this.#entries.values()].map(({ pool }) => pool)
    this.#entries.clear()
    const destroyed = pools.map((pool) => pool.destroy())
    // undici lets go of connections that are being opened, and a handshake that hung kept the process alive for `connectTimeout`.
    this.#closing.abort()
    await Promise.all(destroyed)
  }
}
