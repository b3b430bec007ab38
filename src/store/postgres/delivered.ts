/**
 * What most deliveries come to: delivered at the first attempt. Their row says all the rest, so half of the columns is enough. Whatever
 * else there is, `settle` does.
 */
import type { NewAttempt, Settlement } from "../store.ts"
import type { Context } from "./context.ts"
import { dayOf, FENCED, inItsDay, moved } from "./settle.ts"
import { Columns, lookup, Packed, patience, type Statement } from "./statement.ts"

interface Delivered {
  readonly settlement: Settlement
  readonly attempt: NewAttempt
  readonly bodyAt: number
  readonly bodyLength: number | null
}

const COLUMNS = new Columns<Delivered>({
  seq: ["bigint", ({ settlement }) => settlement.seq],
  lane: ["text", ({ settlement }) => settlement.endpointId],
  token: ["bigint", ({ settlement }) => settlement.token],
  delivered_at: ["bigint", ({ settlement }) => settlement.change.deliveredAt],
  purge_at: ["bigint", ({ settlement }) => settlement.change.purgeAt],
  purge_day: ["int", ({ settlement }) => dayOf(settlement)],
  attempt_id: ["text", ({ attempt }) => attempt.id],
  url: ["text", ({ attempt }) => attempt.url],
  response_status: ["int", ({ attempt }) => attempt.responseStatus],
  body_at: ["int", ({ bodyAt }) => bodyAt],
  body_length: ["int", ({ bodyLength }) => bodyLength],
  response_truncated: ["bool", ({ attempt }) => attempt.responseTruncated],
  started_at: ["bigint", ({ attempt }) => attempt.startedAt],
  duration_ms: ["bigint", ({ attempt }) => attempt.durationMs],
})

export const SETTLE_DELIVERED: Statement = {
  name: "deliveries.settle-delivered",
  text: `
WITH asked AS MATERIALIZED (SELECT * FROM ${COLUMNS.unnest("asked")}, ${patience(2000)}),
-- A retry from before which the answer may be is left to settle: an operator's is manual, a typed one leaves no age_from.
ours AS MATERIALIZED (
  SELECT d.seq, abs(d.handed_token) AS handed_token FROM webhook_deliveries_live d
   WHERE d.seq = ANY (ARRAY(SELECT seq FROM asked)) AND d.status = 'pending' AND d.attempt_count = 0 AND d.stalls = 0 AND NOT d.manual
     AND d.age_from IS NOT NULL
   FOR NO KEY UPDATE SKIP LOCKED
),
x AS MATERIALIZED (
  SELECT asked.*, (seq, token) IN (SELECT seq, handed_token FROM ours WHERE handed_token IS NOT NULL) AS marked
    -- As a test, not a join: the planner would expect one row, and compare every lane with every other.
    FROM asked WHERE (seq IN (SELECT seq FROM ours)) IS TRUE
),
${FENCED},
applied AS (
  UPDATE webhook_deliveries d
     SET status = 'delivered', attempt_count = 1, next_retry_at = NULL, last_attempted_at = x.delivered_at,
         delivered_at = x.delivered_at, purge_at = x.purge_at, purge_day = x.purge_day, target_url = x.url, handed_token = NULL,
         error_detail = NULL, dead_reason = NULL, discarded_at = NULL
    FROM standing x
   WHERE ${lookup("d.seq", "x.seq")} AND d.status = 'pending'
  RETURNING x.ord, d.id AS delivery_id, d.webhook_id, d.message_id, x.attempt_id, x.url, x.response_status, x.body_at, x.body_length,
            x.response_truncated, x.started_at, x.duration_ms, x.purge_day
),
${moved("true")},
logged AS (
  INSERT INTO attempts (
    id, delivery_id, webhook_id, message_id, attempt_number, status, url, response_status, response_body, response_truncated,
    started_at, duration_ms, purge_day
  )
  SELECT attempt_id, delivery_id, webhook_id, message_id, 1, 'succeeded', url, response_status,
         substr($${COLUMNS.next()}::bytea, body_at, body_length), response_truncated, started_at, duration_ms, purge_day
    FROM applied ORDER BY ord
)
SELECT ARRAY(SELECT ord FROM applied)::int[] AS applied`,
}

export function deliveredValues(settlements: readonly Settlement[]): unknown[] {
  const bodies = new Packed(settlements.map(({ attempt }) => attempt!.responseBody))
  const delivered = settlements.map((settlement, i) => ({
    settlement,
    attempt: settlement.attempt!,
    bodyAt: bodies.at[i]!,
    bodyLength: bodies.lengths[i]!,
  }))
  return [...COLUMNS.values(delivered), bodies.bytes]
}

/** Whether it is one of those, as far as is known here; the row has the last word. */
export function isDelivered({ change, attempt }: Settlement): boolean {
  const isFirst = change.status === "delivered" && change.attemptCount === 1
  return isFirst && attempt !== null && attempt.error === null && !attempt.manual
}

/** For each, whether it was written. */
export async function settleDelivered(
  context: Context,
  settlements: readonly Settlement[],
): Promise<boolean[]> {
  const [row] = await inItsDay(context, settlements, SETTLE_DELIVERED, deliveredValues(settlements))
  const applied = new Set(row!.applied as number[])
  return settlements.map((_, i) => applied.has(i + 1))
}
