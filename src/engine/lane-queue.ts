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
  #retries = 0
  #started = 0

  get length(): number {
    return this.#length
  }

  get retries(): number {
    return this.#retries
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
    this.#count(delivery, 1)
  }

  /** The delivery that starts next. */
  get head(): ClaimedDelivery | undefined {
    return this.#next()?.[0]
  }

  /** The same while no retry may start. */
  get firstAttempt(): ClaimedDelivery | undefined {
    return this.#ranks.find(waitsForFirstAttempt)?.[0]
  }

  shift(): ClaimedDelivery | undefined {
    return this.#shift(this.#next())
  }

  shiftFirstAttempt(): ClaimedDelivery | undefined {
    return this.#shift(this.#ranks.find(waitsForFirstAttempt))
  }

  #shift(rank: ClaimedDelivery[] | undefined): ClaimedDelivery | undefined {
    const delivery = rank?.shift()
    if (delivery === undefined) return undefined
    this.#count(delivery, -1)
    this.#started++
    return delivery
  }

  #count(delivery: ClaimedDelivery, one: 1 | -1): void {
    this.#length += one
    this.#places += one * placesOf(delivery.payload?.length ?? 0)
    if (isRetry(delivery)) this.#retries += one
  }

  clear(): ClaimedDelivery[] {
    return this.#take(() => true)
  }

  takeRetries(): ClaimedDelivery[] {
    return this.#take(waitsForRetry)
  }

  #take(isTaken: (rank: readonly ClaimedDelivery[]) => boolean): ClaimedDelivery[] {
    const taken = this.#ranks.filter(isTaken).flatMap((rank) => rank.splice(0))
    for (const delivery of taken) this.#count(delivery, -1)
    return taken
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

function waitsForFirstAttempt(rank: readonly ClaimedDelivery[]): boolean {
  return rank.length > 0 && !isRetry(rank[0]!)
}

export function isRetry({ attemptCount }: Pick<ClaimedDelivery, "attemptCount">): boolean {
  return attemptCount > 0
}

function rankOf(priority: Priority, retry: boolean): number {
  return priorityNumber(priority) * 2 + (retry ? 1 : 0)
}

export function higherOf(a: Priority, b: Priority | null): Priority {
  return b !== null && priorityNumber(b) < priorityNumber(a) ? b : a
}
