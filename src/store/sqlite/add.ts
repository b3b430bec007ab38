/** Adds deliveries of older messages to endpoints that were disabled, created later or not subscribed. */
import type { Moment } from "../../core/clock.ts"
import { NEW_DELIVERY } from "../columns.ts"
import type { Addition } from "../store.ts"
import type { Context, Operation } from "./context.ts"

export const addIfMissing: Operation<"addIfMissing"> = (context, additions, at) =>
  additions.map((addition) => addOne(context, addition, at))

/** As if the message was accepted now. `deliver_at` is on the wall clock. */
function addOne(
  { connection, ids }: Context,
  { messageId, endpointId, manual }: Addition,
  { now, wall }: Moment,
): boolean {
  const { changes } = connection
    .sql(`
      INSERT INTO webhook_deliveries (${NEW_DELIVERY}, manual)
      SELECT ?1, m.app_id, e.id, m.id, m.session_id, m.event_type, e.url, m.max_attempts, m.priority, e.ordered OR coalesce(m.deliver_at > ?6, 0),
             coalesce(m.deliver_at > ?6, 0), coalesce(m.deliver_at > ?6, 0), iif(m.deliver_at > ?6, m.deliver_at, NULL), m.received_at,
             iif(m.deliver_at > ?6, m.deliver_at, ?2), ?3
        FROM messages m JOIN endpoints e ON e.app_id = m.app_id
       WHERE m.id = ?4 AND m.expunged = 0 AND e.id = ?5 AND e.deleted_at IS NULL
         AND NOT EXISTS (SELECT 1 FROM webhook_deliveries WHERE message_id = ?4 AND webhook_id = ?5)`)
    .run(ids.make("dlv", now), now, Number(manual), messageId, endpointId, wall)
  if (changes === 0) return false
  // The message is now removed with its deliveries.
  connection.sql("UPDATE messages SET matched = matched + 1, purge_at = NULL WHERE id = ?").run(messageId)
  return true
}
