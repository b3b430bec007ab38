/** Retention: removes what has had its time. Only finished rows carry a purge_at. */
import type { Context } from "./context.ts"
import { forgetOldKeys } from "./idempotency.ts"

export function purge(context: Context, now: number, limit: number): number {
  const { connection } = context
  forgetOldKeys(context, now)
  const rows = connection
    .sql(
      "SELECT seq, id, message_id FROM webhook_deliveries WHERE purge_at <= ? AND status IN ('delivered', 'dead') LIMIT ?",
    )
    .all(now, limit)
  for (const row of rows) {
    connection.sql("DELETE FROM attempts WHERE delivery_id = ?").run(row.id!)
    connection.sql("DELETE FROM webhook_deliveries WHERE seq = ?").run(row.seq!)
    connection.sql("DELETE FROM in_flight WHERE seq = ?").run(row.seq!)
    connection
      .sql(
        "DELETE FROM messages WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM webhook_deliveries WHERE message_id = ?1)",
      )
      .run(row.message_id!)
  }
  const unmatched = connection
    .sql("DELETE FROM messages WHERE seq IN (SELECT seq FROM messages WHERE purge_at <= ? LIMIT ?)")
    .run(now, limit - rows.length)
  return rows.length + Number(unmatched.changes)
}
