/** What this process remembers of an endpoint between two runs of its lane. */
import type { LaneFetch } from "../store/store.ts"
import { Concurrency, RateWindow } from "./limits.ts"
import type { Target } from "./target.ts"

export class LaneState {
  readonly endpointId: string
  readonly concurrency = new Concurrency()
  readonly #rate = new RateWindow()
  #fetched = 0
  target: Target | null = null
  targetError = ""
  /** The endpoint is gone: what an operator revives for it, or a race left there, is cancelled instead of sent. */
  deleted = false

  constructor(endpointId: string) {
    this.endpointId = endpointId
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

  /** How long the endpoint's rate limit asks to wait; zero counts one start. */
  rateWait(now: number): number {
    const rateLimit = this.target?.endpoint.rateLimit ?? null
    return rateLimit === null ? 0 : this.#rate.take(rateLimit, now)
  }
}
