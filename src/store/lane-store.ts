/**
 * The part of the store that workers call: which lanes have waiting deliveries, and a session for each claimed lane.
 *
 * The session owns the claim's token, the deliveries in hand, and whether the lane is open. While a lane is open, `acceptMany` in the same
 * process claims new deliveries in the accepting transaction and hands them to the session, which needs no fetch for them. A store that
 * cannot do this leaves every lane closed.
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
   * A page of lanes with live deliveries, ordered by endpoint id, with their earliest due time on the steady clock. `at` converts dates of
   * the wall clock; without it they stay as they are. A lane whose gate opens later may be due only then. Reads only.
   */
  scanLanes(after: string | null, limit: number, at?: Moment): Promise<LaneWake[]>
  /**
   * Whether another process changed the data since the last call without waking lanes. A store that many processes share wakes lanes by
   * itself, and returns false.
   */
  changedOutside(): Promise<boolean>
  /** `knownVersion`: the endpoint's version that the caller has; null for none. */
  openLane(claim: LaneClaim, listener: LaneListener, knownVersion: number | null): LaneSession
}

export interface LaneListener {
  /** A delivery was accepted, and claimed for this session in the same transaction. Called before `acceptMany` resolves. */
  handed(delivery: ClaimedDelivery): void
  /** As `handed`, but the lane was closed meanwhile, by `giveBack` or by a settle: do not send this delivery, give it back. */
  recalled(delivery: ClaimedDelivery): void
  /** Another worker has claimed the lane: further fetches and settles fail. */
  lost(): void
}

export interface LaneSession {
  /** Whether accepted deliveries are handed over. False: they wake the lane. */
  readonly isOpen: boolean
  /**
   * Claims due deliveries and records them with the token. Deliveries that an earlier token left claimed get an attempt of unknown
   * outcome. Deliveries in hand are not returned again. Dated deliveries are due by the wall clock, all others by the steady clock. Opens
   * the lane if nothing else is due and the caller wants handoffs.
   */
  fetch(want: LaneWant, at: Moment): Promise<LaneWork>
  /**
   * Applies changes with their attempts, each only under the token of its claim; another token makes it `stale`. A row that somebody
   * changed since keeps its status. Settles of all lanes share transactions.
   */
  settleIfClaimed(outcomes: readonly Settlement[]): Promise<SettleResult[]>
  /**
   * Undoes the claims of deliveries that were not sent or that a shutdown cut off. The lane is closed until a later fetch opens it;
   * handoffs that were committed before arrive as `recalled`.
   */
  giveBack(unsent: readonly GivenBack[]): Promise<void>
  /** Ends the session. Nothing is handed over after the promise settles. */
  close(): Promise<void>
}
