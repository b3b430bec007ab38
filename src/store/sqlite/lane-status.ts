/** Lanes as an operator sees them: what waits in front of each endpoint, and since when. */
import { RANKS } from "../activity.ts"
import { Conditions } from "../conditions.ts"
import { toLaneStatus } from "../rows.ts"
import { SQLITE } from "./conditions.ts"
import type { Operation } from "./context.ts"
import { readPage } from "./page.ts"
import { IN_BOTH_PARTS, LIVE } from "./schema.ts"

/** One probe of the index for each endpoint, regardless of the length of its lane. */
const HAS_LIVE = `EXISTS (
  SELECT 1 FROM webhook_deliveries INDEXED BY deliveries_live WHERE ${LIVE} AND ${IN_BOTH_PARTS} AND webhook_id = e.id)`

const DUE = "coalesce(next_retry_at, 0)"
const HEAD = `
  SELECT seq FROM webhook_deliveries INDEXED BY deliveries_line
   WHERE ${LIVE} AND rank < 1 AND webhook_id = ?1 ORDER BY seq LIMIT 1`

/** The first rows of a queue, in the order of the index. Behind the head of an ordered lane nothing is due, whatever its time says. */
const countOf = (handed: number, rank: number) => `
  SELECT count(*) AS n,
         count(*) FILTER (WHERE d.status = 'pending') AS waiting,
         count(*) FILTER (WHERE d.status = 'failed') AS retrying,
         count(f.seq) FILTER (WHERE f.started_at > 0) AS sending,
         min(d.received_at) AS oldest_at,
         min(d.due) FILTER (WHERE d.rank > 0 AND NOT (d.deferred AND d.attempt_count = 0)) AS due_at,
         min(d.due) FILTER (WHERE d.deferred AND d.attempt_count = 0 AND NOT d.dated) AS delayed_at,
         min(d.due) FILTER (WHERE d.deferred AND d.attempt_count = 0 AND d.dated) AS dated_at
    FROM (
      SELECT seq, status, received_at, rank, deferred, attempt_count, dated, ${DUE} AS due
        FROM webhook_deliveries INDEXED BY deliveries_live
       WHERE ${LIVE} AND handed = ${handed} AND webhook_id = ?1 AND rank = ${rank} ORDER BY ${DUE}, seq LIMIT ?3
    ) d
    LEFT JOIN in_flight f ON f.seq = d.seq`
const QUEUES = RANKS.flatMap((rank) => [countOf(0, rank), countOf(1, rank)]).join(" UNION ALL ")
/** Retries are counted in the order of their next attempt: the oldest delivery may be the last of them. */
const OLDEST_RETRY = `
  SELECT received_at FROM webhook_deliveries INDEXED BY deliveries_retrying
   WHERE ${LIVE} AND attempt_count > 0 AND webhook_id = ?1 ORDER BY received_at LIMIT 1`
const COUNT = `
  SELECT ?1 AS id, ?2 AS app_id, sum(q.waiting) AS waiting, sum(q.retrying) AS retrying, sum(q.sending) AS sending,
         max(q.n) = ?3 AS is_lower_bound, min(min(q.oldest_at), coalesce((${OLDEST_RETRY}), min(q.oldest_at))) AS oldest_at,
         (SELECT ${DUE} FROM webhook_deliveries WHERE seq = (${HEAD})) AS head_due,
         min(q.due_at) AS due_at, min(q.delayed_at) AS delayed_at, min(q.dated_at) AS dated_at
    FROM (${QUEUES}) q`
/** SQLite takes it for no limit. */
const ALL = -1

export const listLanes: Operation<"listLanes"> = (
  context,
  { orgId, appId, endpointId },
  page,
  most = ALL,
) => {
  const where = new Conditions(SQLITE)
    .narrow("e.org_id = ?", orgId)
    .narrow("e.app_id = ?", appId)
    .narrow("e.id = ?", endpointId)
    .require(HAS_LIVE)
  return readPage(context, "SELECT e.id, e.app_id FROM endpoints e", where, "e.id", page)
    .map(({ id, app_id }) => context.connection.sql(COUNT).get(id as string, app_id as string, most)!)
    .filter((row) => row.oldest_at !== null)
    .map(toLaneStatus)
}
