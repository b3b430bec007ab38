/**
 * A semaphore for the requests in flight in this process, shared by all lanes. A slot stays taken until its outcome is written: a store that
 * cannot keep up slows sending down.
 */
import type { Clock, Timer } from "../core/clock.ts"
import { type Instruments, NO_INSTRUMENTS } from "../observe/instruments.ts"

/** A lane may take a fifth of the free slots, so that many slow receivers together cannot take all of them. */
const SHARE = 5
/** The parts of the slots that retries may take while first attempts wait, and while none does. */
const RETRIES_BESIDE = 1 / 5
const MOST_RETRIES = 1 / 2
/** A delivery that was in flight at this many crashes is sent while no other such delivery is: the next crash then names its cause. */
const SUSPECT_STALLS = 2
const SUSPECT_MS = 1000
/** A generation's length. A request counts as recent for one to three generations. */
const NEW_MS = 1000

/** Slots that were taken in the same span of time. */
interface Generation {
  readonly since: number
  taken: number
  /** The most recent requests in flight at any moment of this generation. */
  peak: number
}

/** A taken slot. One exists for each request in flight, so it holds no more than its release needs. */
export interface Slot {
  readonly generation: Generation
  readonly isRetry: boolean
  /** Of a suspect: running while no other suspect may start. */
  readonly suspectTimer: Timer | null
}

export class Slots {
  readonly #most: number
  readonly #clock: Clock
  readonly #instruments: Instruments
  readonly #retriesBeside: number
  readonly #mostRetries: number
  readonly #firstAttempts = new Set<() => void>()
  readonly #retries = new Set<() => void>()
  #taken = 0
  #takenByRetries = 0
  #suspectTimer: Timer | null = null
  #newest: Generation = { since: Number.NEGATIVE_INFINITY, taken: 0, peak: 0 }
  #before = this.#newest

  constructor(most: number, clock: Clock, instruments = NO_INSTRUMENTS) {
    this.#most = most
    this.#retriesBeside = Math.max(1, Math.floor(most * RETRIES_BESIDE))
    this.#mostRetries = Math.max(1, Math.floor(most * MOST_RETRIES))
    this.#clock = clock
    this.#instruments = instruments
    instruments.slotsChanged(0, most)
  }

  /**
   * The peak of recent requests in flight, without requests that hang. The peak and not the current number: lanes send in bursts, and
   * between two bursts 100 lanes with a backlog grew to 2400 connections.
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

  /** Null: no slot is free for such a delivery of this lane now. `tryAgain` is called once when one may be. */
  take(inFlightInLane: number, stalls: number, isRetry: boolean, tryAgain: () => void): Slot | null {
    const free = this.#most - this.#taken
    const fair = inFlightInLane === 0 || inFlightInLane < free / SHARE
    const isSuspect = stalls >= SUSPECT_STALLS
    const isOverShare = isRetry && this.#takenByRetries >= this.#mostRetries
    if (free <= 0 || !fair || isOverShare || (isSuspect && this.#suspectTimer !== null)) {
      const waiting = isRetry ? this.#retries : this.#firstAttempts
      waiting.add(tryAgain)
      return null
    }
    this.#taken++
    if (isRetry) this.#takenByRetries++
    this.#instruments.slotsChanged(this.#taken, this.#most - this.#taken)
    const generation = this.#generation()
    generation.taken++
    generation.peak = Math.max(generation.peak, generation.taken + this.#before.taken)
    return { generation, isRetry, suspectTimer: isSuspect ? this.#blockSuspects() : null }
  }

  release({ generation, isRetry, suspectTimer }: Slot): void {
    this.#taken--
    if (isRetry) this.#takenByRetries--
    this.#instruments.slotsChanged(this.#taken, this.#most - this.#taken)
    generation.taken--
    if (suspectTimer !== null && this.#suspectTimer === suspectTimer) this.#allowSuspects()
    this.offer()
  }

  #blockSuspects(): Timer {
    this.#suspectTimer = this.#clock.setTimer(SUSPECT_MS, () => {
      this.#allowSuspects()
      this.offer()
    })
    return this.#suspectTimer
  }

  #allowSuspects(): void {
    this.#suspectTimer?.cancel()
    this.#suspectTimer = null
  }

  /** Lets waiting lanes try again: retries up to their share, then first attempts, then retries in the room that is left. */
  offer(): void {
    this.#offerTo(this.#retries, () => this.#takenByRetries < this.#retriesBeside)
    this.#offerTo(this.#firstAttempts, () => true)
    this.#offerTo(this.#retries, () => this.#takenByRetries < this.#mostRetries)
  }

  /** In order. A lane that still gets no slot goes to the end of the queue. */
  #offerTo(waiting: Set<() => void>, hasRoom: () => boolean): void {
    let left = waiting.size
    for (const tryAgain of waiting) {
      if (left-- === 0 || this.#taken >= this.#most || !hasRoom()) return
      waiting.delete(tryAgain)
      tryAgain()
    }
  }
}
