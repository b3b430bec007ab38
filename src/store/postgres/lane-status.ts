/** Lanes as an operator sees them: what waits in front of each endpoint, and since when. */
import { RANKS } from "../activity.ts"
import { Conditions } from "../conditions.ts"
import { toLaneStatus } from "../rows.ts"
import { POSTGRES } from "./conditions.ts"
import type { Operation } from "./context.ts"
import { readPage } from "./page.ts"

const HEAD =
  "SELECT seq, next_retry_at FROM webhook_deliveries_live d WHERE d.webhook_id = l.id AND d.rank = 0 ORDER BY seq LIMIT 1"
const DUE = "coalesce(d.next_retry_at, 0)"
/** Retries are counted in the order of their next attempt: the oldest delivery may be the last of them. */
const OLDEST_RETRY = `
  SELECT d.received_at FROM webhook_deliveries_live d
   WHERE d.webhook_id = l.id AND d.attempt_count > 0 ORDER BY d.received_at LIMIT 1`

/**
 * In order of id, each lane's deliveries are counted when the lane is reached, queue by queue in the order of the index: a page counts the
 * lanes on it. Behind the head of an ordered lane nothing is due, whatever its time says.
 */
const selectLanes = (most: string) => `
  SELECT l.id, l.app_id, line.*, coalesce(head.next_retry_at, 0 * head.seq) AS head_due,
         least(line.oldest_read, (${OLDEST_RETRY})) AS oldest_at,
         line.handed + (SELECT count(*) FROM unnest(l.since) AS since WHERE since > 0) AS sending
    FROM lanes l
    LEFT JOIN LATERAL (${HEAD}) head ON true
    CROSS JOIN LATERAL (
      SELECT sum(queue.waiting)::bigint AS waiting, sum(queue.retrying)::bigint AS retrying, sum(queue.handed)::bigint AS handed,
             coalesce(max(queue.n) = ${most}, false) AS is_lower_bound, min(queue.oldest_at) AS oldest_read,
             min(queue.due_at) AS due_at, min(queue.delayed_at) AS delayed_at, min(queue.dated_at) AS dated_at
        FROM unnest(ARRAY[${RANKS}]) AS ranks (rank)
       CROSS JOIN LATERAL (
         SELECT count(*) AS n,
                count(*) FILTER (WHERE d.status = 'pending') AS waiting, count(*) FILTER (WHERE d.status = 'failed') AS retrying,
                count(*) FILTER (WHERE d.handed_token = l.token) AS handed, min(d.received_at) AS oldest_at,
                min(${DUE}) FILTER (WHERE d.rank > 0 AND NOT (d.deferred AND d.attempt_count = 0)) AS due_at,
                min(${DUE}) FILTER (WHERE d.deferred AND d.attempt_count = 0 AND NOT d.dated) AS delayed_at,
                min(${DUE}) FILTER (WHERE d.deferred AND d.attempt_count = 0 AND d.dated) AS dated_at
           FROM (
             SELECT * FROM webhook_deliveries_live d WHERE d.webhook_id = l.id AND d.rank = ranks.rank
              ORDER BY ${DUE}, d.seq LIMIT ${most}
           ) d
       ) queue HAVING sum(queue.n) > 0
    ) line`

export const listLanes: Operation<"listLanes"> = async (
  context,
  { orgId, appId, endpointId },
  page,
  most,
) => {
  const where = new Conditions(POSTGRES)
    .tenant(orgId, "applications", "l.app_id")
    .narrow("l.app_id = ?", appId)
    .narrow("l.id = ?", endpointId)
  const select = selectLanes(most === undefined ? "NULL" : where.parameter(most))
  return (await readPage(context, select, where, "l.id", page)).map(toLaneStatus)
}
