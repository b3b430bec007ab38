/** How many deliveries there are: in all, by status, and what was given up by endpoint and error. */
import type { DeadReason } from "../../core/policy.ts"
import type { DeliveryStatus } from "../../core/settle.ts"
import type { DeadGroup, DeliveryFilter, StatusCounts } from "../store.ts"
import type { Context } from "./context.ts"
import { byLane, CALLED_OFF, conditions } from "./deliveries.ts"

export function countDeliveries({ connection }: Context, filter: DeliveryFilter): number {
  const where = conditions(filter)
  return connection
    .once(`SELECT count(*) AS n FROM webhook_deliveries d ${byLane(filter)} WHERE ${where}`)
    .get(...where.values)!.n as number
}

export function countByStatus(
  { connection }: Context,
  filter: Pick<DeliveryFilter, "orgId" | "appId" | "endpointId" | "since" | "until">,
): StatusCounts {
  const where = conditions(filter)
  const rows = connection
    .once(`
      SELECT d.status, count(*) AS n, count(*) FILTER (WHERE d.status = 'dead' AND ${CALLED_OFF}) AS called_off
        FROM webhook_deliveries d WHERE ${where} GROUP BY d.status`)
    .all(...where.values)
  const counts = { pending: 0, failed: 0, delivered: 0, dead: 0, calledOff: 0 }
  for (const row of rows) {
    counts[row.status as DeliveryStatus] = row.n as number
    counts.calledOff += row.called_off as number
  }
  return counts
}

export function groupDead({ connection }: Context, filter: DeliveryFilter, limit: number): DeadGroup[] {
  const where = conditions(filter).require("d.status = 'dead'")
  return connection
    .once(`
      SELECT d.app_id, d.webhook_id, d.dead_reason, d.error_detail, count(*) AS n,
             min(d.received_at) AS oldest_at, max(d.received_at) AS newest_at
        FROM webhook_deliveries d WHERE ${where}
       GROUP BY d.app_id, d.webhook_id, d.dead_reason, d.error_detail
       ORDER BY n DESC, d.webhook_id, d.dead_reason, d.error_detail LIMIT ?`)
    .all(...where.values, limit)
    .map((row) => ({
      appId: row.app_id as string,
      endpointId: row.webhook_id as string,
      deadReason: row.dead_reason as DeadReason,
      errorDetail: row.error_detail as string | null,
      count: row.n as number,
      oldestAt: row.oldest_at as number,
      newestAt: row.newest_at as number,
    }))
}
