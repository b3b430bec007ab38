/**
 * A lane's fetched deliveries that have not started, in the store's fetch order: by priority, first attempts before retries, then by
 * arrival. Every fifth start goes to a waiting retry, so that neither kind starves the other.
 */
import { placesOf } from "../store/open-lane.ts"
import { priorityNumber } from "../store/rows.ts"
import type { ClaimedDelivery, Priority } from "../store/store.ts"
import { RETRY_SHARE } from "./lane-state.ts"

/** Two for each priority, first attempts before retries. */
const RANKS = 6

export class LaneQueue {
  readonly #ranks = Array.from({ length: RANKS }, (): ClaimedDelivery[] => [])
  #length = 0
  #places = 0
  #started = 0

  get length(): number {
    return this.#length
  }

  get places(): number {
    return this.#places
  }

  /** Whether a delivery is queued that a first attempt of this priority would overtake. */
  holdsLowerThan(priority: Priority): boolean {
    return this.#ranks.some((rank, i) => i > rankOf(priority, true) && rank.length > 0)
  }

  add(delivery: ClaimedDelivery): void {
    this.#ranks[rankOf(delivery.priority, isRetry(delivery))]!.push(delivery)
    this.#length++
    this.#places += placesOf(delivery.payload?.length ?? 0)
  }

  /** The delivery that starts next. */
  get head(): ClaimedDelivery | undefined {
    return this.#next()?.[0]
  }

  shift(): ClaimedDelivery | undefined {
    const delivery = this.#next()?.shift()
    if (delivery === undefined) return undefined
    this.#length--
    this.#places -= placesOf(delivery.payload?.length ?? 0)
    this.#started++
    return delivery
  }

  clear(): ClaimedDelivery[] {
    this.#length = 0
    this.#places = 0
    return this.#ranks.flatMap((rank) => rank.splice(0))
  }

  #next(): ClaimedDelivery[] | undefined {
    const isRetrysTurn = this.#started % RETRY_SHARE === RETRY_SHARE - 1
    const retries = isRetrysTurn ? this.#ranks.find(waitsForRetry) : undefined
    return retries ?? this.#ranks.find(isNotEmpty)
  }
}

function isNotEmpty({ length }: readonly ClaimedDelivery[]): boolean {
  return length > 0
}

function waitsForRetry(rank: readonly ClaimedDelivery[]): boolean {
  return rank.length > 0 && isRetry(rank[0]!)
}

function isRetry({ attemptCount }: ClaimedDelivery): boolean {
  return attemptCount > 0
}

function rankOf(priority: Priority, retry: boolean): number {
  return priorityNumber(priority) * 2 + (retry ? 1 : 0)
}

export function higherOf(a: Priority, b: Priority | null): Priority {
  return b !== null && priorityNumber(b) < priorityNumber(a) ? b : a
}
