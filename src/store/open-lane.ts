/**
 * Limits the handoffs to an open lane. A delivery takes a place, a large payload several. Each lane has some places of its own; a fast lane
 * borrows more from a pool that all lanes of the process share.
 */
export const PLACE_BYTES = 4096
const OWN_PLACES = 256
const LENT_PLACES = 8192

export function placesOf(payloadBytes: number): number {
  return 1 + Math.floor(payloadBytes / PLACE_BYTES)
}

export class LentPlaces {
  #lent = 0

  get isSpent(): boolean {
    return this.#lent >= LENT_PLACES
  }

  lend(more: number): void {
    this.#lent += more
  }
}

export interface OpenLaneInput {
  readonly token: number
  /** Limit of the places that deliveries in hand take. */
  readonly places: number
  readonly inHand: number
  /** How many more deliveries start immediately; negative: that many in hand wait. */
  readonly starting: number
}

export class OpenLane {
  readonly token: number
  readonly #pool: LentPlaces
  readonly #places: number
  #inHand: number
  /** Extra places of large payloads. */
  #large = 0
  #starting: number

  constructor(pool: LentPlaces, { token, places, inHand, starting }: OpenLaneInput) {
    this.token = token
    this.#pool = pool
    this.#places = places
    this.#inHand = inHand
    this.#starting = starting
    pool.lend(this.lent)
  }

  /** Places left; 0 when the next delivery has to be fetched. */
  get room(): number {
    const taken = this.#inHand + this.#large
    if (taken >= OWN_PLACES && this.#pool.isSpent) return 0
    return Math.max(0, this.#places - taken)
  }

  get starting(): number {
    return this.#starting
  }

  get lent(): number {
    return Math.max(0, this.#inHand + this.#large - OWN_PLACES)
  }

  /** Whether the delivery starts immediately. */
  take(payloadBytes: number): boolean {
    this.#change(1, placesOf(payloadBytes) - 1)
    return this.#starting-- > 0
  }

  /** A delivery left the session. Extra places are freed when nothing is in hand: lanes with large payloads soon fetch again. */
  free(): void {
    this.#change(-1)
    this.#starting++
  }

  /** A delivery came into hand by a fetch, or because its outcome could not be written. */
  hold(): void {
    this.#change(1)
    this.#starting--
  }

  /** The lane's deliveries are no longer counted. */
  forget(): void {
    this.#pool.lend(-this.lent)
    this.#inHand = 0
    this.#large = 0
  }

  #change(more: number, large = 0): void {
    const before = this.lent
    this.#inHand += more
    this.#large = this.#inHand <= 0 ? 0 : this.#large + large
    this.#pool.lend(this.lent - before)
  }
}
