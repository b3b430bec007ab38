/** A clock that a test moves by hand. Timers fire in order of their time, as if it had passed. */
import { type Clock, SteadyTime, type Timer } from "../../src/core/clock.ts"

interface Waiting {
  readonly at: number
  readonly order: number
  readonly run: () => void
}

/** A Sunday evening, far from the machine's own time so that a mix-up shows. */
export const START = Date.UTC(2031, 4, 18, 18, 0, 0)

export class TestClock implements Clock {
  #monotonicMs = 1_000_000
  #wallMs: number
  #order = 0
  readonly #steady: SteadyTime
  readonly #waiting = new Set<Waiting>()
  isBusy = false

  constructor(startMs = START) {
    this.#wallMs = startMs
    this.#steady = new SteadyTime({ wallMs: () => this.#wallMs, monotonicMs: () => this.#monotonicMs })
  }

  now(): number {
    return this.#steady.now()
  }

  elapsedMs(): number {
    return this.#monotonicMs
  }

  wallNow(): number {
    return this.#wallMs
  }

  hasTimeLeft(): boolean {
    return !this.isBusy
  }

  setTimer(delayMs: number, run: () => void): Timer {
    if (delayMs <= 0) {
      const immediate = setImmediate(run)
      return { cancel: () => clearImmediate(immediate) }
    }
    const waiting = { at: this.#monotonicMs + delayMs, order: this.#order++, run }
    this.#waiting.add(waiting)
    return { cancel: () => this.#waiting.delete(waiting) }
  }

  /** Lets time pass; timers that come due on the way run at their time. Those without a delay run by themselves. */
  advance(ms: number): void {
    const until = this.#monotonicMs + ms
    for (let next = this.#next(until); next !== undefined; next = this.#next(until)) {
      this.#move(Math.max(0, next.at - this.#monotonicMs))
      this.#waiting.delete(next)
      next.run()
    }
    this.#move(until - this.#monotonicMs)
  }

  /** The wall clock is set to another time; no time passes. */
  jumpWall(ms: number): void {
    this.#wallMs += ms
  }

  get timers(): number {
    return this.#waiting.size
  }

  #move(ms: number): void {
    this.#monotonicMs += ms
    this.#wallMs += ms
  }

  #next(until: number): Waiting | undefined {
    let first: Waiting | undefined
    for (const waiting of this.#waiting) {
      if (waiting.at > until) continue
      if (
        first === undefined ||
        waiting.at < first.at ||
        (waiting.at === first.at && waiting.order < first.order)
      )
        first = waiting
    }
    return first
  }
}
