/** Adds deliveries of older messages to endpoints that were disabled, created later or not subscribed. */
import type { Moment } from "../../core/clock.ts"
import { NEW_DELIVERY } from "../columns.ts"
import { statement } from "../statements.ts"
import type { Addition } from "../store.ts"
import type { Runner } from "./connection.ts"
import type { Context, Operation } from "./context.ts"
import { Columns } from "./statement.ts"

const COLUMNS = new Columns<Addition>({
  message_id: ["text", ({ messageId }) => messageId],
  endpoint_id: ["text", ({ endpointId }) => endpointId],
  manual: ["bool", ({ manual }) => manual],
})
const NOW = `$${COLUMNS.next()}::bigint`
const WALL = `$${COLUMNS.next() + 1}::bigint`
const FOLLOWS = `$${COLUMNS.next() + 2}`

/**
 * A statement of its own, so that the next one sees deliveries that were added while the lock waited. Retention skips a locked message, or
 * finds one more delivery.
 */
const LOCK = statement("add.lock", "SELECT FROM messages WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE")
const ADD = statement(
  "add.add",
  `
WITH wanted AS MATERIALIZED (
  SELECT DISTINCT ON (x.message_id, x.endpoint_id) x.*
    FROM ${COLUMNS.unnest("x")} ORDER BY x.message_id, x.endpoint_id, x.ord
),
missing AS MATERIALIZED (
  SELECT w.ord, w.manual, CASE WHEN m.deliver_at > ${WALL} THEN m.deliver_at END AS date,
         m.id AS message_id, m.app_id, m.session_id, m.event_type, m.max_attempts, m.priority, m.received_at,
         e.id AS endpoint_id, e.url, e.ordered
    FROM wanted w
    JOIN messages m ON m.id = w.message_id AND NOT m.expunged
    JOIN endpoints e ON e.id = w.endpoint_id AND e.app_id = m.app_id AND e.deleted_at IS NULL
   WHERE NOT EXISTS (
     SELECT FROM webhook_deliveries d WHERE d.message_id = w.message_id AND d.webhook_id = w.endpoint_id
   )
),
added AS (
  INSERT INTO webhook_deliveries_live (${NEW_DELIVERY}, manual)
  SELECT posthorn_id('dlv', ${FOLLOWS}), app_id, endpoint_id, message_id, session_id, event_type, url, max_attempts, priority,
         ordered OR date IS NOT NULL, date IS NOT NULL, date IS NOT NULL, date, received_at, coalesce(date, ${NOW}), manual
    FROM missing ORDER BY ord
),
counted AS (
  UPDATE messages m SET matched = m.matched + n.added, purge_at = NULL
    FROM (SELECT message_id, count(*)::int AS added FROM missing GROUP BY message_id) n
   WHERE m.id = n.message_id
),
-- Immediately, also for a date: the fetch converts it to the steady clock.
woken AS (
  INSERT INTO lane_wakes (lane_id, due_at) SELECT DISTINCT endpoint_id, ${NOW} FROM missing
)
SELECT ord FROM missing`,
)

export const addIfMissing: Operation<"addIfMissing"> = (context, additions, at) =>
  context.database.transaction((runner) => addWithin(context, runner, additions, at))

/** In a transaction of the caller's. */
export async function addWithin(
  { ids }: Pick<Context, "ids">,
  runner: Runner,
  additions: readonly Addition[],
  { now, wall }: Moment,
): Promise<boolean[]> {
  if (additions.length === 0) return []
  await runner.run(LOCK, [[...new Set(additions.map(({ messageId }) => messageId))]])
  const rows = await runner.run(ADD, [...COLUMNS.values(additions), now, wall, ids.make("dlv", now)])
  const added = new Set(rows.map(({ ord }) => ord))
  return additions.map((_, i) => added.has(i + 1))
}
