/** What one endpoint may do at once and in a second. Local, since one worker owns a lane at a time. */

const RATE_WINDOW_MS = 1000

/** Starts at one request at a time and grows by one with each success that used all there was; a failure halves it. */
export class Concurrency {
  #allowed = 1

  allowed(most: number): number {
    return Math.min(this.#allowed, most)
  }

  succeeded(underWay: number, most: number): void {
    if (underWay >= this.#allowed && this.#allowed < most) this.#allowed++
  }

  failed(): void {
    this.#allowed = Math.max(1, this.#allowed >> 1)
  }
}

/** At most `perSecond` starts in any second: exact, by remembering that many starts. */
export class RateWindow {
  #starts: number[] = []
  #oldest = 0
  #perSecond = 0

  /** Zero when one more may start now, and counts it; otherwise how long to wait. */
  take(perSecond: number, now: number): number {
    if (perSecond !== this.#perSecond) this.#resize(perSecond)
    const waitMs = this.#starts[this.#oldest]! + RATE_WINDOW_MS - now
    if (waitMs > 0) return waitMs
    this.#starts[this.#oldest] = now
    this.#oldest = (this.#oldest + 1) % perSecond
    return 0
  }

  #resize(perSecond: number): void {
    const kept = [...this.#starts.slice(this.#oldest), ...this.#starts.slice(0, this.#oldest)].slice(
      -perSecond,
    )
    this.#starts = [...new Array(perSecond - kept.length).fill(Number.NEGATIVE_INFINITY), ...kept]
    this.#oldest = 0
    this.#perSecond = perSecond
  }
}
