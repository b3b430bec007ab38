/** One timer that can be set again and again. It may ring early: its owner then checks the time and sets it again. */
import type { Clock, Timer } from "./clock.ts"

export class Alarm {
  readonly #clock: Clock
  readonly #ring: () => void
  #timer: Timer | null = null
  #at = Number.POSITIVE_INFINITY

  constructor(clock: Clock, ring: () => void) {
    this.#clock = clock
    this.#ring = ring
  }

  /** Rings at the earliest of these times or before. A timer for an earlier time stays: replacing it costs more than an early ring. */
  setBy(...times: readonly (number | null)[]): void {
    const at = Math.min(...times.map((time) => time ?? Number.POSITIVE_INFINITY))
    if (at >= this.#at) return
    this.#timer?.cancel()
    this.#at = at
    this.#timer = this.#clock.setTimer(Math.max(0, at - this.#clock.now()), () => {
      this.#at = Number.POSITIVE_INFINITY
      this.#timer = null
      this.#ring()
    })
  }

  cancel(): void {
    this.#timer?.cancel()
    this.#timer = null
    this.#at = Number.POSITIVE_INFINITY
  }
}
