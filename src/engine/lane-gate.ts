/**
 * Decides whether a lane may start a request now, and if not, until when and why. Learns from every outcome. One worker owns a lane at a
 * time, so the decision is local; the stored part comes with each fetch.
 */
import type { Random } from "../core/backoff.ts"
import { learn, rampAt, signalOf, transitionOf, withoutBreaker } from "../core/breaker.ts"
import { learnCost, nextRetryAt, retriesLeft } from "../core/budget.ts"
import { failingTransition, learnAttempt, mustDisable } from "../core/failing.ts"
import { type Closed, closedBy, type GateUpdate, type LearnedGate, type LoadedGate } from "../core/gate.ts"
import { type AttemptOutcome, briefError, isAttempt, isSuccess, type Outcome } from "../core/outcome.ts"
import type { AutoDisablePolicy, BreakerPolicy, BudgetPolicy } from "../core/policy.ts"
import { HEALTHY, type Protection } from "../core/protection.ts"
import type { Reach } from "../transport/transport.ts"
import { type ApplicationRates, Concurrency, RateWindow } from "./limits.ts"
import { RecentAttempts } from "./recent-attempts.ts"

export interface GateLimits {
  readonly appId: string
  readonly concurrency: number
  readonly rateLimit: number | null
  readonly appRateLimit: number | null
  readonly breaker: BreakerPolicy | false
  readonly budget: BudgetPolicy | false
  readonly autoDisable: AutoDisablePolicy | false
  /** Of an endpoint whose transport is a connection; null: requests may always start. */
  readonly reach: (() => Reach) | null
}

/** The probe of a half-open breaker; null for other requests. `interval`: the open interval that it ends; it decides no later one. */
export type Probe = { readonly interval: number } | null

/** An attempt that ended, as far as the gate needs it. */
export interface Ended {
  readonly outcome: Outcome
  /** From `LaneGate.started`. */
  readonly probe: Probe
  /** Requests in flight, this one included. */
  readonly sending: number
  /** How far the lane may grow now. */
  readonly most: number
  readonly isBacklogGone: boolean
  /** Whether the delivery had been attempted before. */
  readonly isRetry: boolean
  /** When the delivery is attempted again; null: never. */
  readonly retryAt: number | null
  readonly now: number
}

/** The demands of a settlement on the gate: a Retry-After, and whether the endpoint is disabled. */
export interface Closing {
  readonly holdUntil: number | null
  readonly disables: boolean
}

/** The next attempt is far away, and a success was long ago: nothing else would tell within a minute that the endpoint fails. */
const ALONE_MS = 30_000
const LATELY_MS = 300_000

const OPEN: LoadedGate = {
  deleted: false,
  disabled: false,
  paused: false,
  holdUntil: null,
  protection: HEALTHY,
  epoch: 0,
  token: 0,
  revision: 0,
}

export class LaneGate {
  readonly #concurrency = new Concurrency()
  readonly #rate = new RateWindow()
  readonly #rampRate = new RateWindow()
  readonly #recent = new RecentAttempts()
  readonly #appRates: ApplicationRates
  readonly #random: Random
  #stored = OPEN
  /** Learned from outcomes whose settles are not written yet. */
  #unwritten: (LearnedGate & { readonly revision: number; readonly disabled: boolean }) | null = null
  #revision = 0
  #probe: Probe = null
  #lastSuccessAt = Number.NEGATIVE_INFINITY
  /** A fetch found nothing more to send: the ramp ends with the next success. */
  #isCaughtUp = false

  constructor(appRates: ApplicationRates, random: Random) {
    this.#appRates = appRates
    this.#random = random
  }

  /** A new run of the lane begins. Requests of an earlier run that are still in flight decide nothing any more. */
  begin(): void {
    this.#probe = null
    this.#unwritten = null
  }

  /** Takes the state that a fetch read, unless a settle was written since. An operator's reset overrides outcomes that are not written yet. */
  load(stored: LoadedGate): void {
    const { epoch, token, revision, holdUntil, protection, disabled } = this.#stored
    const isReset = stored.epoch !== epoch
    const isStale = stored.token < token || (stored.token === token && stored.revision < revision)
    if (isReset) this.#unwritten = null
    this.#stored =
      isStale && !isReset ? { ...stored, token, revision, holdUntil, protection, disabled } : stored
  }

  /** Null while the lane may work. The lane of a deleted endpoint may, to cancel its deliveries. */
  closed(now: number): Closed | null {
    if (this.deleted) return null
    return closedBy(this.#state(), now)
  }

  #state(): LoadedGate {
    const unwritten = this.#unwritten
    if (unwritten === null) return this.#stored
    return {
      ...this.#stored,
      disabled: this.#stored.disabled || unwritten.disabled,
      holdUntil: latest(this.#stored.holdUntil, unwritten.holdUntil),
      protection: unwritten.protection,
    }
  }

  get deleted(): boolean {
    return this.#stored.deleted
  }

  get protection(): Protection {
    return this.#unwritten?.protection ?? this.#stored.protection
  }

  /** Since when deliveries could be tried: Posthorn holds them while the breaker is open, in a ramp, and while the budget is spent. */
  sendableSince(now: number, limits: GateLimits): number {
    const { phase, until, retriesAt } = protectionBy(limits, this.protection)
    return phase === "ramping" ? now : Math.max(until ?? 0, Math.min(retriesAt ?? 0, now))
  }

  /** The end of the last Retry-After, at most `now`. */
  heldUntil(now: number): number {
    return Math.min(latest(this.#stored.holdUntil, this.#unwritten?.holdUntil ?? null) ?? 0, now)
  }

  /** Null when a request may start. */
  mayStart(now: number, sending: number, limits: GateLimits): Closed | null {
    const closed = this.closed(now)
    if (closed !== null) return closed
    const reach = limits.reach?.() ?? "open"
    if (reach === "absent") return { reason: "agent", until: null }
    if (reach === "busy") return { reason: "concurrency", until: null }
    if (this.#isHalfOpen(limits)) {
      if (this.#probe?.interval === this.#interval) return { reason: "probe", until: null }
    } else if (sending >= this.allowed(limits)) return { reason: "concurrency", until: null }
    const waitMs = this.#rateWaitMs(now, limits)
    if (waitMs > 0) return { reason: "rate", until: now + waitMs }
    const rampMs = this.#rampWaitMs(now, limits)
    return rampMs > 0 ? { reason: "ramp", until: now + rampMs } : null
  }

  /** Null when a retry may start too; `inHand`: other retries that are queued or in flight. A probe of the breaker needs no budget. */
  mayRetry(now: number, inHand: number, limits: GateLimits): Closed<"budget"> | null {
    if (this.retriesLeft(now, inHand, limits) > 0) return null
    return {
      reason: "budget",
      until: nextRetryAt(this.protection, limits.budget as BudgetPolicy, inHand, now),
    }
  }

  /** How many retries the budget has left beside those in hand. */
  retriesLeft(now: number, inHand: number, limits: GateLimits): number {
    if (limits.budget === false || this.#isHalfOpen(limits)) return Number.POSITIVE_INFINITY
    return retriesLeft(this.protection, limits.budget, inHand, now)
  }

  started(now: number, limits: GateLimits): Probe {
    const { appId, rateLimit, appRateLimit } = limits
    if (rateLimit !== null) this.#rate.started(now)
    if (appRateLimit !== null) this.#appRates.of(appId).started(now)
    if (this.#rampOf(limits, now) !== null) this.#rampRate.started(now)
    if (!this.#isHalfOpen(limits)) return null
    this.#probe = { interval: this.#interval }
    return this.#probe
  }

  get #interval(): number {
    return this.protection.until ?? 0
  }

  allowed(limits: GateLimits): number {
    return this.#isHalfOpen(limits) ? 1 : this.#concurrency.allowed(limits.concurrency)
  }

  /** The open interval is over, and no probe has decided yet. Callers have seen that the gate is not closed. */
  #isHalfOpen({ breaker }: GateLimits): boolean {
    return isActive(breaker) && this.protection.phase === "open"
  }

  #rampOf({ breaker }: GateLimits, now: number): number | null {
    return isActive(breaker) ? rampAt(this.protection, breaker, now) : null
  }

  /** Null when nothing changed that has to be stored. The gate is closed at once; the update is written with the settle. */
  learn(ended: Ended, limits: GateLimits, { holdUntil, disables }: Closing): GateUpdate | null {
    const { outcome, probe, sending, most, now } = ended
    const before = this.#state()
    const learned = this.#protectionAfter(ended, limits, protectionBy(limits, before.protection))
    const isAlone = (ended.retryAt ?? 0) > now + ALONE_MS && now - this.#lastSuccessAt > LATELY_MS
    const protection = isAttempt(outcome) ? afterAttempt(learned, outcome, isAlone, ended, limits) : learned
    this.ended(probe)
    const isGood = isSuccess(outcome)
    if (isGood) this.#lastSuccessAt = now
    if (protection.phase === "ramping" && before.protection.phase !== "ramping") this.#concurrency.restart()
    if (outcome.kind === "failure") this.#concurrency.failed()
    else if (isGood && protection.phase === "ramping") this.#concurrency.doubled(sending, most)
    else if (isGood) this.#concurrency.succeeded(sending, most)
    if (holdUntil === null && !disables && protection === before.protection) return null

    const fails = isAttempt(outcome) && !isGood && mustDisable(protection, limits.autoDisable, now)
    // Requests that were in flight together disable the endpoint once.
    const disableReason = before.disabled ? null : disables ? "gone" : fails ? "failing" : null
    const next = { holdUntil: latest(before.holdUntil, holdUntil), protection, revision: ++this.#revision }
    this.#unwritten = { ...next, disabled: before.disabled || disableReason !== null }
    const closes = closedBy(this.#state(), now) !== null
    const transitions = [
      transitionOf(before.protection, protection),
      failingTransition(before.protection, protection),
    ].filter((one) => one !== null)
    const { epoch, protection: previous } = before
    return { ...next, epoch, closes, disables: disableReason, transitions, previous }
  }

  #protectionAfter(
    { outcome, probe, isBacklogGone, now }: Ended,
    { breaker }: GateLimits,
    before: Protection,
  ) {
    const signal = signalOf(outcome)
    if (signal === null || breaker === false) return before
    const recent = {
      ...this.#recent.add(signal, probe !== null, breaker.window, now),
      isBacklogGone: isBacklogGone || this.#isCaughtUp,
    }
    const isProbe = probe !== null && probe === this.#probe && probe.interval === this.#interval
    const after = learn(before, signal, isProbe, recent, breaker, now, this.#random)
    if (after.phase === before.phase) return after
    this.#recent.forgetWindow()
    this.#isCaughtUp = false
    return after
  }

  caughtUp(): void {
    this.#isCaughtUp = true
  }

  /** The request is not in flight any more. Without an outcome it decides nothing, and the next request is the probe. */
  ended(probe: Probe): void {
    if (probe !== null && probe === this.#probe) this.#probe = null
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

  #rampWaitMs(now: number, limits: GateLimits): number {
    const perSecond = this.#rampOf(limits, now)
    return perSecond === null ? 0 : this.#rampRate.waitMs(perSecond, now)
  }
}

function isActive(breaker: BreakerPolicy | false): breaker is BreakerPolicy {
  return breaker !== false && !breaker.report
}

/** The policy may have changed since the breaker opened. */
function protectionBy({ breaker }: GateLimits, protection: Protection): Protection {
  return isActive(breaker) ? protection : withoutBreaker(protection)
}

function afterAttempt(
  learned: Protection,
  outcome: AttemptOutcome,
  isAlone: boolean,
  { isRetry, probe, now }: Ended,
  { budget }: GateLimits,
): Protection {
  const attempted = learnAttempt(learned, briefError(outcome), isRetry, isAlone, now)
  return budget === false ? attempted : learnCost(attempted, outcome, isRetry && probe === null, budget, now)
}

function latest(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : Math.max(a, b)
}
