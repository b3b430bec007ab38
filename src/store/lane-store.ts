/**
 * The part of the store that workers call: which lanes have something to do, and a session for each lane that a worker has claimed.
 *
 * The session owns the claim's token, the deliveries in hand, and whether the lane is open. While a lane is open, `accept` in the same
 * process claims new deliveries for it in the accepting transaction and hands them to the session, so that they need no fetch. A store
 * that cannot do this leaves every lane closed; nothing else changes.
 */
import type { Moment } from "../core/clock.ts"
import type {
  ClaimedDelivery,
  GivenBack,
  LaneClaim,
  LaneWake,
  LaneWant,
  LaneWork,
  Settlement,
  SettleResult,
} from "./model.ts"

export interface LaneStore {
  /**
   * A page of lanes that have live deliveries, by endpoint id, with their earliest due time on the steady clock; dates are converted
   * as the clocks are at that moment, and stay as they are without one. Reads only.
   */
  scanLanes(after: string | null, limit: number, at?: Moment): Promise<LaneWake[]>
  /**
   * Whether anybody but this store object changed the data since the last call, in a way that woke no lane. A store that many
   * processes share wakes lanes by itself, and says no.
   */
  changedOutside(): Promise<boolean>
  /** `knownVersion`: the version of the endpoint that the caller has; null when it has none. */
  openLane(claim: LaneClaim, listener: LaneListener, knownVersion: number | null): LaneSession
}

/** What a session tells its owner. */
export interface LaneListener {
  /** A delivery was accepted a moment ago, and claimed for this session in the same transaction. Called before `accept` resolves. */
  handed(delivery: ClaimedDelivery): void
  /** The same, after `giveBack` or a settle that holds the lane: this delivery is to be given back too. */
  recalled(delivery: ClaimedDelivery): void
  /** Another worker has the lane: nothing more can be fetched or settled. */
  lost(): void
}

export interface LaneSession {
  /** Whether deliveries are handed over. False: whatever is accepted wakes the lane instead. */
  readonly isOpen: boolean
  /**
   * Takes due deliveries for sending and records, with the token, that they are about to be sent. Deliveries that an earlier token left
   * there become attempts of unknown outcome. Deliveries in hand are not given again. Dated deliveries are due by the wall clock, all
   * others by the steady clock. Opens the lane if nothing else is due and the caller wants handoffs.
   */
  fetch(want: LaneWant, at: Moment): Promise<LaneWork>
  /**
   * Applies changes with their attempts, after a check of the token. A row that somebody changed or finished meanwhile keeps its status,
   * and its `attemptCount` goes up by the attempt. Settles of all lanes share transactions.
   */
  settleIfClaimed(outcomes: readonly Settlement[]): Promise<SettleResult[]>
  /**
   * Gives back deliveries that were not sent, or were cut off by a shutdown: each is as if it had not been claimed. The lane is closed from
   * this call until a later fetch opens it; handoffs already on their way arrive as `recalled`.
   */
  giveBack(unsent: readonly GivenBack[]): Promise<void>
  /** Ends the session. Nothing is handed over after this resolves; nor after it rejects. */
  close(): Promise<void>
}
