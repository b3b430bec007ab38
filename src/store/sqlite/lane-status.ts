/** Lanes as an operator sees them: what waits in front of each endpoint, and since when. */
import { Conditions } from "../conditions.ts"
import { toLaneStatus } from "../rows.ts"
import { SQLITE } from "./conditions.ts"
import type { Operation } from "./context.ts"
import { readPage } from "./page.ts"
import { IN_BOTH_PARTS, LIVE } from "./schema.ts"

/** One probe of the index for each endpoint, regardless of the length of its lane. */
const HAS_LIVE = `EXISTS (
  SELECT 1 FROM webhook_deliveries INDEXED BY deliveries_live WHERE ${LIVE} AND ${IN_BOTH_PARTS} AND webhook_id = e.id)`

/** Behind the head of an ordered lane nothing is due, whatever its time says. */
const COUNT = `
  SELECT ?1 AS id, ?2 AS app_id,
         count(*) FILTER (WHERE d.status = 'pending') AS waiting,
         count(*) FILTER (WHERE d.status = 'failed') AS retrying,
         count(f.seq) FILTER (WHERE f.started_at > 0) AS sending,
         min(d.received_at) AS oldest_at,
         min(coalesce(d.next_retry_at, 0)) FILTER (
           WHERE NOT (d.deferred AND d.attempt_count = 0) AND (
             d.rank > 0 OR d.seq = (
               SELECT seq FROM webhook_deliveries INDEXED BY deliveries_line
                WHERE ${LIVE} AND rank < 1 AND webhook_id = ?1 ORDER BY seq LIMIT 1
             )
           )
         ) AS due_at,
         min(coalesce(d.next_retry_at, 0)) FILTER (WHERE d.deferred AND d.attempt_count = 0 AND NOT d.dated) AS delayed_at,
         min(coalesce(d.next_retry_at, 0)) FILTER (WHERE d.deferred AND d.attempt_count = 0 AND d.dated) AS dated_at
    FROM webhook_deliveries d INDEXED BY deliveries_live
    LEFT JOIN in_flight f ON f.seq = d.seq
   WHERE d.${LIVE} AND d.${IN_BOTH_PARTS} AND d.webhook_id = ?1`

export const listLanes: Operation<"listLanes"> = (context, { orgId, appId, endpointId }, page) => {
  const where = new Conditions(SQLITE)
    .narrow("e.org_id = ?", orgId)
    .narrow("e.app_id = ?", appId)
    .narrow("e.id = ?", endpointId)
    .require(HAS_LIVE)
  return readPage(context, "SELECT e.id, e.app_id FROM endpoints e", where, "e.id", page)
    .map(({ id, app_id }) => context.connection.sql(COUNT).get(id as string, app_id as string)!)
    .filter((row) => row.oldest_at !== null)
    .map(toLaneStatus)
}
