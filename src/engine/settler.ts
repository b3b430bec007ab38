/**
 * Writes outcomes in batches and keeps them until they are written: a store that is full or busy for a while loses none.
 * The outcomes of one moment go in one call; the store's channel makes larger batches of these when it is busy.
 */

import type { Random } from "../core/backoff.ts"
import type { Clock } from "../core/clock.ts"
import { PosthornError } from "../core/errors.ts"
import type { Logger } from "../observe/log.ts"
import type { Settlement, SettleResult, Store } from "../store/store.ts"

interface Waiting {
  readonly settlement: Settlement
  resolve(result: SettleResult): void
  reject(error: unknown): void
}

const FIRST_RETRY_MS = 50
const LONGEST_RETRY_MS = 2000

export class Settler {
  readonly #store: Store
  readonly #clock: Clock
  readonly #random: Random
  readonly #logger: Logger
  #queue: Waiting[] = []
  #unsettled = 0
  #flushQueued = false
  #failures = 0

  constructor(store: Store, clock: Clock, random: Random, logger: Logger) {
    this.#store = store
    this.#clock = clock
    this.#random = random
    this.#logger = logger
  }

  /** How many outcomes are not written yet; sending waits while this is high. */
  get unsettled(): number {
    return this.#unsettled
  }

  /** Resolves when the outcome is committed; rejects only when the store has ended. */
  settle(settlement: Settlement): Promise<SettleResult> {
    this.#unsettled++
    return new Promise((resolve, reject) => {
      this.#queue.push({ settlement, resolve, reject })
      if (this.#flushQueued) return
      this.#flushQueued = true
      queueMicrotask(() => this.#flush())
    })
  }

  async #flush(): Promise<void> {
    this.#flushQueued = false
    const batch = this.#queue
    this.#queue = []
    if (batch.length === 0) return
    try {
      const results = await this.#store.settle(batch.map(({ settlement }) => settlement))
      this.#failures = 0
      this.#unsettled -= batch.length
      for (const [i, waiting] of batch.entries()) waiting.resolve(results[i]!)
    } catch (error) {
      this.#failed(batch, error)
    }
  }

  #failed(batch: Waiting[], error: unknown): void {
    if (error instanceof PosthornError && (error.code === "store_failed" || error.code === "closed")) {
      this.#unsettled -= batch.length
      for (const waiting of batch) waiting.reject(error)
      return
    }
    const longestMs = Math.min(FIRST_RETRY_MS * 2 ** Math.min(this.#failures++, 10), LONGEST_RETRY_MS)
    if (this.#failures === 1)
      this.#logger.error(
        { err: error, outcomes: batch.length },
        "Outcomes could not be written; they are kept",
      )
    this.#clock.setTimer(longestMs * (0.5 + this.#random() / 2), () => {
      this.#queue = [...batch, ...this.#queue]
      void this.#flush()
    })
  }
}
