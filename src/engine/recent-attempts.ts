/** Counts of a lane's recent attempts, in its owner's memory. After a takeover they begin anew. */
import type { Recent, Signal } from "../core/breaker.ts"
import { RecentCount } from "./limits.ts"

const WINDOW_PARTS = 6
const RATE_MS = 300_000
const RATE_PARTS = 5

/** Only failures and probes change a breaker: another success needs no sums. */
const NOTHING = { attempts: 0, downs: 0, rate: 0 }

export class RecentAttempts {
  readonly #good = new RecentCount(RATE_MS, RATE_PARTS)
  #windowSeconds = 0
  #attempts = new RecentCount(1, 1)
  #downs = new RecentCount(1, 1)

  add(signal: Signal, isProbe: boolean, windowSeconds: number, now: number): Omit<Recent, "isBacklogGone"> {
    if (windowSeconds !== this.#windowSeconds) this.#resize(windowSeconds)
    this.#attempts.add(now)
    if (signal === "up" && !isProbe) {
      this.#good.add(now)
      return NOTHING
    }
    if (signal === "down") this.#downs.add(now)
    return {
      attempts: this.#attempts.sum(now),
      downs: this.#downs.sum(now),
      rate: this.#good.perSecond(now),
    }
  }

  /** The breaker opened or closed: attempts from before say nothing about the time after. */
  forgetWindow(): void {
    this.#resize(this.#windowSeconds)
  }

  #resize(windowSeconds: number): void {
    this.#windowSeconds = windowSeconds
    this.#attempts = new RecentCount(windowSeconds * 1000, WINDOW_PARTS)
    this.#downs = new RecentCount(windowSeconds * 1000, WINDOW_PARTS)
  }
}
