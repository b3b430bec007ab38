/**
 * What one endpoint may do at once, and an endpoint or an application in a second. Local, since one worker owns a lane at a time; an
 * application's limit is that of each worker.
 */

import { BoundedCache } from "../core/bounded-cache.ts"

const RATE_WINDOW_MS = 1000
const MOST_APPLICATIONS = 10_000

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

  /** How long to wait until one more may start; zero is now. */
  waitMs(perSecond: number, now: number): number {
    if (perSecond !== this.#perSecond) this.#resize(perSecond)
    return Math.max(0, this.#starts[this.#oldest]! + RATE_WINDOW_MS - now)
  }

  started(now: number): void {
    this.#starts[this.#oldest] = now
    this.#oldest = (this.#oldest + 1) % this.#perSecond
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

/** The windows of applications that have a limit: their lanes share one. */
export class ApplicationRates {
  readonly #windows = new BoundedCache<string, RateWindow>(MOST_APPLICATIONS)

  of(appId: string): RateWindow {
    const known = this.#windows.get(appId)
    if (known !== undefined) return known
    const window = new RateWindow()
    this.#windows.set(appId, window)
    return window
  }
}
