/** Lanes as an operator sees them: what waits in front of each endpoint, and since when. */
import { Conditions } from "../conditions.ts"
import { toLaneStatus } from "../rows.ts"
import { POSTGRES } from "./conditions.ts"
import type { Operation } from "./context.ts"
import { readPage } from "./page.ts"

/** In order of id, each lane's deliveries are counted when the lane is reached: a page counts the lanes on it. */
const SELECT = `
  SELECT l.id, l.app_id, line.*,
         line.handed + (SELECT count(*) FROM unnest(l.since) AS since WHERE since > 0) AS sending
    FROM lanes l
    LEFT JOIN LATERAL (
      SELECT seq FROM webhook_deliveries_live d WHERE d.webhook_id = l.id AND d.rank = 0 ORDER BY seq LIMIT 1
    ) head ON true
    CROSS JOIN LATERAL (
      SELECT count(*) FILTER (WHERE d.status = 'pending') AS waiting, count(*) FILTER (WHERE d.status = 'failed') AS retrying,
             count(*) FILTER (WHERE d.handed_token = l.token) AS handed, min(d.received_at) AS oldest_at,
             min(coalesce(d.next_retry_at, 0)) FILTER (
               WHERE NOT (d.deferred AND d.attempt_count = 0) AND (d.rank > 0 OR d.seq = head.seq)
             ) AS due_at,
             min(coalesce(d.next_retry_at, 0)) FILTER (WHERE d.deferred AND d.attempt_count = 0 AND NOT d.dated) AS delayed_at,
             min(coalesce(d.next_retry_at, 0)) FILTER (WHERE d.deferred AND d.attempt_count = 0 AND d.dated) AS dated_at
        FROM webhook_deliveries_live d WHERE d.webhook_id = l.id HAVING count(*) > 0
    ) line`

export const listLanes: Operation<"listLanes"> = async (context, { orgId, appId, endpointId }, page) => {
  const where = new Conditions(POSTGRES)
    .tenant(orgId, "applications", "l.app_id")
    .narrow("l.app_id = ?", appId)
    .narrow("l.id = ?", endpointId)
  return (await readPage(context, SELECT, where, "l.id", page)).map(toLaneStatus)
}
