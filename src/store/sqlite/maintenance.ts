/** Retention: removes rows whose time has come. */
import { ROLLUP_KEPT_MS } from "../rollups.ts"
import { EXPUNGED } from "../statements.ts"
import type { Context } from "./context.ts"
import { forgetOldKeys } from "./idempotency.ts"

type Bite = (context: Context, now: number, limit: number) => number

export function purge(context: Context, now: number, limit: number): number {
  forgetOldKeys(context, now)
  return BITES.reduce((removed, bite) => removed + bite(context, now, limit - removed), 0)
}

/** Only finished rows carry a purge_at. The last delivery takes its message with it. */
const finishedDeliveries: Bite = ({ connection }, now, limit) => {
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
  return rows.length
}

const changing =
  (text: string): Bite =>
  ({ connection }, now, limit) =>
    Number(connection.sql(text).run(now, limit).changes)

const unmatchedMessages = changing(
  "DELETE FROM messages WHERE seq IN (SELECT seq FROM messages WHERE purge_at <= ? LIMIT ?)",
)
const payloads = changing(
  `UPDATE messages SET ${EXPUNGED} WHERE seq IN (SELECT seq FROM messages WHERE payload_until <= ? LIMIT ?)`,
)
const entries = changing(
  "DELETE FROM entries WHERE rowid IN (SELECT rowid FROM entries WHERE expires_at <= ? LIMIT ?)",
)
const rollups = changing(
  `DELETE FROM attempt_rollups WHERE rowid IN (SELECT rowid FROM attempt_rollups WHERE hour <= ? - ${ROLLUP_KEPT_MS} LIMIT ?)`,
)

const BITES = [finishedDeliveries, unmatchedMessages, payloads, entries, rollups]
