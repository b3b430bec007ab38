/** Roll-ups: hourly sums of attempts, written with the settle of each attempt, for both stores. */

import { LATENCY_BOUNDS_MS } from "../core/latency.ts"
import type { Change } from "../core/settle.ts"
import { type Conditions, type Dialect, ofRollups } from "./conditions.ts"
import type { Row } from "./rows.ts"
import type { RollupDimension, RollupFilter, RollupSum } from "./store.ts"

export const HOUR_MS = 3_600_000
/** How long retention keeps a roll-up. */
export const ROLLUP_KEPT_MS = 90 * 24 * HOUR_MS
/** The number of this attempt and of all later ones. */
export const LAST_ATTEMPT_NUMBER = 20

/** Dead, and not because an operator called the delivery off. `GIVEN_UP` is the same as a condition of `x`. */
export function isGivenUp({ status, deadReason }: Pick<Change, "status" | "deadReason">): boolean {
  return status === "dead" && deadReason !== "cancelled" && deadReason !== "expunged"
}
export const GIVEN_UP = "(x.status = 'dead' AND x.dead_reason NOT IN ('cancelled', 'expunged'))"

/** The columns of a roll-up, with the count of deliveries that were given up without an attempt and zeros for everything else. */
export const ONLY_DEAD = () => SUMS.map((name) => (name === "dead" ? "count(*)" : "0")).join(", ")

const KEY = "webhook_id, hour, event_type, attempt_number"
const LATENCIES = [...LATENCY_BOUNDS_MS, "slower"].map((bound) => `latency_${bound}`)
/** Of one attempt, in this order; without its latency. */
const COUNTERS = [
  "attempts",
  "succeeded",
  "dead",
  "no_response",
  "bytes_out",
  "bytes_in",
  "duration_ms",
  "aged",
]
export const COUNTER_COUNT = COUNTERS.length
export const DEAD = COUNTERS.indexOf("dead")
const SUMS = [...COUNTERS, ...LATENCIES]
export const NO_SUMS: readonly number[] = SUMS.map(() => 0)

export const NEW_ROLLUP = `${KEY}, app_id, ${SUMS.join(", ")}, last_success_at, age_min_ms, age_max_ms`
/** The end of an insert into `attempt_rollups AS r`. */
export const ADD_TO_ROLLUP = `
  ON CONFLICT (${KEY}) DO UPDATE
     SET ${SUMS.map((name) => `${name} = r.${name} + excluded.${name}`).join(", ")},
         last_success_at = CASE WHEN excluded.last_success_at > coalesce(r.last_success_at, 0)
                                THEN excluded.last_success_at ELSE r.last_success_at END,
         ${keep("age_min_ms", "<=")}, ${keep("age_max_ms", ">=")}`

/** The stored value, unless the new one goes beyond it. */
function keep(column: string, comparison: "<=" | ">="): string {
  return `${column} = CASE WHEN r.${column} ${comparison} excluded.${column} OR excluded.${column} IS NULL
                           THEN r.${column} ELSE excluded.${column} END`
}

const COLUMNS: {
  readonly [dimension in RollupDimension]: readonly [column: string, field: keyof RollupSum]
} = {
  application: ["app_id", "appId"],
  endpoint: ["webhook_id", "endpointId"],
  eventType: ["event_type", "eventType"],
  hour: ["hour", "hour"],
  attemptNumber: ["attempt_number", "attemptNumber"],
  retries: ["retries", "attemptNumber"],
}
const EXPRESSIONS: { readonly [column: string]: string } = {
  retries: "CASE WHEN r.attempt_number > 1 THEN 2 ELSE r.attempt_number END",
}

/** Endpoints are found by the primary key, applications and tenants by the index `attempt_rollups_app`. */
export function sumRollupsOf<V>(
  dialect: Dialect<V>,
  filter: RollupFilter,
  by: readonly RollupDimension[],
): { readonly text: string; readonly where: Conditions<V> } {
  const where = ofRollups(dialect, filter)
  const columns = by.map((dimension) => COLUMNS[dimension][0])
  const groups = columns.map((column) => EXPRESSIONS[column] ?? `r.${column}`)
  const named = groups.map((group, i) => `${group} AS ${columns[i]}`)
  const sums = SUMS.map((name) => `${dialect.sum(`r.${name}`)} AS ${name}`)
  const grouped = groups.length === 0 ? "" : `GROUP BY ${groups.join(", ")}`
  const ordered = groups.length === 0 ? "" : `ORDER BY ${groups.join(", ")}`
  const text = `
    SELECT ${[...named, ...sums, "max(r.last_success_at) AS last_success_at"].join(", ")}
      FROM attempt_rollups r WHERE ${where} ${grouped} HAVING count(*) > 0 ${ordered}`
  return { text, where }
}

export function toRollupSum(row: Row, by: readonly RollupDimension[]): RollupSum {
  return {
    ...Object.fromEntries(by.map((dimension) => [COLUMNS[dimension][1], row[COLUMNS[dimension][0]]])),
    attempts: row.attempts as number,
    succeeded: row.succeeded as number,
    dead: row.dead as number,
    noResponse: row.no_response as number,
    bytesOut: row.bytes_out as number,
    bytesIn: row.bytes_in as number,
    durationMs: row.duration_ms as number,
    latencies: LATENCIES.map((name) => row[name] as number),
    lastSuccessAt: row.last_success_at as number | null,
  }
}
