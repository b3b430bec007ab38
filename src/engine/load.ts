/**
 * How far a lane may grow. In a process that has no time left, or whose store has none, more at once would wait there, not at the receiver:
 * 100 lanes with a backlog opened 2500 connections, and delivered 6100 a second in 300 MB where 9500 go in 225.
 */
import type { Clock } from "../core/clock.ts"
import type { Slots } from "./slots.ts"

/** So many in all keep a process busy; those that hang do not. */
const ENOUGH = 256
/** Where there are, a lane takes no more than its share of them, which is never less. */
const LEAST_SHARE = 2
/** An answer that takes so long, and so many times as long as others do, is its receiver's doing: that lane needs many at once. */
const SLOW_MS = 100
const SLOW_TIMES = 3
const AVERAGED = 100
/** One that could not be written for longer counts as no more, and is soon forgotten. */
const LONGEST_WRITING_MS = 1000

export class Load {
  readonly #clock: Clock
  readonly #slots: Slots
  readonly #busyLanes: () => number
  readonly #answering = new Average()
  readonly #writing = new Average()

  /** `busyLanes`: how many lanes have something to do. */
  constructor(clock: Clock, slots: Slots, busyLanes: () => number) {
    this.#clock = clock
    this.#slots = slots
    this.#busyLanes = busyLanes
  }

  /** An outcome was written, so long after it was known. */
  wrote(tookMs: number): void {
    this.#writing.add(Math.min(tookMs, LONGEST_WRITING_MS))
  }

  /** Of what the endpoint allows, after an answer that took so long. */
  mostAfter(tookMs: number, allowed: number): number {
    this.#answering.add(tookMs)
    // Asked always: it answers for the time since it was last asked.
    const hasTimeLeft = this.#clock.hasTimeLeft()
    if (this.#slots.takenOfLate < ENOUGH) return allowed
    // Where writing takes longer than answering, more at once would only wait for the store.
    if (hasTimeLeft && this.#writing.ms < this.#answering.ms) return allowed
    if (tookMs >= SLOW_MS && tookMs >= SLOW_TIMES * this.#answering.ms) return allowed
    // One that has all the work alone gets half as much done with two at once as with sixty.
    return Math.min(allowed, Math.max(LEAST_SHARE, Math.floor(ENOUGH / this.#busyLanes())))
  }
}

class Average {
  #ms: number | null = null

  get ms(): number {
    return this.#ms ?? 0
  }

  add(ms: number): void {
    this.#ms = this.#ms === null ? ms : this.#ms + (ms - this.#ms) / AVERAGED
  }
}
