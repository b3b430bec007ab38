/**
 * The only place that opens outbound connections: keep-alive pools, one for each endpoint and origin, dropped when idle, when their
 * endpoint changes, and when they are old, so that a change of DNS or of the rules takes effect. Which connections are free is kept in a
 * list: undici's own pool looks through all of them twice for a request, which took a tenth of the throughput to one endpoint with 64.
 */
import { Client } from "undici"
import type { Clock, Timer } from "../../core/clock.ts"
import type { OutboundRequest } from "../transport.ts"
import { guardedConnector } from "./connect.ts"
import type { Guard } from "./guard.ts"

const IDLE_MS = 30_000
const MOST_AGE_MS = 300_000
const KEEP_ALIVE_MS = 10_000
const MOST_HEADER_BYTES = 16_384

interface Entry {
  readonly key: string
  readonly origin: string
  /** One for all: it remembers TLS sessions, which further connections resume. */
  readonly connect: ReturnType<typeof guardedConnector>
  readonly openedAt: number
  /** Free for a request; the one that was used last is used first, so that those that are not needed grow old. */
  readonly free: Client[]
  usedAt: number
  active: number
  dropped: boolean
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

  /** A connection for a request, and for no other until it is free again; the caller says when the request is over. */
  borrow(request: OutboundRequest, origin: string): { readonly client: Client; release(): void } {
    const entry = this.#entryFor(request, origin)
    const client = entry.free.pop() ?? this.#open(entry)
    entry.active++
    return {
      client,
      release: () => {
        entry.active--
        entry.usedAt = this.#clock.now()
      },
    }
  }

  #entryFor({ endpointId, version, connectTimeoutMs, tls }: OutboundRequest, origin: string): Entry {
    const key = `${origin} ${version} ${connectTimeoutMs}`
    const now = this.#clock.now()
    const current = this.#entries.get(endpointId)
    if (current?.key === key && now - current.openedAt < MOST_AGE_MS) return current
    this.forget(endpointId)
    const connect = guardedConnector({
      guard: this.#guard,
      clock: this.#clock,
      endpointId,
      timeoutMs: connectTimeoutMs,
      tls,
      signal: this.#closing.signal,
    })
    const entry = { key, origin, connect, openedAt: now, free: [], usedAt: now, active: 0, dropped: false }
    this.#entries.set(endpointId, entry)
    this.#sweep ??= this.#clock.setTimer(IDLE_MS, () => this.#dropIdle())
    return entry
  }

  #open(entry: Entry): Client {
    const client = new Client(entry.origin, {
      connect: entry.connect,
      // The attempt has one absolute deadline of its own; undici's timers are idle timers, which a drip of bytes defeats.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: KEEP_ALIVE_MS,
      maxHeaderSize: MOST_HEADER_BYTES,
      pipelining: 1,
      allowH2: false,
    })
    // In the turn after an answer, when the receiver has not closed the connection; or when there is none, to be opened anew.
    client.on("drain", () => (entry.dropped ? retire(client) : entry.free.push(client)))
    return client
  }

  forget(endpointId: string): void {
    const entry = this.#entries.get(endpointId)
    if (entry === undefined) return
    this.#entries.delete(endpointId)
    // Requests under way finish: their connections are retired when they are free.
    entry.dropped = true
    for (const client of entry.free.splice(0)) retire(client)
  }

  #dropIdle(): void {
    this.#sweep = null
    const now = this.#clock.now()
    for (const [endpointId, entry] of this.#entries) {
      if (entry.active === 0 && now - entry.usedAt >= IDLE_MS) this.forget(endpointId)
    }
    if (this.#entries.size > 0) this.#sweep = this.#clock.setTimer(IDLE_MS, () => this.#dropIdle())
  }

  /** Ends every connection, also those that are still being opened, which undici lets go of: a handshake that hung kept the process alive. */
  close(): void {
    this.#sweep?.cancel()
    this.#entries.clear()
    this.#closing.abort()
  }
}

/** Closes a connection, when no request is under way on it. */
export function retire(client: Client): void {
  client.close().catch(() => {})
}
