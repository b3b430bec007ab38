/**
 * A delivery between its answer and its commit. Under load most of what is kept in memory are these, so each is one object, with no
 * promise and no function of its own: what lives longer than the collector expects is copied again and again.
 */
import type { ClaimedDelivery, Settlement, SettleResult } from "../store/store.ts"
import type { Tried } from "./attempt.ts"
import type { Unwritten } from "./settler.ts"
import type { Slot } from "./slots.ts"

/** Told once of each. */
export interface EndingListener {
  written(ending: Ending, result: SettleResult): void
  refused(ending: Ending, error: unknown): void
}

export class Ending implements Unwritten {
  readonly #listener: EndingListener
  readonly delivery: ClaimedDelivery
  readonly tried: Tried
  readonly slot: Slot
  readonly settlement: Settlement
  readonly settledAt: number
  failures = 0

  constructor(
    listener: EndingListener,
    delivery: ClaimedDelivery,
    tried: Tried,
    slot: Slot,
    settlement: Settlement,
    settledAt: number,
  ) {
    this.#listener = listener
    this.delivery = delivery
    this.tried = tried
    this.slot = slot
    this.settlement = settlement
    this.settledAt = settledAt
  }

  written(result: SettleResult): void {
    this.#listener.written(this, result)
  }

  refused(error: unknown): void {
    this.#listener.refused(this, error)
  }
}
