/** Writes changes of deliveries that `core` has decided. */
import type { SQLInputValue } from "node:sqlite"
import type { Change } from "../../core/settle.ts"
import type { FencedSettlement } from "../fence.ts"
import { isGivenUp } from "../rollups.ts"
import type { Context, Operation } from "./context.ts"

/** The row is still the one that the outcome was computed from. An operator's retry moves `age_from`, which fences earlier attempts. */
const AS_TRIED = "attempt_count = ? AND age_from IS ? AND status IN ('pending', 'failed')"
const AS_READ = "attempt_count = ? AND status = ?"

/**
 * Most outcomes are successes, which need half of the parameters. OR FAIL instead of ABORT: SQLite would copy each page that the statement
 * changes, since the table has triggers (7.7 µs instead of 4.8). A failure rolls back the call.
 */
export function applyDelivered(
  { connection }: Context,
  { seq, change, attempt, expectedAttemptCount, expectedAgeFrom }: FencedSettlement,
): boolean {
  const { attemptCount, lastAttemptedAt, deliveredAt, ageFrom, stalls, purgeAt } = change
  const { changes } = connection
    .sql(`
      UPDATE OR FAIL webhook_deliveries
         SET status = 'delivered', dead_reason = NULL, attempt_count = ?, next_retry_at = NULL, last_attempted_at = ?, delivered_at = ?,
             error_detail = NULL, age_from = ?, stalls = ?, purge_at = ?, manual = 0, dead_at = NULL, discarded_at = NULL,
             target_url = coalesce(?, target_url)
       WHERE seq = ? AND ${AS_TRIED}`)
    .run(
      attemptCount,
      lastAttemptedAt,
      deliveredAt,
      ageFrom,
      stalls,
      purgeAt,
      attempt?.url ?? null,
      seq,
      expectedAttemptCount,
      expectedAgeFrom,
    )
  return changes === 1
}

export function applyOutcome(context: Context, settlement: FencedSettlement): boolean {
  const { seq, change, attempt, expectedAttemptCount, expectedAgeFrom } = settlement
  return applyChange(context, seq, change, attempt?.url ?? null, AS_TRIED, [
    expectedAttemptCount,
    expectedAgeFrom,
  ])
}

/** Writes a change if the row fulfils `expected`. */
function applyChange(
  { connection }: Context,
  seq: number,
  change: Change,
  url: string | null,
  expected: string,
  values: readonly SQLInputValue[],
): boolean {
  const { changes } = connection
    .sql(`
      UPDATE OR FAIL webhook_deliveries
         SET status = ?, dead_reason = ?, attempt_count = ?, next_retry_at = ?, last_attempted_at = ?, delivered_at = ?, dead_at = ?,
             error_detail = CASE WHEN ?1 = 'delivered' THEN NULL ELSE coalesce(?, error_detail) END,
             age_from = ?, stalls = ?, purge_at = ?, manual = ?, discarded_at = NULL, handed = 0, dated = 0, target_url = coalesce(?, target_url)
       WHERE seq = ? AND ${expected}`)
    .run(
      change.status,
      change.deadReason,
      change.attemptCount,
      change.nextRetryAt,
      change.lastAttemptedAt,
      change.deliveredAt,
      change.deadAt,
      change.errorDetail,
      change.ageFrom,
      change.stalls,
      change.purgeAt,
      Number(change.manual),
      url,
      seq,
      ...values,
    )
  return changes === 1
}

function countGivenUp({ connection, rollups }: Context, seq: number, { attemptCount, deadAt }: Change): void {
  const row = connection
    .sql("SELECT webhook_id, app_id, event_type FROM webhook_deliveries WHERE seq = ?")
    .get(seq) as { readonly [column: string]: string }
  const delivery = { endpointId: row.webhook_id!, appId: row.app_id!, eventType: row.event_type! }
  rollups.addGivenUp(delivery, attemptCount, deadAt!)
}

export const amendIfUnchanged: Operation<"amendIfUnchanged"> = (context, amendments) =>
  amendments.map(({ seq, expectedStatus, expectedAttemptCount, change }) => {
    if (!("discardedAt" in change)) {
      const isApplied = applyChange(context, seq, change, null, AS_READ, [
        expectedAttemptCount,
        expectedStatus,
      ])
      if (isApplied && isGivenUp(change)) countGivenUp(context, seq, change)
      return isApplied
    }
    return (
      context.connection
        .sql(
          "UPDATE webhook_deliveries SET discarded_at = ? WHERE seq = ? AND status = 'dead' AND discarded_at IS NULL",
        )
        .run(change.discardedAt, seq).changes === 1
    )
  })
