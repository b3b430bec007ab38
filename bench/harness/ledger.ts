/** The receiver's books: which of the numbered messages came, how often, and when. */
import { MOST_ORDINALS } from "./payload.ts"

export interface Expectation {
  /** The first number, and one more than the last. */
  readonly from: number
  readonly to: number
  /** How many of them will come, each once. */
  readonly arrivals: number
  /** Whether the moment of each arrival is kept. */
  readonly timed: boolean
}

export interface Tally {
  readonly expected: number
  /** As counted at the sockets, whatever they carried. */
  readonly requests: number
  readonly distinct: number
  readonly duplicates: number
  /** Of another time, or not ours. */
  readonly strays: number
  /** Taken and never answered; in none of the counts above. */
  readonly hung: number
  /** On the clock that the processes share; NaN if none came. */
  readonly firstAt: number
  readonly lastAt: number
  /** By number from `from` on; NaN where none came. Null unless they were asked for. */
  readonly times: Float64Array | null
}

const NOTHING: Expectation = { from: 0, to: 0, arrivals: Number.POSITIVE_INFINITY, timed: false }

export class Ledger {
  /** One bit each, over the whole life of the receiver: what comes again much later is known, too. */
  readonly #seen = new Uint8Array(MOST_ORDINALS / 8)
  #expectation = NOTHING
  #requests = 0
  /** How many requests the books told of when they were last read; null if they were not. */
  #told: number | null = null
  #distinct = 0
  #duplicates = 0
  #strays = 0
  #hung = 0
  #firstAt = Number.NaN
  #lastAt = Number.NaN
  #times: Float64Array | null = null

  /** What came since the books were read is in none of them: it is of another time in the next. */
  expect(expectation: Expectation): void {
    this.#expectation = expectation
    this.#requests = this.#strays = this.#requests - (this.#told ?? this.#requests)
    this.#told = null
    this.#distinct = this.#duplicates = this.#hung = 0
    this.#firstAt = this.#lastAt = Number.NaN
    const { from, to, timed } = expectation
    this.#times = timed ? new Float64Array(to - from).fill(Number.NaN) : null
  }

  /** True for the arrival that completes what was expected. */
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

/** Why the books do not add up, or null: every message came, and came once. */
export function mistakeIn({ expected, requests, distinct, duplicates, strays }: Tally): string | null {
  const problems = [
    ...(distinct === expected ? [] : [`${expected - distinct} of ${expected} messages are missing`]),
    ...(duplicates === 0 ? [] : [`${duplicates} came again`]),
    ...(strays === 0 ? [] : [`${strays} requests were of another time`]),
    ...(requests === distinct + duplicates + strays ? [] : [`${requests} requests do not add up`]),
  ]
  return problems.length === 0 ? null : problems.join(", ")
}
