/** The board: everything that must survive a change of the leader, in one document that is written by version. */
import type { NoticeState } from "./dead-letter-notice.ts"
import type { Waiting } from "./direct-outbox.ts"
import type { Book, Outgoing } from "./plan.ts"

export interface Board extends Book {
  /** Notices about dead letters, by channel. */
  readonly notices: { readonly [channel: string]: NoticeState }
  /**
   * Notifications that were decided together with the state above and may not be accepted yet. The next evaluation, of any
   * process, hands them over again with the same idempotency keys.
   */
  readonly outbox: readonly Outgoing[]
  readonly local: LocalState
}

/** Alerts about the store and its disk, as the leader last saved them. A restart, or the next leader, continues them. */
export interface LocalState {
  readonly book: Book
  /** Notifications that the leader sends directly, and that have not arrived yet. */
  readonly outbox: readonly Waiting[]
}

const EMPTY_BOOK: Book = { alerts: [], groups: {}, channels: {} }
export const EMPTY_LOCAL: LocalState = { book: EMPTY_BOOK, outbox: [] }
export const EMPTY_BOARD: Board = { ...EMPTY_BOOK, notices: {}, outbox: [], local: EMPTY_LOCAL }
