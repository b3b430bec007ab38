/** A survey of the whole store: waiting deliveries by state, the oldest that is due, dead letters by reason. Texts for both stores. */
import type { DeadReason } from "../core/policy.ts"
import { CALLED_OFF, SHADOW } from "./conditions.ts"
import type { Row } from "./rows.ts"
import { statement } from "./statements.ts"
import type { Survey } from "./store.ts"

/** Fragments of SQL that the databases write differently. */
export interface SurveyDialect {
  /** The table of waiting rows. */
  readonly table: string
  /** Waiting rows `d`, grouped by queue in the order of their index. */
  readonly live: string
  readonly queue: string
  /** The `seq` of the first row in the ordered line of the endpoint `q.webhook_id`. */
  readonly head: string
  readonly least: string
  readonly greatest: string
  /** Until when the retries of the endpoint `e` wait for its budget. An operator may have typed any text there. */
  readonly retriesAt: string
  /** The members of the JSON object `$2`, as `a` with the columns `key` and `value`. */
  readonly agents: string
  /** The endpoints whose waiting deliveries are counted, from the JSON array `$3`. */
  readonly counted: string
  /** The JSON object, as text, of names and values in the rows of a query; null or empty without rows. */
  toObject(name: string, value: string): string
  /** A number as 16 digits, so that texts compare as numbers. */
  digits(number: string): string
}

const DUE = "coalesce(d.next_retry_at, 0)"
const DIGITS = 16
const NEVER = 9_007_199_254_740_991
const IS_HELD =
  "(e.deleted_at IS NOT NULL OR e.disabled OR e.paused OR coalesce(e.hold_until, 0) > $1 OR coalesce(e.breaker_until, 0) > $1)"
/** As `writeProtection` writes it: a closed breaker and an endpoint that does not fail are left out. */
const IS_FAILING = `(coalesce(e.protection, '') LIKE '%"isFailing":true%' OR coalesce(e.protection, '') LIKE '%"phase":"%')`

/**
 * Rank 0 is an ordered line: nothing in it is due before its head. Ranks 3, 5 and 7 are retries. A delivery that an operator sent again is due
 * since then (`age_from`). `$1` is the time. `$2` is an object of endpoints with an agent: since when it is connected, null if it is not.
 * `$3` is an array of endpoints.
 */
const surveyBacklog = (dialect: SurveyDialect) => {
  const { table, live, queue, head, least, greatest, retriesAt, agents, counted, digits } = dialect
  const sum = (condition: string, count: string) =>
    `CAST(coalesce(sum(CASE WHEN ${condition} THEN ${count} ELSE 0 END), 0) AS bigint)`
  const startOf = (row: string) =>
    `${greatest}(${row}.received_at, coalesce(${row}.age_from, ${row}.received_at))`
  return `
WITH queues AS (
  SELECT d.webhook_id, d.rank, count(*) AS n,
         count(*) FILTER (WHERE ${DUE} > $1) AS later,
         min(${DUE}) FILTER (WHERE ${DUE} BETWEEN 1 AND $1) AS due_at,
         min(${startOf("d")}) FILTER (WHERE ${DUE} = 0) AS start_at
    FROM ${live} GROUP BY ${queue}
),
lines AS (
  SELECT q.webhook_id, q.rank, q.n,
         CASE WHEN q.rank > 0 THEN q.later WHEN coalesce(f.next_retry_at, 0) > $1 THEN q.n ELSE 0 END AS later,
         CASE WHEN q.rank > 0 THEN q.due_at ELSE f.next_retry_at END AS due_at,
         CASE WHEN q.rank > 0 THEN q.start_at WHEN coalesce(f.next_retry_at, 0) = 0 THEN ${startOf("f")} END AS start_at
    FROM queues q
    LEFT JOIN ${table} f ON q.rank = 0 AND f.seq = (${head})
),
gates AS (
  SELECT l.n, l.later, e.id, ${IS_HELD} OR (a.key IS NOT NULL AND a.value IS NULL) AS is_held, l.rank IN (0, 3, 5, 7) AS is_retry,
         ${IS_FAILING} OR (l.rank IN (3, 5, 7) AND coalesce(${retriesAt}, 0) > $1) AS is_failing,
         ${greatest}(${least}(coalesce(l.due_at, ${NEVER}), coalesce(l.start_at, ${NEVER})),
           coalesce(e.hold_until, 0), coalesce(e.breaker_until, 0), coalesce(e.resumed_at, 0), coalesce(a.value, 0)) AS since
    FROM lines l JOIN endpoints e ON e.id = l.webhook_id LEFT JOIN ${agents} ON a.key = e.id
   WHERE e.org_id NOT ${SHADOW}
)
SELECT ${sum("is_held", "n")} AS held,
       ${sum("NOT is_held", "n - later")} AS due,
       ${sum("NOT is_held AND is_retry", "later")} AS retrying,
       ${sum("NOT is_held AND NOT is_retry", "later")} AS scheduled,
       min(CASE WHEN n > later AND since <= $1 AND NOT is_held AND NOT is_failing THEN ${digits("since")} || id END) AS oldest,
       (SELECT ${dialect.toObject("w.webhook_id", "w.n")}
          FROM (SELECT q.webhook_id, CAST(sum(q.n) AS bigint) AS n FROM queues q WHERE q.webhook_id IN (${counted}) GROUP BY q.webhook_id) w
       ) AS waiting
  FROM gates`
}

/** Of a delivery that died before this was recorded, or by an operator's SQL: its last attempt. */
const DIED = "coalesce(d.dead_at, d.last_attempted_at, d.received_at)"

/** By the index deliveries_dead_reason. */
const DEAD_LETTERS = `
SELECT g.dead_reason, CAST(sum(g.n) AS bigint) AS n, min(g.oldest_at) AS oldest_at
  FROM (
    SELECT d.app_id, d.dead_reason, count(*) AS n, min(${DIED}) AS oldest_at
      FROM webhook_deliveries d
     WHERE d.status = 'dead' AND d.discarded_at IS NULL AND d.dead_reason IS NOT NULL AND NOT ${CALLED_OFF}
     GROUP BY d.app_id, d.dead_reason
  ) g
  JOIN applications a ON a.id = g.app_id
 WHERE a.org_id NOT ${SHADOW}
 GROUP BY g.dead_reason ORDER BY g.dead_reason`

/** The second count is small: by the indexes applications_org and endpoints_app. */
const ENDPOINTS = `
SELECT (SELECT count(*) FROM endpoints WHERE deleted_at IS NULL)
       - (SELECT count(*) FROM applications a JOIN endpoints e ON e.app_id = a.id WHERE a.org_id ${SHADOW} AND e.deleted_at IS NULL) AS n`

export function surveyStatements(dialect: SurveyDialect) {
  return {
    backlog: statement("survey.backlog", surveyBacklog(dialect)),
    deadLetters: statement("survey.dead-letters", DEAD_LETTERS),
    endpoints: statement("survey.endpoints", ENDPOINTS),
  }
}

export function toSurvey(backlog: Row, deadLetters: readonly Row[], endpoints: Row): Survey {
  const { due, scheduled, retrying, held } = backlog as { readonly [state: string]: number }
  const oldest = backlog.oldest as string | null
  return {
    deliveries: { due: due!, scheduled: scheduled!, retrying: retrying!, held: held! },
    oldestDue:
      oldest === null ? null : { at: Number(oldest.slice(0, DIGITS)), endpointId: oldest.slice(DIGITS) },
    deadLetters: deadLetters.map((row) => ({
      reason: row.dead_reason as DeadReason,
      count: row.n as number,
      oldestAt: row.oldest_at as number,
    })),
    endpoints: endpoints.n as number,
    waiting: JSON.parse((backlog.waiting as string | null) ?? "{}"),
  }
}
