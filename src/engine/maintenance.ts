/** Retention: at each interval, removes finished deliveries whose retention has ended, in small batches. */
import type { Clock, Timer } from "../core/clock.ts"
import type { Logger } from "../observe/log.ts"
import type { Store } from "../store/store.ts"

const BATCH = 500

export class Maintenance {
  readonly #store: Store
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #intervalMs: number
  #timer: Timer | null = null
  #stopped = true

  constructor(store: Store, clock: Clock, logger: Logger, intervalMs: number) {
    this.#store = store
    this.#clock = clock
    this.#logger = logger
    this.#intervalMs = intervalMs
  }

  start(): void {
    this.#stopped = false
    this.#again()
  }

  #again(): void {
    this.#timer = this.#clock.setTimer(this.#intervalMs, () => {
      void this.runOnce().finally(() => {
        if (!this.#stopped) this.#again()
      })
    })
  }

  /** Removes batch after batch until none is left, so that other writes get in between. */
  async runOnce(): Promise<void> {
    try {
      let removed = 0
      for (let purged = BATCH; purged === BATCH && !this.#stopped; ) {
        purged = await this.#store.purge(this.#clock.now(), BATCH)
        removed += purged
      }
      if (removed > 0) this.#logger.info({ removed }, "Retention removed finished deliveries")
    } catch (error) {
      if (!this.#stopped) this.#logger.warn({ err: error }, "Retention could not finish; it will try again")
    }
  }

  stop(): void {
    this.#stopped = true
    this.#timer?.cancel()
  }
}
