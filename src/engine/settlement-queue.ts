/** Keeps outcomes until they are written, also while the store is full or unreachable. */
import { Backoff, type Random } from "../core/backoff.ts"
import type { Clock } from "../core/clock.ts"
import { hasCode, PosthornError } from "../core/errors.ts"
import type { Logger } from "../observe/log.ts"
import type { SettleResult } from "../store/store.ts"
import type { PendingSettlement } from "./pending-settlement.ts"

const FIRST_RETRY_MS = 50
const LONGEST_RETRY_MS = 2000
const LOG_EVERY = 100
const BUSY = new PosthornError("store_unavailable", "another open transaction holds the delivery")

export class SettlementQueue {
  readonly #clock: Clock
  readonly #backoff: Backoff
  readonly #logger: Logger
  readonly #retries = new Set<() => void>()
  #failures = 0
  #givenUp = false

  constructor(clock: Clock, random: Random, logger: Logger) {
    this.#clock = clock
    this.#backoff = new Backoff({ firstMs: FIRST_RETRY_MS, longestMs: LONGEST_RETRY_MS, random })
    this.#logger = logger
  }

  settle(pending: PendingSettlement): void {
    pending.session.settleIfClaimed([pending.settlement]).then(
      ([result]) => this.#written(pending, result!),
      (error) => this.#failed(pending, error),
    )
  }

  #written(pending: PendingSettlement, result: SettleResult): void {
    if (result === "busy") return this.#failed(pending, BUSY)
    this.#failures = 0
    this.#tell(() => pending.listener.written(pending, result))
  }

  /** A listener that throws is logged. The outcome is written all the same. */
  #tell(listen: () => void): void {
    try {
      listen()
    } catch (error) {
      this.#logger.error({ err: error }, "Posthorn failed at the end of a delivery")
    }
  }

  #failed(pending: PendingSettlement, error: unknown): void {
    const hasEnded = hasCode(error, "store_failed") || hasCode(error, "closed")
    if (hasEnded || this.#givenUp) return this.#tell(() => pending.listener.refused(pending, error))
    if (this.#failures++ % LOG_EVERY === 0)
      this.#logger.error({ err: error }, "Outcomes could not be written; they are kept")
    const retry = () => {
      this.#retries.delete(retry)
      timer.cancel()
      this.settle(pending)
    }
    const timer = this.#clock.setTimer(this.#backoff.nextMs(++pending.failures), retry)
    this.#retries.add(retry)
  }

  /** The process stops: a delivery whose outcome cannot be written now is sent again after the next start, as after a crash. */
  giveUp(): void {
    this.#givenUp = true
    for (const retry of this.#retries) retry()
  }
}
