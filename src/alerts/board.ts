/** The board: everything that must survive a change of the leader, in one document that is written by version. */
import type { NoticeState } from "./dead-letter-notice.ts"
import type { Book, Outgoing } from "./plan.ts"

export interface Board extends Book {
  /** Notices about dead letters, by channel. */
  readonly notices: { readonly [channel: string]: NoticeState }
  /**
   * Notifications that were decided together with the state above and may not be accepted yet. The next evaluation, of any
   * process, hands them over again with the same idempotency keys.
   */
  readonly outbox: readonly Outgoing[]
}

export const EMPTY_BOARD: Board = { alerts: [], groups: {}, channels: {}, notices: {}, outbox: [] }
