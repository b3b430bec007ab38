/** The system's clock, moved by an offset that a test changes between two pieces of work: data gets a past in a moment. */
import { type Clock, SteadyTime, systemClock, type Timer } from "../../src/core/clock.ts"

export class ShiftedClock implements Clock {
  readonly #system = systemClock()
  readonly #steady: SteadyTime
  readonly #firstOffsetMs: number
  #offsetMs: number

  constructor(offsetMs: number) {
    this.#firstOffsetMs = offsetMs
    this.#offsetMs = offsetMs
    this.#steady = new SteadyTime({ wallMs: () => this.wallNow(), monotonicMs: () => this.elapsedMs() })
  }

  now(): number {
    return this.#steady.now()
  }

  elapsedMs(): number {
    return this.#system.elapsedMs() + this.#offsetMs - this.#firstOffsetMs
  }

  wallNow(): number {
    return this.#system.wallNow() + this.#offsetMs
  }

  hasTimeLeft(): boolean {
    return this.#system.hasTimeLeft()
  }

  /** In real time: a timer that is set stays where it is when the clock is moved. */
  setTimer(delayMs: number, run: () => void): Timer {
    return this.#system.setTimer(delayMs, run)
  }

  advance(ms: number): void {
    this.#offsetMs += ms
  }
}
