/** The receiver's ledger: which numbered messages arrived, how often, and when. */
import { MOST_ORDINALS } from "./payload.ts"

export interface Expectation {
  /** The first number, and one more than the last. */
  readonly from: number
  readonly to: number
  /** The number of messages that will arrive, each once. */
  readonly arrivals: number
  /** Whether arrival times are stored. */
  readonly timed: boolean
}

export interface Tally {
  readonly expected: number
  /** All requests, counted at the sockets. */
  readonly requests: number
  readonly distinct: number
  readonly duplicates: number
  /** Requests of another round, or without a number of ours. */
  readonly strays: number
  /** Requests that never get a response; in none of the counts above. */
  readonly hung: number
  /** On the shared clock; NaN: no request. */
  readonly firstAt: number
  readonly lastAt: number
  /** By number, starting at `from`; NaN: no request. Null: arrival times were not requested. */
  readonly times: Float64Array | null
}

const NOTHING: Expectation = { from: 0, to: 0, arrivals: Number.POSITIVE_INFINITY, timed: false }

export class Ledger {
  /** One bit for each number, for the whole life of the receiver, so that late repeats are found. */
  readonly #seen = new Uint8Array(MOST_ORDINALS / 8)
  #expectation = NOTHING
  #requests = 0
  /** The number of requests when the books were last read; null: not yet read. */
  #told: number | null = null
  #distinct = 0
  #duplicates = 0
  #strays = 0
  #hung = 0
  #firstAt = Number.NaN
  #lastAt = Number.NaN
  #times: Float64Array | null = null

  /** Requests that came after the books were read count as requests of another round in the next books. */
  expect(expectation: Expectation): void {
    this.#expectation = expectation
    this.#requests = this.#strays = this.#requests - (this.#told ?? this.#requests)
    this.#told = null
    this.#distinct = this.#duplicates = this.#hung = 0
    this.#firstAt = this.#lastAt = Number.NaN
    const { from, to, timed } = expectation
    this.#times = timed ? new Float64Array(to - from).fill(Number.NaN) : null
  }

  /** True for the last expected arrival. */
  arrived(ordinal: number, at: number): boolean {
    this.#requests++
    const { from, to, arrivals } = this.#expectation
    if (!(ordinal >= from && ordinal < to)) {
      this.#strays++
      return false
    }
    const bit = 1 << (ordinal & 7)
    if (this.#seen[ordinal >> 3]! & bit) {
      this.#duplicates++
      return false
    }
    this.#seen[ordinal >> 3]! |= bit
    if (this.#distinct === 0) this.#firstAt = at
    this.#lastAt = at
    if (this.#times !== null) this.#times[ordinal - from] = at
    return ++this.#distinct === arrivals
  }

  hung(): void {
    this.#hung++
  }

  tally(): Tally {
    this.#told = this.#requests
    return {
      expected: this.#expectation.arrivals,
      requests: this.#requests,
      distinct: this.#distinct,
      duplicates: this.#duplicates,
      strays: this.#strays,
      hung: this.#hung,
      firstAt: this.#firstAt,
      lastAt: this.#lastAt,
      times: this.#times,
    }
  }
}

/** Why the books are wrong, or null: every message came once. */
export function mistakeIn({ expected, requests, distinct, duplicates, strays }: Tally): string | null {
  const problems = [
    ...(distinct === expected ? [] : [`${expected - distinct} of ${expected} messages are missing`]),
    ...(duplicates === 0 ? [] : [`${duplicates} came again`]),
    ...(strays === 0 ? [] : [`${strays} requests were of another time`]),
    ...(requests === distinct + duplicates + strays ? [] : [`${requests} requests do not add up`]),
  ]
  return problems.length === 0 ? null : problems.join(", ")
}
