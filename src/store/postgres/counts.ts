/** How many deliveries there are: in all, by status, and what was given up by endpoint and error. */
import type { DeadReason } from "../../core/policy.ts"
import type { DeliveryStatus } from "../../core/settle.ts"
import type { DeadGroup, DeliveryFilter, StatusCounts } from "../store.ts"
import { unprepared } from "./conditions.ts"
import type { Context } from "./context.ts"
import { CALLED_OFF, conditions } from "./deliveries.ts"

export async function countDeliveries({ database }: Context, filter: DeliveryFilter): Promise<number> {
  const where = conditions(filter)
  const text = `SELECT count(*) AS n FROM webhook_deliveries d WHERE ${where}`
  const [row] = await database.runCalmly(unprepared(text), where.values)
  return row!.n as number
}

export async function countByStatus(
  { database }: Context,
  filter: Pick<DeliveryFilter, "orgId" | "appId" | "endpointId" | "since" | "until">,
): Promise<StatusCounts> {
  const where = conditions(filter)
  const text = `
    SELECT d.status, count(*) AS n, count(*) FILTER (WHERE d.dead_reason IN ${CALLED_OFF}) AS called_off
      FROM webhook_deliveries d WHERE ${where} GROUP BY d.status`
  const counts = { pending: 0, failed: 0, delivered: 0, dead: 0, calledOff: 0 }
  for (const row of await database.runCalmly(unprepared(text), where.values)) {
    counts[row.status as DeliveryStatus] = row.n as number
    if (row.status === "dead") counts.calledOff = row.called_off as number
  }
  return counts
}

export async function groupDead(
  { database }: Context,
  filter: DeliveryFilter,
  limit: number,
): Promise<DeadGroup[]> {
  const where = conditions(filter).require("d.status = 'dead'")
  const text = `
    SELECT d.app_id, d.webhook_id, d.dead_reason, d.error_detail, count(*) AS n,
           min(d.received_at) AS oldest_at, max(d.received_at) AS newest_at
      FROM webhook_deliveries d WHERE ${where}
     GROUP BY d.app_id, d.webhook_id, d.dead_reason, d.error_detail
     ORDER BY n DESC, d.webhook_id, d.dead_reason, d.error_detail LIMIT ${where.parameter(limit)}`
  const rows = await database.runCalmly(unprepared(text), where.values)
  return rows.map((row) => ({
    appId: row.app_id as string,
    endpointId: row.webhook_id as string,
    deadReason: row.dead_reason as DeadReason,
    errorDetail: row.error_detail as string | null,
    count: row.n as number,
    oldestAt: row.oldest_at as number,
    newestAt: row.newest_at as number,
  }))
}
