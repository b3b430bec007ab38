/**
 * Pools of keep-alive connections, one for each endpoint. A pool is dropped when it is idle, when its endpoint changes, and when it is five
 * minutes old, so that a change of DNS takes effect.
 */
import type { Clock, Timer } from "../../core/clock.ts"
import { EndOfTick } from "../../end-of-tick.ts"
import type { MakeOpener, OpenSocket } from "../socket.ts"
import type { OutboundRequest } from "../transport.ts"
import { Connection } from "./connection.ts"

const IDLE_MS = 30_000
const MOST_AGE_MS = 300_000
/** An idle connection is closed after this time, or earlier if the receiver announces a shorter one. Uvicorn closes after 5 s without announcing it. */
const KEEP_ALIVE_MS = 4000
/** We close before the receiver does: a request that crosses the receiver's close on the wire is sent twice. */
const KEEP_ALIVE_MARGIN_MS = 1000
const SWEEP_MS = 5000
/** Per event loop tick: closing a thousand at once blocked it for 70 ms. */
const MOST_CLOSED_AT_ONCE = 16

interface Pool {
  readonly origin: string
  readonly version: number
  readonly connectTimeoutMs: number
  readonly open: OpenSocket
  readonly openedAt: number
  /** The last one that was freed is used first, so that surplus connections become stale. */
  readonly free: Connection[]
  /** Being opened, or with a request in flight. */
  readonly busy: Set<Connection>
  usedAt: number
  dropped: boolean
}

interface Freed {
  readonly pool: Pool
  readonly connection: Connection
}

export class Pools {
  readonly #clock: Clock
  readonly #makeOpener: MakeOpener
  readonly #pools = new Map<string, Pool>()
  readonly #closing = new AbortController()
  /** Not freed at once: a receiver may close the connection right behind its response, and the close is read in the same tick. */
  readonly #freed = new EndOfTick<Freed>((freed) => this.#free(freed))
  /** Not used any more; closed in batches. */
  readonly #stale: Connection[] = []
  #sweep: Timer | null = null

  constructor(clock: Clock, makeOpener: MakeOpener) {
    this.#clock = clock
    this.#makeOpener = makeOpener
  }

  /** A connection for this request alone, until the request has ended. */
  borrow(request: OutboundRequest, origin: string): Connection {
    const now = this.#clock.now()
    const pool = this.#poolFor(request, origin, now)
    pool.usedAt = now
    const connection = this.#takeFresh(pool.free, now)
    if (connection === undefined) return this.#open(pool)
    pool.busy.add(connection)
    return connection
  }

  #open(pool: Pool): Connection {
    const connection = new Connection(pool.open, {
      freed: (connection) => this.#freed.add({ pool, connection }),
      ended: (connection) => {
        if (!pool.busy.delete(connection)) remove(pool.free, connection)
      },
      another: () => this.#open(pool),
    })
    pool.busy.add(connection)
    return connection
  }

  #takeFresh(free: Connection[], now: number): Connection | undefined {
    for (let connection = free.pop(); connection !== undefined; connection = free.pop()) {
      if (!isStale(connection, now)) return connection
      this.#closeSoon(connection)
    }
    return undefined
  }

  #closeSoon(connection: Connection): void {
    if (this.#stale.push(connection) === 1) setImmediate(() => this.#closeSome())
  }

  #closeSome(): void {
    for (const connection of this.#stale.splice(0, MOST_CLOSED_AT_ONCE)) connection.close()
    if (this.#stale.length > 0) setImmediate(() => this.#closeSome())
  }

  #poolFor(request: OutboundRequest, origin: string, now: number): Pool {
    const { endpointId, version, connectTimeoutMs, tls } = request
    const current = this.#pools.get(endpointId)
    if (
      current?.origin === origin &&
      current.version === version &&
      current.connectTimeoutMs === connectTimeoutMs &&
      now - current.openedAt < MOST_AGE_MS
    )
      return current
    this.forget(endpointId)
    const { signal } = this.#closing
    const pool = {
      origin,
      version,
      connectTimeoutMs,
      open: this.#makeOpener({ endpointId, origin, timeoutMs: connectTimeoutMs, tls, signal }),
      openedAt: now,
      free: [],
      busy: new Set<Connection>(),
      usedAt: now,
      dropped: false,
    }
    this.#pools.set(endpointId, pool)
    this.#sweep ??= this.#clock.setTimer(SWEEP_MS, () => this.#dropIdle())
    return pool
  }

  #free({ pool, connection }: Freed): void {
    const hasEnded = !pool.busy.delete(connection)
    if (hasEnded) return
    pool.usedAt = connection.freeSince = this.#clock.now()
    if (pool.dropped) this.#closeSoon(connection)
    else pool.free.push(connection)
  }

  forget(endpointId: string): void {
    const pool = this.#pools.get(endpointId)
    if (pool === undefined) return
    this.#pools.delete(endpointId)
    // Requests in flight finish: their connections are closed when they are freed.
    pool.dropped = true
    for (const connection of pool.free.splice(0)) this.#closeSoon(connection)
  }

  #dropIdle(): void {
    const now = this.#clock.now()
    for (const [endpointId, { free, busy, usedAt }] of this.#pools) {
      if (busy.size === 0 && now - usedAt >= IDLE_MS) this.forget(endpointId)
      else this.#dropStale(free, now)
    }
    this.#sweep = this.#pools.size > 0 ? this.#clock.setTimer(SWEEP_MS, () => this.#dropIdle()) : null
  }

  #dropStale(free: Connection[], now: number): void {
    for (const connection of free.splice(0))
      if (isStale(connection, now)) this.#closeSoon(connection)
      else free.push(connection)
  }

  /** Destroys every connection, also those that are still being opened: a TLS handshake that hung kept the process alive. */
  close(): void {
    this.#sweep?.cancel()
    this.#pools.clear()
    this.#closing.abort()
  }
}

function remove(list: Connection[], connection: Connection): void {
  const at = list.indexOf(connection)
  if (at !== -1) list.splice(at, 1)
}

function isStale({ freeSince, keepAliveSeconds }: Connection, now: number): boolean {
  const keptMs = keepAliveSeconds === null ? KEEP_ALIVE_MS : keepAliveSeconds * 1000 - KEEP_ALIVE_MARGIN_MS
  return now - freeSince >= Math.min(KEEP_ALIVE_MS, keptMs)
}
