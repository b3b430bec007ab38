/** Concurrency and rate limits of an endpoint, local because one worker owns its lane. An application's rate limit holds for each worker. */
import { BoundedCache } from "../core/bounded-cache.ts"

const RATE_WINDOW_MS = 1000
const MOST_APPLICATIONS = 10_000

/** Starts at one request, grows by one with each success at full concurrency, and is halved by a failure. */
export class Concurrency {
  #allowed = 1

  allowed(most: number): number {
    return Math.min(this.#allowed, most)
  }

  succeeded(inFlight: number, most: number): void {
    if (inFlight >= this.#allowed && this.#allowed < most) this.#allowed++
  }

  failed(): void {
    this.#allowed = Math.max(1, this.#allowed >> 1)
  }

  /** After an outage: 1, 2, 4, … */
  doubled(inFlight: number, most: number): void {
    if (inFlight >= this.#allowed) this.#allowed = Math.min(most, this.#allowed * 2)
  }

  restart(): void {
    this.#allowed = 1
  }
}

/** Counts within the last `spanMs`, in `parts` buckets: a count is forgotten at most one bucket early. */
export class RecentCount {
  readonly #spanMs: number
  readonly #counts: number[]
  /** The number of the newest bucket since 1970. */
  #newest = 0
  #firstAt: number | null = null

  constructor(spanMs: number, parts: number) {
    this.#spanMs = spanMs
    this.#counts = new Array(parts).fill(0)
  }

  add(now: number): void {
    this.#firstAt ??= now
    this.#turn(now)
    this.#counts[this.#newest % this.#counts.length]!++
  }

  sum(now: number): number {
    this.#turn(now)
    return this.#counts.reduce((sum, count) => sum + count, 0)
  }

  /** The average since the first count, as far back as the buckets go, over one bucket at least. */
  perSecond(now: number): number {
    const sum = this.sum(now)
    const bucketMs = this.#spanMs / this.#counts.length
    const from = Math.max((this.#newest - this.#counts.length + 1) * bucketMs, this.#firstAt ?? now)
    return (sum * 1000) / Math.max(now - from, bucketMs)
  }

  #turn(now: number): void {
    const parts = this.#counts.length
    const bucket = Math.floor((now * parts) / this.#spanMs)
    for (let next = Math.max(this.#newest, bucket - parts) + 1; next <= bucket; next++)
      this.#counts[next % parts] = 0
    this.#newest = Math.max(this.#newest, bucket)
  }
}

/** At most `perSecond` starts in any second, by remembering the times of the last `perSecond` starts. */
export class RateWindow {
  #starts: number[] = []
  #oldest = 0
  #perSecond = 0

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

/** Rate windows by application: its lanes share one. */
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
