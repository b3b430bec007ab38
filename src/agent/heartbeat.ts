/** Pings the server, and finds a connection that is silent for too long. */
import type { Clock, Timer } from "../core/clock.ts"
import { DEAD_MS, HEARTBEAT_MS } from "../core/relay-protocol.ts"

export interface HeartbeatEvents {
  ping(): void
  silent(): void
}

export class Heartbeat {
  readonly #clock: Clock
  readonly #events: HeartbeatEvents
  #heardAt: number
  #ping: Timer
  #silence: Timer

  constructor(clock: Clock, events: HeartbeatEvents) {
    this.#clock = clock
    this.#events = events
    this.#heardAt = clock.elapsedMs()
    this.#ping = this.#nextPing()
    this.#silence = this.#checkIn(DEAD_MS)
  }

  /** Anything came from the server. */
  heard(): void {
    this.#heardAt = this.#clock.elapsedMs()
  }

  stop(): void {
    this.#ping.cancel()
    this.#silence.cancel()
  }

  #nextPing(): Timer {
    return this.#clock.setTimer(HEARTBEAT_MS, () => {
      this.#ping = this.#nextPing()
      this.#events.ping()
    })
  }

  #checkIn(delayMs: number): Timer {
    return this.#clock.setTimer(delayMs, () => {
      const leftMs = this.#heardAt + DEAD_MS - this.#clock.elapsedMs()
      if (leftMs <= 0) this.#events.silent()
      else this.#silence = this.#checkIn(leftMs)
    })
  }
}
