/**
 * A delivery between its response and the commit of its outcome. Under load most of the heap is these: each is one object without closures,
 * since the garbage collector copies long-lived objects again and again.
 */
import type { LaneSession, Settlement, SettleResult } from "../store/store.ts"
import type { Tried } from "./attempt.ts"
import type { Slot } from "./slots.ts"

/** Called once for each pending settlement. */
export interface SettlementListener {
  written(pending: PendingSettlement, result: SettleResult): void
  /** The store has ended. */
  refused(pending: PendingSettlement, error: unknown): void
}

export class PendingSettlement {
  readonly listener: SettlementListener
  readonly session: LaneSession
  readonly settlement: Settlement
  readonly tried: Tried
  readonly slot: Slot
  readonly settledAt: number
  /** Failed writes so far. */
  failures = 0

  constructor(
    listener: SettlementListener,
    session: LaneSession,
    settlement: Settlement,
    tried: Tried,
    slot: Slot,
    settledAt: number,
  ) {
    this.listener = listener
    this.session = session
    this.settlement = settlement
    this.tried = tried
    this.slot = slot
    this.settledAt = settledAt
  }
}
