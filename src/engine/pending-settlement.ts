/**
 * A delivery between its response and its commit. Under load most of the memory in use is these, so each is one object, with no function of its
 * own: objects that live longer than the garbage collector expects are copied again and again.
 */
import type { LaneSession, Settlement, SettleResult } from "../store/store.ts"
import type { Tried } from "./attempt.ts"
import type { Slot } from "./slots.ts"

/** Told once of each. */
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
  /** How often it could not be written. */
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
