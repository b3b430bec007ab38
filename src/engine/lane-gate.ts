/**
 * Decides whether a lane may start a request now, and if not, until when and why. Learns from every outcome. One worker owns a lane at a
 * time, so the decision is local; the stored part comes with each fetch.
 */
import { type Closed, closedBy, type GateUpdate, type LoadedGate } from "../core/gate.ts"
import type { Outcome } from "../core/outcome.ts"
import { type ApplicationRates, Concurrency, RateWindow } from "./limits.ts"

export interface GateLimits {
  readonly appId: string
  readonly concurrency: number
  readonly rateLimit: number | null
  readonly appRateLimit: number | null
}

const OPEN: LoadedGate = {
  deleted: false,
  disabled: false,
  paused: false,
  holdUntil: null,
  epoch: 0,
  token: 0,
  revision: 0,
}

export class LaneGate {
  readonly #concurrency = new Concurrency()
  readonly #rate = new RateWindow()
  readonly #appRates: ApplicationRates
  #stored = OPEN
  /** Learned from outcomes whose settles are not written yet. */
  #unwritten: (Pick<GateUpdate, "holdUntil" | "revision"> & { readonly disabled: boolean }) | null = null
  #revision = 0

  constructor(appRates: ApplicationRates) {
    this.#appRates = appRates
  }

  /** Takes the state that a fetch read, unless a settle was written since. An operator's reset overrides outcomes that are not written yet. */
  load(stored: LoadedGate): void {
    const { epoch, token, revision, holdUntil, disabled } = this.#stored
    const isReset = stored.epoch !== epoch
    const isStale = stored.token < token || (stored.token === token && stored.revision < revision)
    if (isReset) this.#unwritten = null
    this.#stored = isStale && !isReset ? { ...stored, token, revision, holdUntil, disabled } : stored
  }

  /** Null while the lane may work. The lane of a deleted endpoint may, to cancel its deliveries. */
  closed(now: number): Closed | null {
    if (this.deleted) return null
    return closedBy(this.#state(), now)
  }

  #state(): LoadedGate {
    const { holdUntil = null, disabled = false } = this.#unwritten ?? {}
    return {
      ...this.#stored,
      disabled: this.#stored.disabled || disabled,
      holdUntil: latest(this.#stored.holdUntil, holdUntil),
    }
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

  /** Closes the gate at once for a Retry-After or a 410. The update is written with the settle of that response. */
  close(holdUntil: number | null, disables: boolean): GateUpdate {
    const before = this.#state()
    const disabled = before.disabled || disables
    const learned = { holdUntil: latest(before.holdUntil, holdUntil), revision: ++this.#revision }
    this.#unwritten = { ...learned, disabled }
    return { ...learned, epoch: before.epoch, closes: true }
  }

  /** The update of this revision is written, and so is all that was learned before it. */
  written(token: number, revision: number): void {
    if (this.#unwritten === null || this.#unwritten.revision > revision) return
    this.#stored = { ...this.#state(), token, revision }
    this.#unwritten = null
  }

  /** An outcome will never be written: the store's word counts again. */
  unlearn(): void {
    this.#unwritten = null
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
