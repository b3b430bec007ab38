/** Deliveries: reading them. */
import { toDelivery } from "../rows.ts"
import type { Delivery, DeliveryFilter, Page } from "../store.ts"
import { Conditions, responseClassOf, throughMessage, unprepared } from "./conditions.ts"
import type { Context } from "./context.ts"
import { oldestFirst, paging } from "./page.ts"
import { LIVE_DAY } from "./schema.ts"
import type { Statement } from "./statement.ts"

/** Dead, and yet not given up. */
export const CALLED_OFF = "('cancelled', 'expunged')"

const GET: Statement = {
  name: "deliveries.get",
  text: `
    SELECT * FROM webhook_deliveries d
     WHERE d.id = $2 AND EXISTS (SELECT FROM applications o WHERE o.id = d.app_id AND o.org_id = $1)`,
}

export async function getDelivery(
  { database }: Context,
  orgId: string,
  id: string,
): Promise<Delivery | null> {
  const [row] = await database.run(GET, [orgId, id])
  return row === undefined ? null : toDelivery(row)
}

export function listDeliveries(context: Context, filter: DeliveryFilter, page: Page): Promise<Delivery[]> {
  return read(context, filter, conditions(filter), page)
}

/** Oldest first, between two numbers, for tasks. */
export function rangeOfDeliveries(
  context: Context,
  filter: DeliveryFilter,
  after: number,
  upTo: number,
  limit: number,
): Promise<Delivery[]> {
  const where = conditions(filter).narrow("d.seq <= ?", upTo)
  return read(context, filter, where, oldestFirst(after, limit))
}

/**
 * The live and the finished each for themselves: over all partitions at once, the planner takes the limit for a small part of each,
 * and walks through everybody's live deliveries by number in search of those of one endpoint (90 ms at 300 000 live, against 3).
 */
async function read(
  { database }: Context,
  filter: DeliveryFilter,
  where: Conditions,
  page: Page,
): Promise<Delivery[]> {
  const { direction, most, arrange } = paging(where, "d.seq", page)
  // A message has few deliveries: found by it and then sorted, also in a new day's table, of which the planner has no statistics.
  const order = `${filter.messageId === undefined ? "d.seq" : "d.seq + 0"} ${direction}`
  const parts = tablesOf(filter).map(
    (table) => `(SELECT * FROM ${table} d WHERE ${where} ORDER BY ${order} LIMIT ${most})`,
  )
  const text = `SELECT * FROM (${parts.join(" UNION ALL ")}) found ORDER BY seq ${direction} LIMIT ${most}`
  return arrange(await database.runCalmly(unprepared(text), where.values)).map(toDelivery)
}

function tablesOf({ status, live, calledOff }: DeliveryFilter): readonly string[] {
  if (live || status === "pending" || status === "failed") return ["webhook_deliveries_live"]
  if (status !== undefined || calledOff !== undefined) return ["webhook_deliveries_done"]
  return ["webhook_deliveries_live", "webhook_deliveries_done"]
}

/** The same as by `app_id`, through the index of what waits, which has lanes and no applications. */
const OF_LANES = "d.webhook_id = ANY (ARRAY(SELECT id FROM endpoints WHERE app_id = ?))"

/** Found by the primary key of the endpoints. */
const ENDPOINT_SENDS =
  "EXISTS (SELECT 1 FROM endpoints e WHERE e.id = d.webhook_id AND NOT (e.paused OR e.disabled))"

/** Of the deliveries `d`. */
export function conditions(filter: DeliveryFilter): Conditions {
  const { eventTypes, ...content } = filter
  const where = new Conditions()
    .narrow("d.status = ?", filter.status)
    .tenant(filter.orgId, "applications", "d.app_id")
    .narrow(filter.live ? OF_LANES : "d.app_id = ?", filter.appId)
    .narrow("d.webhook_id = ?", filter.endpointId)
    .narrow("d.message_id = ?", filter.messageId)
    .narrow("d.dead_reason = ?", filter.deadReason)
    .narrow("d.event_type = ANY (?)", eventTypes)
    .content(content, throughMessage("d.message_id"))
    .narrow(LAST_ANSWER, filter.responseClass)
    .narrow("(d.attempt_count > 0 OR d.dated OR coalesce(d.next_retry_at, 0) <= ?)", filter.startableBy)
    .narrow("(NOT d.dated OR d.next_retry_at <= ?)", filter.datesBy ?? filter.startableBy)
    .span("d.received_at", filter)
  if (filter.live) where.require("d.status IN ('pending', 'failed')")
  if (filter.calledOff !== undefined)
    where.require(
      `d.status = 'dead' AND coalesce(d.dead_reason, '') ${filter.calledOff ? "IN" : "NOT IN"} ${CALLED_OFF}`,
    )
  if (filter.undiscarded) where.require("d.discarded_at IS NULL")
  if (filter.endpointSends) where.require(ENDPOINT_SENDS)
  return where
}

/** Attempts lie with their delivery or with the live ones: no other day's table is looked into. */
const LAST_ANSWER = `(
  SELECT ${responseClassOf("a")} FROM attempts a
   WHERE a.delivery_id = d.id AND a.purge_day = ANY (ARRAY[${LIVE_DAY}, d.purge_day]) ORDER BY a.seq DESC LIMIT 1
) = ?`
