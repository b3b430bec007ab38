/** Retention: finished deliveries are removed by whole days, up to a day late. */
import { ROLLUP_KEPT_MS } from "../rollups.ts"
import { EXPUNGED, statement } from "../statements.ts"
import type { Context } from "./context.ts"
import { detachDue } from "./detach-partitions.ts"
import { unnamed } from "./statement.ts"

/** One process at a time; the others return 0. */
export function purge(context: Context, now: number, limit: number): Promise<number> {
  // Not prepared: a prepared statement would keep its snapshot, and detaching a partition waits for every snapshot.
  const key = context.database.schema.lock("maintenance")
  const tryLock = unnamed(`SELECT pg_try_advisory_xact_lock(${key}) AS ours`)
  return context.database.transactionCalmly(async (runner) => {
    const [lock] = await runner.run(tryLock, [])
    if (!lock!.ours) return 0
    let removed = 0
    while (removed < limit) {
      // Keeps the transaction from its idle timeout; the lock is already held.
      await runner.run(tryLock, [])
      // These run on other connections.
      const tables = await detachDue(context.database, now)
      if (tables.length === 0) break
      context.partitions.forget()
      for (const table of tables) removed += await workOff(context, table, limit - removed)
    }
    for (const statement of [UNMATCHED, PAYLOADS, ENTRIES, ROLLUPS])
      if (removed < limit)
        removed += (await context.database.runCalmly(statement, [now, limit - removed])).length
    return removed
  })
}

/**
 * Removes the messages of one table's deliveries unless another delivery refers to them, and attempts that were logged after their delivery was
 * finished. The progress is stored with it, since each step would otherwise read all earlier rows again.
 */
const bite = (table: string) =>
  unnamed(`
WITH bite AS MATERIALIZED (
  SELECT seq, id, message_id FROM ${table}
   WHERE seq > coalesce((SELECT value::bigint FROM meta WHERE key = $1), 0) ORDER BY seq LIMIT $2
),
messages_gone AS (
  -- Joined with itself: if a delivery was added meanwhile, the locked row differs from the one in the statement's snapshot.
  DELETE FROM messages m USING messages seen
   WHERE m.id IN (SELECT message_id FROM bite) AND seen.id = m.id AND seen.matched = m.matched
     AND (m.matched = 1 OR NOT EXISTS (SELECT FROM webhook_deliveries d WHERE d.message_id = m.id))
),
attempts_gone AS (
  DELETE FROM attempts_live WHERE delivery_id IN (SELECT id FROM bite)
),
progress AS (
  INSERT INTO meta (key, value) SELECT $1, max(seq) FROM bite HAVING count(*) > 0
  ON CONFLICT (key) DO UPDATE SET value = excluded.value
)
SELECT count(*) AS rows FROM bite`)
const FORGET = statement("maintenance.forget", "DELETE FROM meta WHERE key = $1")

/** At most `limit` deliveries; the last ones drop the table. */
async function workOff({ database }: Context, table: string, limit: number): Promise<number> {
  if (limit === 0) return 0
  const [row] = await database.runCalmly(bite(table), [table, limit])
  const removed = row!.rows as number
  if (removed < limit)
    await database.transactionCalmly(async (runner) => {
      await runner.run(unnamed(`DROP TABLE ${table}`), [])
      await runner.run(FORGET, [table])
    })
  return removed
}

/** The condition is checked again on the locked row: a delivery may have been added meanwhile. */
const UNMATCHED = statement(
  "maintenance.unmatched",
  `DELETE FROM messages
    WHERE seq = ANY (ARRAY(SELECT seq FROM messages WHERE purge_at <= $1 ORDER BY purge_at LIMIT $2)) AND purge_at <= $1
   RETURNING seq`,
)
const PAYLOADS = statement(
  "maintenance.payloads",
  `UPDATE messages SET ${EXPUNGED}
    WHERE seq = ANY (ARRAY(SELECT seq FROM messages WHERE payload_until <= $1 ORDER BY payload_until LIMIT $2))
   RETURNING seq`,
)
const ENTRIES = statement(
  "maintenance.entries",
  `DELETE FROM entries
    WHERE ctid = ANY (ARRAY(SELECT ctid FROM entries WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)) AND expires_at <= $1
   RETURNING kind`,
)
const ROLLUPS = statement(
  "maintenance.rollups",
  `DELETE FROM attempt_rollups
    WHERE ctid = ANY (ARRAY(SELECT ctid FROM attempt_rollups WHERE hour <= $1 - ${ROLLUP_KEPT_MS} ORDER BY hour LIMIT $2))
      AND hour <= $1 - ${ROLLUP_KEPT_MS}
   RETURNING hour`,
)
