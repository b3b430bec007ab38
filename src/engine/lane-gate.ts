/**
 * Decides whether a lane may start a request now, and if not, until when and why. Learns from every outcome. One worker owns a lane at a
 * time, so the decision is local; the stored part comes with each fetch.
 */
import { type Closed, closedBy, type GateState } from "../core/gate.ts"
import type { Outcome } from "../core/outcome.ts"
import { type ApplicationRates, Concurrency, RateWindow } from "./limits.ts"

export interface GateLimits {
  readonly appId: string
  readonly concurrency: number
  readonly rateLimit: number | null
  readonly appRateLimit: number | null
}

const OPEN: GateState = { deleted: false, disabled: false, paused: false, holdUntil: null }

export class LaneGate {
  readonly #concurrency = new Concurrency()
  readonly #rate = new RateWindow()
  readonly #appRates: ApplicationRates
  #stored = OPEN

  constructor(appRates: ApplicationRates) {
    this.#appRates = appRates
  }

  /** The state that a fetch brought. */
  load(stored: GateState): void {
    this.#stored = stored
  }

  get deleted(): boolean {
    return this.#stored.deleted
  }

  /** Null when a request may start. Deliveries of a deleted endpoint may always: they are cancelled instead of sent. */
  mayStart(now: number, sending: number, limits: GateLimits): Closed | null {
    const stored = this.deleted ? null : closedBy(this.#stored, now)
    if (stored !== null) return stored
    if (sending >= this.allowed(limits)) return { reason: "concurrency", until: null }
    const waitMs = this.#rateWaitMs(now, limits)
    return waitMs > 0 ? { reason: "rate", until: now + waitMs } : null
  }

  started(now: number, { appId, rateLimit, appRateLimit }: GateLimits): void {
    if (rateLimit !== null) this.#rate.started(now)
    if (appRateLimit !== null) this.#appRates.of(appId).started(now)
  }

  allowed({ concurrency }: GateLimits): number {
    return this.#concurrency.allowed(concurrency)
  }

  /** `sending` counts the request that ended; `most` is how far the lane may grow now. */
  learn(outcome: Outcome, sending: number, most: number): void {
    if (outcome.kind === "failure") this.#concurrency.failed()
    else if (outcome.kind === "response" && outcome.status < 300) this.#concurrency.succeeded(sending, most)
  }

  /** The receiver asked for time. */
  hold(until: number): void {
    this.#stored = { ...this.#stored, holdUntil: Math.max(until, this.#stored.holdUntil ?? 0) }
  }

  #rateWaitMs(now: number, { appId, rateLimit, appRateLimit }: GateLimits): number {
    return Math.max(
      rateLimit === null ? 0 : this.#rate.waitMs(rateLimit, now),
      appRateLimit === null ? 0 : this.#appRates.of(appId).waitMs(appRateLimit, now),
    )
  }
}
