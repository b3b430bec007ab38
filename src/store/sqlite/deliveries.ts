/** Deliveries: reading them, and applying changes that core has decided. */
import type { Change, DeliveryStatus } from "../../core/settle.ts"
import { toDelivery } from "../rows.ts"
import type { Amendment, Delivery, DeliveryFilter, Page, StatusCounts } from "../store.ts"
import type { Context } from "./context.ts"

/** Writes a change if the row is still what it was computed from. */
export function applyChange(
  { connection }: Context,
  seq: number,
  change: Change,
  url: string | null,
  expectedStatuses: readonly DeliveryStatus[],
  expectedAttemptCount: number,
): boolean {
  const { changes } = connection
    .sql(`
      UPDATE webhook_deliveries
         SET status = ?, dead_reason = ?, attempt_count = ?, next_retry_at = ?, last_attempted_at = ?, delivered_at = ?,
             error_detail = CASE WHEN ?1 = 'delivered' THEN NULL ELSE coalesce(?, error_detail) END,
             age_from = ?, stalls = ?, purge_at = ?, discarded_at = NULL, target_url = coalesce(?, target_url)
       WHERE seq = ? AND attempt_count = ? AND status IN (?, ?)`)
    .run(
      change.status,
      change.deadReason,
      change.attemptCount,
      change.nextRetryAt,
      change.lastAttemptedAt,
      change.deliveredAt,
      change.errorDetail,
      change.ageFrom,
      change.stalls,
      change.purgeAt,
      url,
      seq,
      expectedAttemptCount,
      expectedStatuses[0]!,
      expectedStatuses.at(-1)!,
    )
  return changes === 1
}

export function amend(context: Context, amendments: readonly Amendment[]): boolean[] {
  return amendments.map(({ seq, expectedStatus, expectedAttemptCount, change }) => {
    if (!("discardedAt" in change))
      return applyChange(context, seq, change, null, [expectedStatus], expectedAttemptCount)
    return (
      context.connection
        .sql(
          "UPDATE webhook_deliveries SET discarded_at = ? WHERE seq = ? AND status = 'dead' AND discarded_at IS NULL",
        )
        .run(change.discardedAt, seq).changes === 1
    )
  })
}

export function getDelivery({ connection }: Context, id: string): Delivery | null {
  const row = connection.sql("SELECT * FROM webhook_deliveries WHERE id = ?").get(id)
  return row === undefined ? null : toDelivery(row)
}

export function listDeliveries({ connection }: Context, filter: DeliveryFilter, page: Page): Delivery[] {
  const { where, values } = conditions(filter)
  return connection
    .sql(`SELECT * FROM webhook_deliveries WHERE ${where} AND seq < ? ORDER BY seq DESC LIMIT ?`)
    .all(...values, page.before ?? Number.MAX_SAFE_INTEGER, page.limit)
    .map(toDelivery)
}

export function countDeliveries({ connection }: Context, filter: DeliveryFilter): number {
  const { where, values } = conditions(filter)
  return connection.sql(`SELECT count(*) AS n FROM webhook_deliveries WHERE ${where}`).get(...values)!
    .n as number
}

/** Oldest first, between two numbers, for tasks. */
export function rangeOfDeliveries(
  { connection }: Context,
  filter: DeliveryFilter,
  after: number,
  upTo: number,
  limit: number,
): Delivery[] {
  const { where, values } = conditions(filter)
  return connection
    .sql(`SELECT * FROM webhook_deliveries WHERE ${where} AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?`)
    .all(...values, after, upTo, limit)
    .map(toDelivery)
}

export function countByStatus(
  { connection }: Context,
  filter: Pick<DeliveryFilter, "appId" | "endpointId">,
): StatusCounts {
  const { where, values } = conditions(filter)
  const rows = connection
    .sql(`SELECT status, count(*) AS n FROM webhook_deliveries WHERE ${where} GROUP BY status`)
    .all(...values)
  const counts = { pending: 0, failed: 0, delivered: 0, dead: 0 }
  for (const row of rows) counts[row.status as DeliveryStatus] = row.n as number
  return counts
}

/** The literal 'dead' lets SQLite use the index of dead letters. */
function conditions(filter: DeliveryFilter): { where: string; values: (string | number)[] } {
  const where: string[] = ["1"]
  const values: (string | number)[] = []
  const narrow = (condition: string, value: string | number | undefined) => {
    if (value === undefined) return
    where.push(condition)
    values.push(value)
  }
  if (filter.status === "dead") where.push("status = 'dead'")
  else narrow("status = ?", filter.status)
  if (filter.live) where.push("status IN ('pending', 'failed')")
  narrow("app_id = ?", filter.appId)
  narrow("webhook_id = ?", filter.endpointId)
  narrow("message_id = ?", filter.messageId)
  narrow("dead_reason = ?", filter.deadReason)
  narrow("event_type = ?", filter.eventType)
  narrow("received_at >= ?", filter.since)
  narrow("received_at < ?", filter.until)
  if (filter.undiscarded) where.push("discarded_at IS NULL")
  return { where: where.join(" AND "), values }
}
