/**
 * The requests that may be under way at once in this process, shared by all lanes. A place is taken until the outcome is written,
 * so that a store that cannot keep up slows the sending down.
 */
import type { Clock, Timer } from "../core/clock.ts"

/** A lane may have a fifth of what is free, so that many slow receivers together cannot take it all. */
const SHARE = 5
/** A delivery that was under way at this many crashes is sent while no other such is, so that a crash shows which one it was. */
const SUSPECT_STALLS = 2
const SUSPECT_MS = 1000
/** How long a request that is under way counts as new, at least; at most three times as long. That there were so many is known for as long again. */
const NEW_MS = 1000

/** Places that were taken in the same span of time. */
interface Generation {
  readonly since: number
  taken: number
  /** The most that were taken newly at any moment of it. */
  peak: number
}

/** A place that was taken. There are as many as requests under way, so it is no more than what giving it back needs. */
export interface Slot {
  readonly generation: Generation
  readonly gate: Timer | null
}

export class Slots {
  readonly #most: number
  readonly #clock: Clock
  readonly #waiting = new Set<() => void>()
  #taken = 0
  #suspect: Timer | null = null
  #newest: Generation = { since: Number.NEGATIVE_INFINITY, taken: 0, peak: 0 }
  #before = this.#newest

  constructor(most: number, clock: Clock) {
    this.#most = most
    this.#clock = clock
  }

  /**
   * The most of late that were taken and not for long: requests that hang are not among them. Not those of this moment, since lanes send in
   * bursts: between two of them there seemed to be room, and 100 lanes with a backlog took it, for 2400 connections.
   */
  get takenOfLate(): number {
    return Math.max(this.#generation().peak, this.#before.peak)
  }

  #generation(): Generation {
    const since = this.#clock.now()
    const age = since - this.#newest.since
    if (age < NEW_MS) return this.#newest
    this.#before = age < 2 * NEW_MS ? this.#newest : { since, taken: 0, peak: 0 }
    this.#newest = { since, taken: 0, peak: 0 }
    return this.#newest
  }

  /** Null when none is free for this lane now; `retry` is then called once, when one may be. */
  take(underWayInLane: number, stalls: number, retry: () => void): Slot | null {
    const free = this.#most - this.#taken
    const fair = underWayInLane === 0 || underWayInLane < free / SHARE
    const isSuspect = stalls >= SUSPECT_STALLS
    if (free <= 0 || !fair || (isSuspect && this.#suspect !== null)) {
      this.#waiting.add(retry)
      return null
    }
    this.#taken++
    const generation = this.#generation()
    generation.taken++
    generation.peak = Math.max(generation.peak, generation.taken + this.#before.taken)
    return { generation, gate: isSuspect ? this.#closeGate() : null }
  }

  release({ generation, gate }: Slot): void {
    this.#taken--
    generation.taken--
    if (gate !== null && this.#suspect === gate) this.#openGate()
    this.offer()
  }

  #closeGate(): Timer {
    this.#suspect = this.#clock.setTimer(SUSPECT_MS, () => {
      this.#openGate()
      this.offer()
    })
    return this.#suspect
  }

  #openGate(): void {
    this.#suspect?.cancel()
    this.#suspect = null
  }

  /** Lets those that wait try again, first come first served; who still finds none waits again, behind the others. */
  offer(): void {
    let left = this.#waiting.size
    for (const retry of this.#waiting) {
      if (left-- === 0 || this.#taken >= this.#most) return
      this.#waiting.delete(retry)
      retry()
    }
  }
}
