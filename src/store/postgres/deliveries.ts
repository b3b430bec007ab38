/** Deliveries: reading them. */
import type { DeliveryStatus } from "../../core/settle.ts"
import { toDelivery } from "../rows.ts"
import type { Delivery, DeliveryFilter, Page, StatusCounts } from "../store.ts"
import { Conditions, unprepared } from "./conditions.ts"
import type { Context } from "./context.ts"
import type { Statement } from "./statement.ts"

const GET: Statement = { name: "deliveries.get", text: "SELECT * FROM webhook_deliveries WHERE id = $1" }

export async function getDelivery({ database }: Context, id: string): Promise<Delivery | null> {
  const [row] = await database.run(GET, [id])
  return row === undefined ? null : toDelivery(row)
}

export function listDeliveries(context: Context, filter: DeliveryFilter, page: Page): Promise<Delivery[]> {
  const where = conditions(filter)
  where.narrow("seq < ?", page.before ?? undefined)
  return read(context, filter, where, "DESC", page.limit)
}

/** Oldest first, between two numbers, for tasks. */
export function rangeOfDeliveries(
  context: Context,
  filter: DeliveryFilter,
  after: number,
  upTo: number,
  limit: number,
): Promise<Delivery[]> {
  const where = conditions(filter)
  where.narrow("seq > ?", after)
  where.narrow("seq <= ?", upTo)
  return read(context, filter, where, "ASC", limit)
}

/**
 * The live and the finished each for themselves: over all partitions at once, the planner takes the limit for a small part of each,
 * and walks through everybody's live deliveries by number in search of those of one endpoint (90 ms at 300 000 live, against 3).
 */
async function read(
  { database }: Context,
  filter: DeliveryFilter,
  where: Conditions,
  direction: "ASC" | "DESC",
  limit: number,
): Promise<Delivery[]> {
  const most = where.parameter(limit)
  // A message has few deliveries: found by it and then sorted, also in a new day's table, of which the planner has no statistics.
  const order = `${filter.messageId === undefined ? "seq" : "seq + 0"} ${direction}`
  const parts = tablesOf(filter).map(
    (table) => `(SELECT * FROM ${table} WHERE ${where} ORDER BY ${order} LIMIT ${most})`,
  )
  const text = `SELECT * FROM (${parts.join(" UNION ALL ")}) found ORDER BY seq ${direction} LIMIT ${most}`
  return (await database.runCalmly(unprepared(text), where.values)).map(toDelivery)
}

function tablesOf({ status, live }: DeliveryFilter): readonly string[] {
  if (live || status === "pending" || status === "failed") return ["webhook_deliveries_live"]
  if (status !== undefined) return ["webhook_deliveries_done"]
  return ["webhook_deliveries_live", "webhook_deliveries_done"]
}

export async function countDeliveries({ database }: Context, filter: DeliveryFilter): Promise<number> {
  const where = conditions(filter)
  const [row] = await database.runCalmly(
    unprepared(`SELECT count(*) AS n FROM webhook_deliveries WHERE ${where}`),
    where.values,
  )
  return row!.n as number
}

export async function countByStatus(
  { database }: Context,
  filter: Pick<DeliveryFilter, "appId" | "endpointId">,
): Promise<StatusCounts> {
  const where = conditions(filter)
  const rows = await database.runCalmly(
    unprepared(`SELECT status, count(*) AS n FROM webhook_deliveries WHERE ${where} GROUP BY status`),
    where.values,
  )
  const counts = { pending: 0, failed: 0, delivered: 0, dead: 0 }
  for (const row of rows) counts[row.status as DeliveryStatus] = row.n as number
  return counts
}

function conditions(filter: DeliveryFilter): Conditions {
  const where = new Conditions()
  where.narrow("status = ?", filter.status)
  if (filter.live) where.require("status IN ('pending', 'failed')")
  where.narrow("app_id = ?", filter.appId)
  where.narrow("webhook_id = ?", filter.endpointId)
  where.narrow("message_id = ?", filter.messageId)
  where.narrow("dead_reason = ?", filter.deadReason)
  where.narrow("event_type = ?", filter.eventType)
  where.narrow("received_at >= ?", filter.since)
  where.narrow("received_at < ?", filter.until)
  if (filter.undiscarded) where.require("discarded_at IS NULL")
  return where
}
