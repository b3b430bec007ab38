/**
 * Keep-alive connections, a pool for each endpoint and origin, dropped when idle, when their endpoint changes, and when they are old, so that
 * a change of DNS or of the rules takes effect.
 */
import type { Clock, Timer } from "../../core/clock.ts"
import type { OutboundRequest } from "../transport.ts"
import { guardedOpener, type Open } from "./connect.ts"
import { Connection } from "./connection.ts"
import type { Guard } from "./guard.ts"

const IDLE_MS = 30_000
const MOST_AGE_MS = 300_000
/** A connection that was idle for this long is closed; sooner if the receiver says that it will close it. Uvicorn closes after 5 s without saying so. */
const KEEP_ALIVE_MS = 4000
/** Before the receiver does: a request that meets the close on the way is sent twice. */
const KEEP_ALIVE_MARGIN_MS = 1000
const SWEEP_MS = 5000
/** So many are closed in one turn of the event loop: a thousand at once held it up for 70 ms. */
const MOST_CLOSED_AT_ONCE = 16

interface Entry {
  readonly origin: string
  readonly version: number
  readonly connectTimeoutMs: number
  /** One for all: it remembers TLS sessions, which further connections resume. */
  readonly open: Open
  readonly openedAt: number
  /** Free for a request; the one that was used last is used first, so that those that are not needed grow old. */
  readonly free: Connection[]
  /** Being opened, or with a request under way. */
  readonly busy: Set<Connection>
  usedAt: number
  dropped: boolean
}

export class Pools {
  readonly #clock: Clock
  readonly #guard: Guard
  readonly #entries = new Map<string, Entry>()
  readonly #closing = new AbortController()
  /** Answered in this turn of the event loop. */
  #resting: { readonly entry: Entry; readonly connection: Connection }[] = []
  /** Not to be used any more, and closed little by little. */
  readonly #stale: Connection[] = []
  #sweep: Timer | null = null

  constructor(clock: Clock, guard: Guard) {
    this.#clock = clock
    this.#guard = guard
  }

  /** A connection for a request, and for no other until it is free again. */
  borrow(request: OutboundRequest, origin: string): Connection {
    const now = this.#clock.now()
    const entry = this.#entryFor(request, origin, now)
    entry.usedAt = now
    const connection = this.#takeFresh(entry.free, now)
    if (connection === undefined) return this.#open(entry)
    entry.busy.add(connection)
    return connection
  }

  #open(entry: Entry): Connection {
    const connection = new Connection(entry.open, {
      freed: (connection) => this.#rest(entry, connection),
      ended: (connection) => {
        if (!entry.busy.delete(connection)) remove(entry.free, connection)
      },
      another: () => this.#open(entry),
    })
    entry.busy.add(connection)
    return connection
  }

  #takeFresh(free: Connection[], now: number): Connection | undefined {
    for (let connection = free.pop(); connection !== undefined; connection = free.pop()) {
      if (!isStale(connection, now)) return connection
      this.#closeInTime(connection)
    }
    return undefined
  }

  #closeInTime(connection: Connection): void {
    if (this.#stale.push(connection) === 1) setImmediate(() => this.#closeSome())
  }

  #closeSome(): void {
    for (const connection of this.#stale.splice(0, MOST_CLOSED_AT_ONCE)) connection.close()
    if (this.#stale.length > 0) setImmediate(() => this.#closeSome())
  }

  #entryFor(request: OutboundRequest, origin: string, now: number): Entry {
    const { endpointId, version, connectTimeoutMs, tls } = request
    const current = this.#entries.get(endpointId)
    if (
      current?.origin === origin &&
      current.version === version &&
      current.connectTimeoutMs === connectTimeoutMs &&
      now - current.openedAt < MOST_AGE_MS
    )
      return current
    this.forget(endpointId)
    const open = guardedOpener({
      guard: this.#guard,
      clock: this.#clock,
      endpointId,
      origin,
      timeoutMs: connectTimeoutMs,
      tls,
      signal: this.#closing.signal,
    })
    const entry = {
      origin,
      version,
      connectTimeoutMs,
      open,
      openedAt: now,
      free: [],
      busy: new Set<Connection>(),
      usedAt: now,
      dropped: false,
    }
    this.#entries.set(endpointId, entry)
    this.#sweep ??= this.#clock.setTimer(SWEEP_MS, () => this.#dropIdle())
    return entry
  }

  /** Free in the next turn: a receiver that ends the connection behind its answer is then known to have ended it. */
  #rest(entry: Entry, connection: Connection): void {
    if (this.#resting.push({ entry, connection }) > 1) return
    setImmediate(() => {
      const rested = this.#resting
      this.#resting = []
      for (const { entry, connection } of rested) this.#free(entry, connection)
    })
  }

  #free(entry: Entry, connection: Connection): void {
    // Otherwise it has ended meanwhile.
    if (!entry.busy.delete(connection)) return
    entry.usedAt = connection.freeSince = this.#clock.now()
    if (entry.dropped) this.#closeInTime(connection)
    else entry.free.push(connection)
  }

  forget(endpointId: string): void {
    const entry = this.#entries.get(endpointId)
    if (entry === undefined) return
    this.#entries.delete(endpointId)
    // Requests under way finish: their connections are closed when they are free.
    entry.dropped = true
    for (const connection of entry.free.splice(0)) this.#closeInTime(connection)
  }

  #dropIdle(): void {
    const now = this.#clock.now()
    for (const [endpointId, { free, busy, usedAt }] of this.#entries) {
      if (busy.size === 0 && now - usedAt >= IDLE_MS) this.forget(endpointId)
      else this.#dropStale(free, now)
    }
    this.#sweep = this.#entries.size > 0 ? this.#clock.setTimer(SWEEP_MS, () => this.#dropIdle()) : null
  }

  #dropStale(free: Connection[], now: number): void {
    for (const connection of free.splice(0))
      if (isStale(connection, now)) this.#closeInTime(connection)
      else free.push(connection)
  }

  /** Ends every connection, also those that are still being opened: a handshake that hung kept the process alive. */
  close(): void {
    this.#sweep?.cancel()
    this.#entries.clear()
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
