/** What this process remembers of an endpoint between two runs of its lane. */
import type { LaneFetch } from "../store/store.ts"
import { type ApplicationRates, Concurrency, RateWindow } from "./limits.ts"
import type { Target } from "./target.ts"

/** How far ahead a lane is fetched at most, in times of what may be under way, and while a fetch brings no more than so much. */
const MOST_AHEAD = 4
const MOST_AHEAD_BYTES = 262_144

export class LaneState {
  readonly endpointId: string
  readonly concurrency = new Concurrency()
  readonly #rate = new RateWindow()
  readonly #appRates: ApplicationRates
  #fetched = 0
  #ahead = 1
  target: Target | null = null
  targetError = ""
  /** The endpoint is gone: what an operator revives for it, or a race left there, is cancelled instead of sent. */
  deleted = false

  constructor(endpointId: string, appRates: ApplicationRates) {
    this.endpointId = endpointId
    this.#appRates = appRates
  }

  /** A fetch of `limit`, in which every n-th place over time is kept for retries. */
  nextShare(limit: number, everyNth: number): Omit<LaneFetch, "token" | "starting" | "inHand"> {
    const before = Math.floor(this.#fetched / everyNth)
    this.#fetched += limit
    return {
      endpointId: this.endpointId,
      limit,
      retryShare: Math.floor(this.#fetched / everyNth) - before,
      knownVersion: this.target?.endpoint.version ?? null,
    }
  }

  /** How many are kept at hand, where so many may be under way. */
  ahead(allowed: number): number {
    return allowed * this.#ahead
  }

  /**
   * What a fetch brought; it ran dry if that was all that it asked for, and nothing was left to send by then. With PostgreSQL that was the
   * rule: one endpoint got 1.2 times as much with four times as many at hand.
   */
  fetched(bytes: number, ranDry: boolean): void {
    if (bytes > MOST_AHEAD_BYTES) this.#ahead = 1
    else if (ranDry && this.#ahead < MOST_AHEAD) this.#ahead *= 2
  }

  /** How long the rate limits of the endpoint and its application ask to wait; zero counts one start. */
  rateWait(now: number): number {
    const { rateLimit = null, appRateLimit = null, appId = "" } = this.target?.endpoint ?? {}
    const appRate = appRateLimit === null ? null : this.#appRates.of(appId)
    const waitMs = Math.max(
      rateLimit === null ? 0 : this.#rate.waitMs(rateLimit, now),
      appRate?.waitMs(appRateLimit!, now) ?? 0,
    )
    if (waitMs > 0) return waitMs
    if (rateLimit !== null) this.#rate.started(now)
    appRate?.started(now)
    return 0
  }
}
