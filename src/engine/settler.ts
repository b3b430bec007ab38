/**
 * Writes outcomes in batches and keeps them until they are written: a store that is full or busy for a while loses none.
 * Where the store writes them together, the outcomes of one turn of the event loop go in one call, whichever sockets they came from: 1.06
 * times the throughput of a call for each. While the store is busy those of several turns do: to one endpoint 1.07 times the throughput
 * instead of 0.93, by turns with what went before.
 */

import type { Random } from "../core/backoff.ts"
import type { Clock } from "../core/clock.ts"
import { PosthornError } from "../core/errors.ts"
import type { Logger } from "../observe/log.ts"
import type { Settlement, SettleResult, Store } from "../store/store.ts"

/** An outcome on its way into the store. */
export interface Unwritten {
  readonly settlement: Settlement
  /** How often it could not be written; zero at first, and then the settler's. */
  failures: number
  /** It is committed. */
  written(result: SettleResult): void
  /** The store has ended. */
  refused(error: unknown): void
}

/** So many calls are on their way at once, unless there is enough for one more, or a failure: they would only wait for the same commit. */
const MOST_CALLS = 2
const ENOUGH_TOGETHER = 64

const FIRST_RETRY_MS = 50
const LONGEST_RETRY_MS = 2000
const LOG_EVERY = 100
const BUSY = new PosthornError("store_unavailable", "somebody's open transaction holds the delivery")

/**
 * A retry, or an end that somebody is told of: while the disk is slow, it would wait for two commits more. At half of the capacity the
 * slowest tenth took 5 to 7 ms instead of 10, the slowest hundredth 15 to 17 instead of 23 to 53, in most of four runs by turns.
 */
function isWaitedFor({ settlement: { change } }: Unwritten): boolean {
  return change.status !== "delivered"
}

export class Settler {
  readonly #store: Store
  readonly #clock: Clock
  readonly #random: Random
  readonly #logger: Logger
  #queue: Unwritten[] = []
  #flushQueued = false
  /** Calls that are not answered. */
  #writing = 0
  #failures = 0
  #givenUp = false
  readonly #retries = new Set<() => void>()

  constructor(store: Store, clock: Clock, random: Random, logger: Logger) {
    this.#store = store
    this.#clock = clock
    this.#random = random
    this.#logger = logger
  }

  settle(outcome: Unwritten): void {
    this.#queue.push(outcome)
    if (!this.#store.settlesTogether || this.#queue.length >= ENOUGH_TOGETHER) this.flush()
    else if (this.#writing < MOST_CALLS || isWaitedFor(outcome)) this.#flushAfterTurn()
  }

  #flushAfterTurn(): void {
    if (this.#flushQueued || this.#queue.length === 0) return
    this.#flushQueued = true
    setImmediate(() => {
      this.#flushQueued = false
      this.flush()
    })
  }

  /** Hands over what waits for the end of the turn: what is asked of the store after this comes behind it. */
  flush(): void {
    const batch = this.#queue
    this.#queue = []
    if (batch.length > 0) void this.#write(batch)
  }

  async #write(batch: readonly Unwritten[]): Promise<void> {
    let results: readonly SettleResult[]
    this.#writing++
    try {
      results = await this.#store.settle(batch.map(({ settlement }) => settlement))
    } catch (error) {
      return this.#failed(batch, error)
    } finally {
      this.#writing--
      this.#flushAfterTurn()
    }
    this.#failures = 0
    for (const [i, outcome] of batch.entries()) {
      const result = results[i]!
      if (result === "busy") this.#failed([outcome], BUSY)
      else this.#tell(() => outcome.written(result))
    }
  }

  /** Whatever whoever is told makes of it: nothing is written again, and the others are told. */
  #tell(of: () => void): void {
    try {
      of()
    } catch (error) {
      this.#logger.error({ err: error }, "Posthorn failed at the end of a delivery")
    }
  }

  #failed(batch: readonly Unwritten[], error: unknown): void {
    if (error instanceof PosthornError && (error.code === "store_failed" || error.code === "closed")) {
      return this.#refuse(batch, error)
    }
    if (this.#givenUp) return this.#refuse(batch, error)
    const failures = batch[0]!.failures
    for (const outcome of batch) outcome.failures++
    const longestMs = Math.min(FIRST_RETRY_MS * 2 ** Math.min(failures, 10), LONGEST_RETRY_MS)
    if (this.#failures++ % LOG_EVERY === 0)
      this.#logger.error(
        { err: error, outcomes: batch.length },
        "Outcomes could not be written; they are kept",
      )
    const retry = () => {
      this.#retries.delete(retry)
      timer.cancel()
      // One by one: an outcome that cannot be written must not keep the others from it.
      for (const outcome of batch) void this.#write([outcome])
    }
    const timer = this.#clock.setTimer(longestMs * (0.5 + this.#random() / 2), retry)
    this.#retries.add(retry)
  }

  #refuse(batch: readonly Unwritten[], error: unknown): void {
    for (const outcome of batch) this.#tell(() => outcome.refused(error))
  }

  /** The process stops: what cannot be written now is repeated after the next start, as after a crash. */
  giveUp(): void {
    this.#givenUp = true
    for (const retry of this.#retries) retry()
  }
}
