/** What every lane run works with: the engine's parts, handed over as one. */
import type { Random } from "../core/backoff.ts"
import type { Clock } from "../core/clock.ts"
import type { Ids } from "../core/ids.ts"
import type { Policy } from "../core/policy.ts"
import type { Logger } from "../observe/log.ts"
import type { Endpoint, Store } from "../store/store.ts"
import type { Transport } from "../transport/transport.ts"
import type { Load } from "./load.ts"
import type { OAuthTokens } from "./oauth.ts"
import type { Reporter } from "./reporter.ts"
import type { Settler } from "./settler.ts"
import type { Slots } from "./slots.ts"
import type { Target } from "./target.ts"

export interface Crew {
  readonly store: Store
  readonly transport: Transport
  readonly clock: Clock
  readonly random: Random
  readonly ids: Ids
  readonly logger: Logger
  readonly tokens: OAuthTokens
  readonly settler: Settler
  readonly reporter: Reporter
  readonly slots: Slots
  readonly load: Load
  readonly budget: PollBudget
  readonly uptime: Uptime
  readonly defaultPolicy: Policy
  /** The most requests under way to one endpoint that does not say. */
  readonly laneConcurrency: number
  target(endpoint: Endpoint): Target
  stopping(): boolean
  /** Whether this process may still send for the lanes that it claimed. */
  holds(): boolean
  /** Whether one more lane may be kept open with nothing to do. */
  mayRest(): boolean
  /** Whether lanes wait that find no place because of those being worked on. */
  othersWait(): boolean
}

/** Seed 001's cap: at most so many deliveries between two polls, woken ones too. Unset, it never runs out. */
export class PollBudget {
  readonly #perPoll: number
  #left: number

  constructor(perPoll: number | null) {
    this.#perPoll = perPoll ?? Number.POSITIVE_INFINITY
    this.#left = this.#perPoll
  }

  get isLimited(): boolean {
    return this.#perPoll !== Number.POSITIVE_INFINITY
  }

  get isSpent(): boolean {
    return this.#left <= 0
  }

  take(wanted: number): number {
    const granted = Math.min(wanted, this.#left)
    this.#left -= granted
    return granted
  }

  giveBack(unused: number): void {
    this.#left = Math.min(this.#left + unused, this.#perPoll)
  }

  refill(): void {
    this.#left = this.#perPoll
  }
}

/** Since when this process has been able to work: from its start, or from the end of the store's last outage. */
export class Uptime {
  #since = 0
  #isDown = true

  get since(): number {
    return this.#since
  }

  reached(now: number): void {
    if (this.#isDown) this.#since = now
    this.#isDown = false
  }

  failed(): void {
    this.#isDown = true
  }
}
