/**
 * The only place that opens outbound connections: keep-alive pools, one for each endpoint and origin, dropped when idle.
 * Every connection passes through `connect` here, which is where addresses are vetted.
 */
import { buildConnector, Pool } from "undici"
import type { Clock, Timer } from "../../core/clock.ts"

const IDLE_MS = 30_000
const KEEP_ALIVE_MS = 10_000
const MOST_HEADER_BYTES = 16_384

interface Entry {
  readonly pool: Pool
  readonly key: string
  usedAt: number
  active: number
}

export class Pools {
  readonly #clock: Clock
  readonly #entries = new Map<string, Entry>()
  #sweep: Timer | null = null

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** The pool for an endpoint; the caller says when its request is over. */
  borrow(
    endpointId: string,
    origin: string,
    connectTimeoutMs: number,
  ): { readonly pool: Pool; release(): void } {
    const key = `${origin} ${connectTimeoutMs}`
    let entry = this.#entries.get(endpointId)
    if (entry?.key !== key) {
      this.forget(endpointId)
      entry = { pool: this.#open(origin, connectTimeoutMs), key, usedAt: 0, active: 0 }
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

  #open(origin: string, connectTimeoutMs: number): Pool {
    return new Pool(origin, {
      connect: buildConnector({ timeout: connectTimeoutMs }),
      // The attempt has one absolute deadline of its own; undici's timers are idle timers, which a drip of bytes defeats.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: KEEP_ALIVE_MS,
      maxHeaderSize: MOST_HEADER_BYTES,
      pipelining: 1,
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
    await Promise.all(pools.map((pool) => pool.destroy()))
  }
}
