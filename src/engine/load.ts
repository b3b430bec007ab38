/**
 * Limits a lane's concurrency when the process or its store is saturated: more requests in flight would only queue there. Without the
 * limit, 100 lanes with a backlog opened 2500 connections and delivered 6100 a second in 300 MB; with it 9500 in 225 MB.
 */
import type { Clock } from "../core/clock.ts"
import type { Slots } from "./slots.ts"

/** This many recent requests in flight saturate a process. Requests that hang do not count. */
const SATURATED_AT = 256
/** A saturated process divides that number among its busy lanes; no lane gets less than this. */
const LEAST_SHARE = 2
/** A response this slow, and this many times slower than the average, is the receiver's own delay: its lane keeps full concurrency. */
const SLOW_MS = 100
const SLOW_TIMES = 3
const AVERAGED = 100
/** Longer settle times count as this much, so that one outage of the store is soon forgotten. */
const LONGEST_WRITING_MS = 1000

export class Load {
  readonly #clock: Clock
  readonly #slots: Slots
  readonly #busyLanes: () => number
  readonly #answering = new Average()
  readonly #writing = new Average()

  constructor(clock: Clock, slots: Slots, busyLanes: () => number) {
    this.#clock = clock
    this.#slots = slots
    this.#busyLanes = busyLanes
  }

  /** `tookMs`: from the response to the commit of its outcome. */
  wrote(tookMs: number): void {
    this.#writing.add(Math.min(tookMs, LONGEST_WRITING_MS))
  }

  /** The lane's concurrency limit after a response that took `tookMs`; `allowed` is the endpoint's own limit. */
  mostAfter(tookMs: number, allowed: number): number {
    this.#answering.add(tookMs)
    // Called each time: it measures the time since its last call.
    const hasTimeLeft = this.#clock.hasTimeLeft()
    if (this.#slots.takenOfLate < SATURATED_AT) return allowed
    // When settling takes longer than sending, more requests would only wait for the store.
    if (hasTimeLeft && this.#writing.ms < this.#answering.ms) return allowed
    if (tookMs >= SLOW_MS && tookMs >= SLOW_TIMES * this.#answering.ms) return allowed
    // A share by lane, not a fixed limit: a single busy lane delivers twice as much with 60 requests in flight as with 2.
    return Math.min(allowed, Math.max(LEAST_SHARE, Math.floor(SATURATED_AT / this.#busyLanes())))
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
