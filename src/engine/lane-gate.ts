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
  /** What the receiver asked for, until it is written. */
  #pending: { readonly holdUntil: number | null; readonly disabled: boolean } | null = null

  constructor(appRates: ApplicationRates) {
    this.#appRates = appRates
  }

  /** The state that a fetch brought. */
  load(stored: GateState): void {
    this.#stored = stored
  }

  /** Null while neither the store nor the receiver keeps requests from starting. A deleted endpoint's deliveries may: they are cancelled. */
  closed(now: number): Closed | null {
    if (this.deleted) return null
    const { holdUntil = null, disabled = false } = this.#pending ?? {}
    return closedBy(
      {
        ...this.#stored,
        disabled: this.#stored.disabled || disabled,
        holdUntil: latest(this.#stored.holdUntil, holdUntil),
      },
      now,
    )
  }

  get deleted(): boolean {
    return this.#stored.deleted
  }

  /** Null when a request may start. */
  mayStart(now: number, sending: number, limits: GateLimits): Closed | null {
    const closed = this.closed(now)
    if (closed !== null) return closed
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

  /** The receiver asked for time, or wants no more: the gate is closed before that is written. */
  close(holdUntil: number | null, disabled: boolean): void {
    this.#pending = {
      holdUntil: latest(holdUntil, this.#pending?.holdUntil ?? null),
      disabled: disabled || (this.#pending?.disabled ?? false),
    }
  }

  /** It is written, or never will be: from now on the store's word counts. */
  closeWritten(): void {
    this.#pending = null
  }

  #rateWaitMs(now: number, { appId, rateLimit, appRateLimit }: GateLimits): number {
    return Math.max(
      rateLimit === null ? 0 : this.#rate.waitMs(rateLimit, now),
      appRateLimit === null ? 0 : this.#appRates.of(appId).waitMs(appRateLimit, now),
    )
  }
}

function latest(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : Math.max(a, b)
}
