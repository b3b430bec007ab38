/** Roll-ups: the part of a settle that adds its attempts to their hourly sums, and reading them. */
import { LATENCY_BOUNDS_MS } from "../../core/latency.ts"
import {
  ADD_TO_ROLLUP,
  HOUR_MS,
  LAST_ATTEMPT_NUMBER,
  NEW_ROLLUP,
  ONLY_DEAD,
  sumRollupsOf,
  toRollupSum,
} from "../rollups.ts"
import { POSTGRES } from "./conditions.ts"
import type { Operation } from "./context.ts"
import { readAll } from "./page.ts"

/**
 * The rows of `of` that have an attempt, or whose delivery was given up without one: `givenUp` is the condition. In the order of the key: two
 * statements that lock the same rows wait for each other in one direction only.
 */
export const rollUp = (of: string, givenUp: string): string => `
rolled_up AS (
  INSERT INTO attempt_rollups AS r (${NEW_ROLLUP})
  SELECT o.lane, o.hour, o.event_type, o.number, min(o.app_id),
         count(*) FILTER (WHERE o.tried), count(*) FILTER (WHERE o.succeeded), count(*) FILTER (WHERE o.given_up),
         count(*) FILTER (WHERE o.tried AND o.response_status IS NULL), coalesce(sum(o.payload_bytes) FILTER (WHERE o.tried), 0),
         coalesce(sum(o.body_length), 0), coalesce(sum(o.duration_ms), 0), count(*) FILTER (WHERE o.tried),
         ${[0, ...LATENCY_BOUNDS_MS].map((_, i) => `count(*) FILTER (WHERE o.bucket = ${i})`).join(", ")},
         max(o.ended_at) FILTER (WHERE o.succeeded), min(o.age_ms), max(o.age_ms)
    FROM (
      SELECT x.lane COLLATE "C" AS lane, x.event_type COLLATE "C" AS event_type, x.app_id, x.response_status, x.payload_bytes, x.body_length,
             x.duration_ms, x.started_at + x.duration_ms AS ended_at, x.attempt_id IS NOT NULL AS tried,
             CASE WHEN x.attempt_id IS NOT NULL THEN greatest(x.started_at - x.age_from, 0) END AS age_ms,
             coalesce(x.started_at + x.duration_ms, x.settled_at) / ${HOUR_MS} * ${HOUR_MS} AS hour,
             least(coalesce(x.attempt_number, x.attempt_count), ${LAST_ATTEMPT_NUMBER}) AS number,
             width_bucket(x.duration_ms, ARRAY[${LATENCY_BOUNDS_MS}]::bigint[]) AS bucket,
             x.attempt_status = 'succeeded' AS succeeded, ${givenUp} AS given_up
        FROM ${of} x
       WHERE x.attempt_id IS NOT NULL OR ${givenUp}
    ) o
   GROUP BY o.lane, o.hour, o.event_type, o.number
   ORDER BY o.lane, o.hour, o.event_type, o.number
  ${ADD_TO_ROLLUP}
)`

/** Adds the deliveries of `of` that an amendment gave up. */
export const rollUpGivenUp = (of: string, givenUp: string): string => `
rolled_up AS (
  INSERT INTO attempt_rollups AS r (${NEW_ROLLUP})
  SELECT o.lane, o.hour, o.event_type, o.number, min(o.app_id), ${ONLY_DEAD()}, NULL, NULL, NULL
    FROM (
      SELECT x.webhook_id COLLATE "C" AS lane, x.event_type COLLATE "C" AS event_type, x.app_id,
             x.dead_at / ${HOUR_MS} * ${HOUR_MS} AS hour, least(x.attempt_count, ${LAST_ATTEMPT_NUMBER}) AS number
        FROM ${of} x
       WHERE ${givenUp}
    ) o
   GROUP BY o.lane, o.hour, o.event_type, o.number
   ORDER BY o.lane, o.hour, o.event_type, o.number
  ${ADD_TO_ROLLUP}
)`

export const sumRollups: Operation<"sumRollups"> = async (context, filter, by) => {
  const { text, where } = sumRollupsOf(POSTGRES, filter, by)
  return (await readAll(context, text, where)).map((row) => toRollupSum(row, by))
}
