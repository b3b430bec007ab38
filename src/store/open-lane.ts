/**
 * How many deliveries an open lane may still be handed. Each takes a place, and a large payload several. A lane has some places of its own;
 * what a quick lane takes beyond them is lent from a pool that all lanes of the process share.
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
  /** Most places that its deliveries in hand may take. */
  readonly places: number
  readonly inHand: number
  /** How many more start at once; negative: that many in hand wait for their turn. */
  readonly starting: number
}

export class OpenLane {
  readonly token: number
  readonly #pool: LentPlaces
  readonly #places: number
  #inHand: number
  /** Places that large payloads take beyond one each. */
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

  /** Whether the delivery starts at once. */
  take(payloadBytes: number): boolean {
    this.#change(1, placesOf(payloadBytes) - 1)
    return this.#starting-- > 0
  }

  /** A delivery in hand is done with. Large ones give back their extra places when nothing is in hand: such lanes are soon fetched again. */
  free(): void {
    this.#change(-1)
    this.#starting++
  }

  /** One more delivery is in hand: it was fetched, or its outcome could not be written. */
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
