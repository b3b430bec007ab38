/** Lanes as an operator sees them: what stands in front of each endpoint, and since when. */
import type { DeliveryFilter, LaneStatus, Page } from "../store.ts"
import { Conditions } from "./conditions.ts"
import type { Context } from "./context.ts"
import { earliestDate, earliestDue } from "./lanes.ts"
import { readPage } from "./page.ts"

/** Each lane's deliveries are counted only when its turn comes, in order of id: a page of a thousand lanes counts its own. */
const SELECT = `
  SELECT l.id, l.app_id, cardinality(l.sending) + line.handed AS sending, line.*, least(due.due_at, dates.date_at) AS due_at
    FROM lanes l
    CROSS JOIN LATERAL (
      SELECT count(*) FILTER (WHERE d.status = 'pending') AS waiting, count(*) FILTER (WHERE d.status = 'failed') AS retrying,
             count(*) FILTER (WHERE abs(d.handed_token) = l.token) AS handed, min(d.received_at) AS oldest_at
        FROM webhook_deliveries_live d WHERE d.webhook_id = l.id HAVING count(*) > 0
    ) line
    CROSS JOIN LATERAL (${earliestDue("l.id")}) due
    CROSS JOIN LATERAL (${earliestDate("l.id")}) dates`

export async function listLanes(
  context: Context,
  filter: Pick<DeliveryFilter, "orgId" | "appId" | "endpointId">,
  page: Page<string>,
): Promise<LaneStatus[]> {
  const where = new Conditions()
    .tenant(filter.orgId, "applications", "l.app_id")
    .narrow("l.app_id = ?", filter.appId)
    .narrow("l.id = ?", filter.endpointId)
  const rows = await readPage(context, SELECT, where, "l.id", page)
  return rows.map((row) => ({
    endpointId: row.id as string,
    appId: row.app_id as string,
    waiting: row.waiting as number,
    retrying: row.retrying as number,
    sending: row.sending as number,
    oldestAt: row.oldest_at as number,
    nextDueAt: (row.due_at as number) || null,
  }))
}
