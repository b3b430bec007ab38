/** Settling: writes the outcomes of attempts, fenced by the token of their claim, many in one statement. */
import type { GateUpdate } from "../../core/gate.ts"
import { writeProtection } from "../../core/protection.ts"
import type { FencedGiveBack, FencedSettlement } from "../fence.ts"
import { GIVEN_UP } from "../rollups.ts"
import type { Row } from "../rows.ts"
import { statement } from "../statements.ts"
import type { NewAttempt, SettleResult } from "../store.ts"
import type { Context } from "./context.ts"
import { isMissingPartition } from "./errors.ts"
import { purgeDay } from "./partitions.ts"
import { rollUp } from "./rollups.ts"
import { KEPT_DAY, LIVE_DAY } from "./schema.ts"
import { type Column, Columns, lookup, Packed, patience } from "./statement.ts"

const TRIES = 3

/** A claim that ends, with its attempt if a request was made. */
export interface EndedClaim<C extends FencedGiveBack = FencedGiveBack> {
  readonly claim: C
  /** The delivery was handed over, not fetched. */
  readonly wasHanded: boolean
}

/** Position of the attempt's response in the packed bodies. */
interface Packable extends EndedClaim<FencedGiveBack | FencedSettlement> {
  readonly bodyAt: number
  readonly bodyLength: number | null
}

const attemptColumn = (type: string, value: (attempt: NewAttempt) => unknown): Column<Packable> => [
  type,
  ({ claim }) => (claim.attempt === null ? null : value(claim.attempt)),
]

const CLAIM = {
  seq: ["bigint", ({ claim }) => claim.seq],
  delivery_id: ["text", ({ claim }) => claim.deliveryId],
  message_id: ["text", ({ claim }) => claim.messageId],
  lane: ["text", ({ claim }) => claim.endpointId],
  token: ["bigint", ({ claim }) => claim.token],
  was_handed: ["bool", ({ wasHanded }) => wasHanded],
  attempt_id: attemptColumn("text", ({ id }) => id),
  attempt_status: attemptColumn("text", ({ status }) => status),
  attempt_number: attemptColumn("int", ({ attemptNumber }) => attemptNumber),
  attempt_manual: attemptColumn("bool", ({ manual }) => manual),
  url: attemptColumn("text", ({ url }) => url),
  response_status: attemptColumn("int", ({ responseStatus }) => responseStatus),
  body_at: ["int", ({ bodyAt }) => bodyAt],
  body_length: ["int", ({ bodyLength }) => bodyLength],
  response_truncated: attemptColumn("bool", ({ responseTruncated }) => responseTruncated),
  error: attemptColumn("text", ({ error }) => error),
  started_at: attemptColumn("bigint", ({ startedAt }) => startedAt),
  duration_ms: attemptColumn("bigint", ({ durationMs }) => durationMs),
  timing: attemptColumn("text", ({ timing }) => timing),
} satisfies { [name: string]: Column<Packable> }

const changeColumn = (
  type: string,
  value: (change: FencedSettlement["change"], settlement: FencedSettlement) => unknown,
): Column<Packable> => [
  type,
  ({ claim }) => value((claim as FencedSettlement).change, claim as FencedSettlement),
]

const gateColumn = (type: string, value: (gate: GateUpdate) => unknown): Column<Packable> =>
  changeColumn(type, (_, { gate }) => gate && value(gate))

const GIVEN_BACK = new Columns<Packable>(CLAIM)
const SETTLED = new Columns<Packable>({
  ...CLAIM,
  expected_count: ["int", ({ claim }) => (claim as FencedSettlement).expectedAttemptCount],
  expected_age_from: ["bigint", ({ claim }) => (claim as FencedSettlement).expectedAgeFrom],
  app_id: changeColumn("text", (_, { appId }) => appId),
  event_type: changeColumn("text", (_, { eventType }) => eventType),
  payload_bytes: changeColumn("int", (_, { payloadBytes }) => payloadBytes),
  status: changeColumn("text", ({ status }) => status),
  dead_reason: changeColumn("text", ({ deadReason }) => deadReason),
  attempt_count: changeColumn("int", ({ attemptCount }) => attemptCount),
  next_retry_at: changeColumn("bigint", ({ nextRetryAt }) => nextRetryAt),
  last_attempted_at: changeColumn("bigint", ({ lastAttemptedAt }) => lastAttemptedAt),
  delivered_at: changeColumn("bigint", ({ deliveredAt }) => deliveredAt),
  dead_at: changeColumn("bigint", ({ deadAt }) => deadAt),
  error_detail: changeColumn("text", ({ errorDetail }) => errorDetail),
  age_from: changeColumn("bigint", ({ ageFrom }) => ageFrom),
  stalls: changeColumn("int", ({ stalls }) => stalls),
  manual: changeColumn("bool", ({ manual }) => manual),
  purge_at: changeColumn("bigint", ({ purgeAt }) => purgeAt),
  settled_at: changeColumn("bigint", (_, { settledAt }) => settledAt),
  purge_day: changeColumn("int", (_, settlement) => dayOf(settlement)),
  disables: changeColumn("bool", ({ disableEndpoint }) => disableEndpoint),
  disable_reason: gateColumn("text", ({ disables }) => disables),
  hold_until: gateColumn("bigint", ({ holdUntil }) => holdUntil),
  breaker_until: gateColumn("bigint", ({ protection }) => protection.until),
  protection: gateColumn("text", ({ protection }) => writeProtection(protection)),
  gate_epoch: gateColumn("int", ({ epoch }) => epoch),
  gate_revision: gateColumn("int", ({ revision }) => revision),
})

/**
 * Rows that another transaction has locked are not settled now: waiting for one would delay every lane of the batch. `fits` selects the
 * settlements that a statement is for.
 */
const asked = (fits: string) => `
asked AS MATERIALIZED (SELECT * FROM ${SETTLED.unnest("asked")}, ${patience(2000)}),
ours AS MATERIALIZED (
  SELECT d.seq, d.attempt_count, d.age_from, abs(d.handed_token) AS handed_token FROM webhook_deliveries_live d
   WHERE d.seq = ANY (ARRAY(SELECT seq FROM asked)) FOR NO KEY UPDATE SKIP LOCKED
),
x AS MATERIALIZED (
  SELECT asked.*,
         (seq, token) IN (SELECT seq, handed_token FROM ours WHERE handed_token IS NOT NULL) AS marked
    FROM asked
   WHERE ${fits}
)`

/** The row is still the one that the outcome was computed from. An operator's retry moves `age_from`, which fences earlier attempts. */
const UNCHANGED =
  "(seq, expected_count, coalesce(expected_age_from, -1)) IN (SELECT seq, attempt_count, coalesce(age_from, -1) FROM ours)"
/** Somebody changed or finished the row. A live row that is not in `ours` is locked. */
const CHANGED =
  "(seq IN (SELECT seq FROM ours) OR NOT EXISTS (SELECT FROM webhook_deliveries_live d WHERE d.seq = asked.seq OFFSET 0))"

const IN_HAND = "seq IN (SELECT unnest(sending) FROM locked)"

/**
 * The valid claims of `x`. The fence of a handed delivery is the mark in its row; for fetched ones the lanes are locked in order of id, and
 * the deliveries removed from them. IS TRUE keeps the planner from turning the hashed tests of membership into joins.
 */
const fenced = (isClaimed: string) => `
locked AS MATERIALIZED (
  SELECT l.id, l.token, l.sending, l.since
    FROM (SELECT DISTINCT lane FROM x WHERE NOT marked) AS named
    JOIN lanes l ON ${lookup("l.id", "named.lane")}
   ORDER BY named.lane COLLATE "C" FOR NO KEY UPDATE OF l
),
standing AS MATERIALIZED (
  SELECT x.* FROM x
   WHERE marked OR (((lane, token) IN (SELECT id, token FROM locked)) IS TRUE AND (${isClaimed}) IS TRUE)
),
let_go AS (
  UPDATE lanes
     SET (sending, since) = (
           SELECT coalesce(array_agg(u.seq), '{}'), coalesce(array_agg(u.since), '{}')
             FROM unnest(l.sending, l.since) AS u(seq, since) WHERE u.seq NOT IN (SELECT seq FROM standing)
         )
    FROM locked l
   WHERE ${lookup("lanes.id", "l.id")} AND (l.id IN (SELECT lane FROM standing WHERE NOT marked)) IS TRUE
)`

/** Moves earlier attempts to the partition of their delivery. */
const moved = (finished: string) => `
moved AS (
  UPDATE attempts a SET purge_day = x.purge_day
    FROM applied x
   WHERE ${finished} AND ${lookup("a.delivery_id", "x.delivery_id")} AND a.purge_day = ${LIVE_DAY}
)`

const insertAttempts = (columns: Columns<Packable>, day: string, of: string) => `
INSERT INTO attempts (
  id, delivery_id, webhook_id, message_id, attempt_number, manual, status, url, response_status, response_body, response_truncated,
  error, started_at, duration_ms, timing, purge_day
)
SELECT x.attempt_id, x.delivery_id, x.lane, x.message_id, x.attempt_number, x.attempt_manual, x.attempt_status, x.url,
       x.response_status, substr($${columns.next()}::bytea, x.body_at, x.body_length), x.response_truncated, x.error, x.started_at, x.duration_ms, x.timing, ${day}
  FROM ${of} x
 WHERE x.attempt_id IS NOT NULL ORDER BY x.ord`

/** The newest of the lane's gate updates, unless the endpoint has a newer one or an operator reset the gate. See `GateUpdate`. */
const newest = (column: string, value: string) =>
  `${column} = CASE WHEN g.gate_epoch = e.gate_epoch AND (g.token, g.gate_revision) > (e.gate_token, e.gate_revision)
                         THEN ${value} ELSE e.${column} END`
/** Failures from before an operator enabled the endpoint do not disable it again. */
const DISABLES =
  "(g.disables AND (g.disable_reason IS DISTINCT FROM 'failing' OR g.gate_epoch = e.gate_epoch))"
const GATES = `
gates AS (
  UPDATE endpoints e
     SET disabled = e.disabled OR ${DISABLES}, version = e.version + ${DISABLES}::int,
         disabled_at = CASE WHEN ${DISABLES} AND NOT e.disabled THEN g.last_attempted_at ELSE e.disabled_at END,
         disabled_reason = CASE WHEN ${DISABLES} AND NOT e.disabled THEN g.disable_reason ELSE e.disabled_reason END,
         ${newest("hold_until", "g.hold_until")},
         ${newest("breaker_until", "g.breaker_until")},
         ${newest("protection", "g.protection")},
         ${newest("gate_token", "g.token")},
         ${newest("gate_revision", "g.gate_revision")}
    FROM (
      SELECT DISTINCT ON (lane) lane, bool_or(disables) OVER (PARTITION BY lane) AS disables, last_attempted_at,
             max(disable_reason) OVER (PARTITION BY lane) AS disable_reason,
             hold_until, breaker_until, protection, token, gate_epoch, gate_revision
        FROM standing WHERE disables OR gate_revision IS NOT NULL
       ORDER BY lane, gate_epoch DESC NULLS LAST, token DESC, gate_revision DESC
    ) g
   WHERE ${lookup("e.id", "g.lane")}
)`

export const SETTLE = statement(
  "deliveries.settle",
  `
WITH ${asked(UNCHANGED)},
${fenced(IN_HAND)},
applied AS (
  UPDATE webhook_deliveries d
     SET status = x.status, dead_reason = x.dead_reason, attempt_count = x.attempt_count, next_retry_at = x.next_retry_at,
         last_attempted_at = x.last_attempted_at, delivered_at = x.delivered_at, dead_at = x.dead_at,
         error_detail = CASE WHEN x.status = 'delivered' THEN NULL ELSE coalesce(x.error_detail, d.error_detail) END,
         age_from = x.age_from, stalls = x.stalls, manual = x.manual, purge_at = x.purge_at, purge_day = x.purge_day,
         discarded_at = NULL, target_url = coalesce(x.url, d.target_url), handed_token = NULL
    FROM standing x
   WHERE ${lookup("d.seq", "x.seq")} AND d.attempt_count = x.expected_count AND d.status IN ('pending', 'failed')
  RETURNING x.ord, x.delivery_id, x.status, x.purge_day
),
${moved("x.status IN ('delivered', 'dead')")},
logged AS (
  ${insertAttempts(
    SETTLED,
    `CASE WHEN x.status IN ('delivered', 'dead') THEN x.purge_day ELSE ${LIVE_DAY} END`,
    "standing",
  )}
),
${rollUp("standing", GIVEN_UP)},
${GATES}
-- Subqueries and not joins: the planner expects one row and compared every row with every other, which was half of the time.
SELECT CASE WHEN ord IN (SELECT ord FROM applied) THEN 'applied'
            WHEN ord IN (SELECT ord FROM x) THEN 'stale'
            WHEN ${CHANGED} THEN 'changed'
            ELSE 'busy' END AS result
  FROM asked ORDER BY ord`,
)

/**
 * Outcomes for a delivery that somebody changed or finished: the attempt is logged, and the delivery keeps its status. A finished delivery
 * counts the attempt, a revived one does not. A handed delivery that was finished has lost its mark, so the lane's claim is its fence, and an
 * attempt that was already written is not written again. A statement of its own, since it reads every day of finished deliveries.
 */
const COUNTS = "x.attempt_id IS NOT NULL AND d.status IN ('delivered', 'dead')"
const FOUND_LATE = "(SELECT standing.*, counted.day FROM standing JOIN counted USING (ord))"
const SETTLE_LATE = statement(
  "deliveries.settle-late",
  `
WITH ${asked(CHANGED)},
${fenced(`(
    ${IN_HAND} OR x.was_handed AND NOT EXISTS (
      SELECT FROM attempts a WHERE a.delivery_id = x.delivery_id AND a.id = x.attempt_id OFFSET 0
    )
  )`)},
counted AS (
  UPDATE webhook_deliveries d
     SET attempt_count = d.attempt_count + (${COUNTS})::int, handed_token = NULL,
         last_attempted_at = CASE WHEN ${COUNTS} THEN x.last_attempted_at ELSE d.last_attempted_at END
    FROM standing x
   WHERE ${lookup("d.seq", "x.seq")}
  RETURNING x.ord, CASE WHEN d.status IN ('delivered', 'dead') THEN d.purge_day ELSE ${LIVE_DAY} END AS day
),
logged AS (
  ${insertAttempts(SETTLED, "x.day", FOUND_LATE)}
),
${rollUp(FOUND_LATE, "false")},
${GATES}
SELECT CASE WHEN ord IN (SELECT ord FROM standing) THEN 'superseded'
            WHEN ord IN (SELECT ord FROM x) THEN 'stale'
            ELSE 'busy' END AS result
  FROM asked ORDER BY ord`,
)

const GIVE_BACK = statement(
  "deliveries.give-back",
  `
WITH asked AS MATERIALIZED (SELECT * FROM ${GIVEN_BACK.unnest("asked")}, ${patience(2000)}),
-- Rows that another transaction has locked keep their marks, which the next fetch removes.
ours AS MATERIALIZED (
  SELECT d.seq FROM webhook_deliveries_live d
   WHERE d.seq = ANY (ARRAY(SELECT seq FROM asked)) AND (d.seq, abs(d.handed_token)) IN (SELECT seq, token FROM asked)
   FOR NO KEY UPDATE SKIP LOCKED
),
unmarked AS (
  UPDATE webhook_deliveries_live d SET handed_token = NULL WHERE d.seq = ANY (ARRAY(SELECT seq FROM ours))
),
x AS MATERIALIZED (SELECT asked.*, seq IN (SELECT seq FROM ours) AS marked FROM asked),
${fenced(IN_HAND)},
logged AS (
  ${insertAttempts(GIVEN_BACK, String(LIVE_DAY), "standing")}
),
woken AS (
  INSERT INTO lane_wakes (lane_id, due_at) SELECT DISTINCT lane, 0 FROM asked WHERE was_handed
)
SELECT ord::int FROM x WHERE was_handed AND NOT marked`,
)

/** Interrupted attempts of handed deliveries that somebody finished meanwhile; see SETTLE_LATE. */
const LOG_GONE = statement(
  "deliveries.log-gone",
  `
WITH asked AS MATERIALIZED (SELECT * FROM ${GIVEN_BACK.unnest("asked")}, ${patience(2000)}),
locked AS MATERIALIZED (
  SELECT l.id, l.token
    FROM (SELECT DISTINCT lane FROM asked) AS named JOIN lanes l ON ${lookup("l.id", "named.lane")}
   ORDER BY named.lane COLLATE "C" FOR NO KEY UPDATE OF l
),
gone AS MATERIALIZED (
  SELECT asked.*, d.purge_day
    FROM asked
    JOIN locked l ON l.id = asked.lane AND l.token = asked.token
    CROSS JOIN LATERAL (SELECT purge_day FROM webhook_deliveries_done WHERE seq = asked.seq OFFSET 0) d
   WHERE NOT EXISTS (SELECT FROM attempts a WHERE a.delivery_id = asked.delivery_id AND a.id = asked.attempt_id OFFSET 0)
),
logged AS (
  ${insertAttempts(GIVEN_BACK, "x.purge_day", "gone")}
)
SELECT ord::int FROM gone`,
)

export type EndedSettlement = EndedClaim<FencedSettlement>

export async function settle(
  context: Context,
  settlements: readonly EndedSettlement[],
): Promise<SettleResult[]> {
  const rows = await inItsDay(context, settlements)
  const changed = settlements.filter((_, i) => rows[i]!.result === "changed")
  const late = changed.length === 0 ? [] : await context.database.run(SETTLE_LATE, settleValues(changed))
  return rows.map(({ result }) => (result === "changed" ? late.shift()! : { result }).result as SettleResult)
}

/** Creates the partitions for finished deliveries before it settles. */
async function inItsDay(
  { database, partitions }: Context,
  settlements: readonly EndedSettlement[],
): Promise<Row[]> {
  const finished = settlements.filter(({ claim }) => claim.change.purgeAt !== null)
  const days = new Set(finished.map(({ claim }) => dayOf(claim)))
  for (let left = TRIES; ; left--) {
    await partitions.ensureDays(days)
    try {
      return await database.run(SETTLE, settleValues(settlements))
    } catch (error) {
      if (left === 1 || !isMissingPartition((error as Error).cause)) throw error
      partitions.forget()
    }
  }
}

export async function giveBack({ database }: Context, claims: readonly EndedClaim[]): Promise<void> {
  const rows = await database.run(GIVE_BACK, packedValues(GIVEN_BACK, claims))
  const unmarked = rows.map(({ ord }) => claims[(ord as number) - 1]!)
  const gone = unmarked.filter(({ claim }) => claim.attempt !== null)
  if (gone.length > 0) await database.run(LOG_GONE, packedValues(GIVEN_BACK, gone))
}

export function settleValues(settlements: readonly EndedSettlement[]): unknown[] {
  return packedValues(SETTLED, settlements)
}

function packedValues(columns: Columns<Packable>, claims: readonly EndedClaim[]): unknown[] {
  const bodies = new Packed(claims.map(({ claim }) => claim.attempt?.responseBody ?? null))
  const packed = claims.map((one, i) => ({ ...one, bodyAt: bodies.at[i]!, bodyLength: bodies.lengths[i]! }))
  return [...columns.values(packed), bodies.bytes]
}

function dayOf({ change, attempt }: FencedSettlement): number {
  if (change.status !== "delivered" && change.status !== "dead") return KEPT_DAY
  return purgeDay(change.purgeAt, change.lastAttemptedAt ?? attempt?.startedAt ?? change.purgeAt ?? 0)
}
