/** The poll: a safety net for lost wakes. It also finds changes by other programs, and notices that the wall clock was set. */
import { type Clock, type Moment, momentOf, type Timer, wasSet } from "../core/clock.ts"
import type { Trouble } from "../observe/trouble.ts"
import type { Schedule } from "../schedule/schedule.ts"
import type { LaneStore, LaneWake } from "../store/store.ts"

export interface PollerParts {
  readonly store: LaneStore
  readonly schedule: Schedule
  readonly clock: Clock
  readonly trouble: Trouble
  readonly intervalMs: number
  isRunning(): boolean
  /** A poll begins. */
  begun(): void
  /** Lanes may have changed without their runs being told. */
  changed(): void
  /** These lanes have deliveries waiting in the store. */
  found(lanes: readonly LaneWake[]): void
  /** The schedule has every lane that the store has. */
  swept(): void
  ended(): void
}

export class Poller {
  readonly #parts: PollerParts
  #timer: Timer | null = null
  #polls = 0
  #last: Promise<void> = Promise.resolve()
  #sweepDue = true
  /** When a poll last looked at the clocks. */
  #looked: (Moment & { readonly elapsedMs: number }) | null = null

  constructor(parts: PollerParts) {
    this.#parts = parts
  }

  get isPolling(): boolean {
    return this.#polls > 0
  }

  /** Polls now, and from now on at every interval. */
  start(): void {
    const { clock, intervalMs, isRunning } = this.#parts
    if (!isRunning()) return
    this.#timer = clock.setTimer(intervalMs, () => this.start())
    // One poll at a time, and one queued behind it, which sees what the first was too early for.
    if (this.#polls < 2) void this.runOnce()
  }

  /** Resolves when running polls have ended. */
  stop(): Promise<void> {
    this.#timer?.cancel()
    return this.#last
  }

  runOnce(): Promise<void> {
    this.#polls++
    this.#last = this.#last
      .then(() => this.#poll())
      .finally(() => {
        this.#polls--
        this.#parts.ended()
      })
    return this.#last
  }

  async #poll(): Promise<void> {
    const { store, schedule, clock, trouble, isRunning, begun, changed, found, swept } = this.#parts
    if (!isRunning()) return
    try {
      begun()
      // Kept until the sweep succeeds: a failed sweep is repeated at the next poll.
      this.#sweepDue = this.#clockWasSet() || (await store.changedOutside()) || this.#sweepDue
      if (this.#sweepDue) changed()
      await schedule.sweep(this.#sweepDue, momentOf(clock), found)
      this.#sweepDue = false
      swept()
      trouble.passed()
    } catch (error) {
      if (isRunning()) trouble.failed(error as Error)
    }
  }

  /** After the clock was set, dated deliveries are due earlier or later than the lanes were told. */
  #clockWasSet(): boolean {
    const { clock } = this.#parts
    const before = this.#looked
    this.#looked = { ...momentOf(clock), elapsedMs: clock.elapsedMs() }
    return before !== null && wasSet(before, this.#looked, this.#looked.elapsedMs - before.elapsedMs)
  }
}
