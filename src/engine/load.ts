/**
 * How far a lane may grow. In a process that has no time left, more at once would wait in it, not at the receiver: 100 lanes with a backlog
 * opened 2000 connections, for 20 % more processor time a delivery and 200 MB.
 */
import type { Clock } from "../core/clock.ts"
import type { Slots } from "./slots.ts"

/** So many in all keep a process busy; those that hang do not. */
const ENOUGH = 256
/** Where there are, a lane takes no more. */
const AT_ONCE_IF_BUSY = 2
/** An answer that takes so long, and so many times as long as others do, is its receiver's doing: that lane needs many at once. */
const SLOW_MS = 100
const SLOW_TIMES = 3
const AVERAGED = 100

export class Load {
  readonly #clock: Clock
  readonly #slots: Slots
  #averageMs: number | null = null

  constructor(clock: Clock, slots: Slots) {
    this.#clock = clock
    this.#slots = slots
  }

  /** Of what the endpoint allows, after an answer that took so long. */
  mostAfter(tookMs: number, allowed: number): number {
    const beforeMs = this.#averageMs ?? tookMs
    this.#averageMs = beforeMs + (tookMs - beforeMs) / AVERAGED
    // Asked first and always: it answers for the time since it was last asked.
    if (this.#clock.hasTimeLeft() || this.#slots.takenNewly < ENOUGH) return allowed
    if (tookMs >= SLOW_MS && tookMs >= SLOW_TIMES * this.#averageMs) return allowed
    return Math.min(allowed, AT_ONCE_IF_BUSY)
  }
}
