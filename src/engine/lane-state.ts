/** An endpoint's state in this process, kept between two runs of its lane. */
import type { Random } from "../core/backoff.ts"
import { describe } from "../core/errors.ts"
import { MOST_CREDIT } from "../core/relay-protocol.ts"
import type { Endpoint, LaneWant } from "../store/store.ts"
import type { Reach } from "../transport/transport.ts"
import type { LaneDependencies } from "./lane-dependencies.ts"
import { type GateLimits, LaneGate } from "./lane-gate.ts"
import type { ApplicationRates } from "./limits.ts"
import type { Target } from "./target.ts"

/** Prefetch limit, as a multiple of the lane's concurrency, and the size of a fetch beyond which it is not raised. */
const MOST_AHEAD = 4
const MOST_AHEAD_BYTES = 262_144
/** Most places for handoffs, as a multiple of the lane's concurrency: a fetch costs more than they do. */
const HANDOFF_PLACES = 4
/** The same for an endpoint that keeps up at full concurrency: it soon works off a burst. */
const HANDOFF_PLACES_IF_QUICK = 64
/** One in this many fetched deliveries is a retry, also while first attempts keep coming. */
export const RETRY_SHARE = 5

export class LaneState {
  readonly gate: LaneGate
  readonly #appId: string
  readonly #laneConcurrency: number
  #fetched = 0
  #ahead = 1
  #target: Target | null = null
  #reach: (() => Reach) | null = null
  #limits: GateLimits
  targetError = ""
  /** The tenant of the endpoint; empty until the endpoint was read. */
  orgId = ""
  /** When the first attempt since the endpoint's last answer ended without one; null: the last attempt was answered, or there was none. */
  unansweredSince: number | null = null

  /** `laneConcurrency`: the limit for endpoints without one of their own. */
  constructor(appId: string, appRates: ApplicationRates, laneConcurrency: number, random: Random) {
    this.#appId = appId
    this.gate = new LaneGate(appRates, random)
    this.#laneConcurrency = laneConcurrency
    this.#limits = this.#limitsOf(null)
  }

  get target(): Target | null {
    return this.#target
  }

  set target(target: Target | null) {
    this.#target = target
    this.#limits = this.#limitsOf(target)
  }

  /** If the endpoint's secrets or policy cannot be read, its deliveries are set back as faults of our own. */
  retarget(
    endpoint: Endpoint | null,
    { target, transport }: Pick<LaneDependencies, "target" | "transport">,
  ): void {
    if (endpoint === null) return
    this.orgId = endpoint.orgId
    this.#reach = transport.reachOf(endpoint)
    try {
      this.target = target(endpoint)
    } catch (error) {
      this.target = null
      this.targetError = describe(error)
    }
  }

  get isOrdered(): boolean {
    return this.#target?.endpoint.ordered ?? false
  }

  /** `absent`: the endpoint's agent is not connected to this process; another one may have its connection. */
  get reach(): Reach {
    return this.#reach?.() ?? "open"
  }

  get limits(): GateLimits {
    return this.#limits
  }

  #limitsOf(target: Target | null): GateLimits {
    const { ordered = false, concurrency, rateLimit = null, appRateLimit = null } = target?.endpoint ?? {}
    const highest = this.#reach === null ? Number.POSITIVE_INFINITY : MOST_CREDIT
    const most = ordered ? 1 : Math.min(concurrency ?? this.#laneConcurrency, highest)
    const { breaker = false, budget = false, autoDisable = false } = target?.policy ?? {}
    const rates = { appId: this.#appId, rateLimit, appRateLimit }
    return { ...rates, concurrency: most, breaker, budget, autoDisable, reach: this.#reach }
  }

  /** Since when the endpoint's deliveries could be tried: neither an operator nor Posthorn held them. */
  sendableSince(now: number): number {
    return Math.max(this.#target?.endpoint.resumedAt ?? 0, this.gate.sendableSince(now, this.#limits))
  }

  /** The concurrency limit of this moment. */
  get allowed(): number {
    return this.gate.allowed(this.#limits)
  }

  /** The prefetch limit of this moment. */
  get ahead(): number {
    return this.allowed * this.#ahead
  }

  /** Capacity for handoffs. 0 for an ordered lane, whose deliveries are fetched one by one. */
  handoffPlaces({ othersWait }: Pick<LaneDependencies, "othersWait">): number {
    if (this.#target === null) return HANDOFF_PLACES
    const most = this.#limits.concurrency
    if (this.isOrdered) return 0
    const isQuick = most > 1 && this.allowed === most && !othersWait()
    return most * (isQuick ? HANDOFF_PLACES_IF_QUICK : HANDOFF_PLACES)
  }

  nextShare(
    limit: number,
    retriesInHand: number,
    now: number,
  ): Pick<LaneWant, "limit" | "retryShare" | "retries"> {
    const before = Math.floor(this.#fetched / RETRY_SHARE)
    this.#fetched += limit
    return {
      limit,
      retryShare: Math.floor(this.#fetched / RETRY_SHARE) - before,
      retries: Math.min(limit, this.gate.retriesLeft(now, retriesInHand, this.#limits)),
    }
  }

  /**
   * `ranDry`: a full fetch came back after the queue had run empty. Doubling the prefetch then gave one endpoint on PostgreSQL 1.2 times
   * the throughput.
   */
  fetched(bytes: number, ranDry: boolean): void {
    if (bytes > MOST_AHEAD_BYTES) this.#ahead = 1
    else if (ranDry && this.#ahead < MOST_AHEAD) this.#ahead *= 2
  }
}
