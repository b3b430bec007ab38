/**
 * The statement that claims due deliveries of many lanes and records them in each lane's row. The row's token is the fence: a claim that was
 * lost gets nothing.
 */
import type { Moment } from "../../core/clock.ts"
import { STALL_WAITS_MS } from "../../core/settle.ts"
import { statement } from "../statements.ts"
import type { AskedLane } from "./lanes.ts"
import { Columns, lookup, patience } from "./statement.ts"

const COLUMNS = new Columns<AskedLane>({
  lane: ["text", ({ endpointId }) => endpointId],
  token: ["bigint", ({ token }) => token],
  most: ["int", ({ limit }) => limit],
  starting: ["int", ({ starting }) => starting],
  share: ["int", ({ retryShare }) => retryShare],
  retries: ["int", ({ retries }) => retries],
  known_version: ["int", ({ knownVersion }) => knownVersion],
  // As text: an array of arrays needs lists of one length.
  in_hand: ["text", ({ session }) => `{${[...session.fetched].join()}}`],
  is_open: ["bool", ({ isOpen }) => isOpen],
})
const NOW = `$${COLUMNS.next()}::bigint`
const WALL = `$${COLUMNS.next() + 1}::bigint`
const HANDED = `$${COLUMNS.next() + 2}::bigint[]`

const DUE = "coalesce(d.next_retry_at, 0)"
/** Rows of rank 1 that are due by their own clock: they join the ordered line or the queues. */
const joins = (now: string, wall: string) => `
  d.rank = 1 AND ${DUE} <= greatest(${now}, ${wall}) AND ${DUE} <= CASE WHEN d.dated THEN ${wall} ELSE ${now} END`
/** The lanes are locked until the result is read: further payloads are read afterwards, without a lock. */
const MOST_BYTES = 1024 * 1024

/** A mark of a delivery that the session does not have: an earlier owner's, or of a lost reply. See TAKE_OVER. */
const MARKED = "d.handed_token IS NOT NULL AS marked"
/** Hashed: compared one by one, 4000 in hand took 62 ms. A row with the mark of an open lane may be on its way to the session. */
const NOT_HANDED =
  "d.seq NOT IN (SELECT seq FROM handed) AND (NOT s.is_open OR abs(d.handed_token) IS DISTINCT FROM s.token)"

// Each rank is one probe of deliveries_live_due. The first retries fill their share, the rest is chosen by rank. The result has roughly the
// order in which deliveries start: the first ones are recorded as started. `nth`: of a retry, its number among the retries; else 0.
const UNORDERED = `
  SELECT seq, marked, row_number() OVER (ORDER BY rank, due_at, seq) AS place
    FROM (
      SELECT * FROM (
        SELECT d.seq, d.marked, r.rank, d.due_at,
               CASE WHEN r.rank % 2 = 1 THEN row_number() OVER (PARTITION BY r.rank % 2 ORDER BY r.rank, d.due_at, d.seq) ELSE 0 END AS nth
          FROM generate_series(2, 7) AS r(rank)
          CROSS JOIN LATERAL (
            SELECT d.seq, ${MARKED}, ${DUE} AS due_at FROM webhook_deliveries_live d
             WHERE d.webhook_id = s.lane AND d.rank = r.rank AND ${DUE} <= ${NOW} AND d.seq <> ALL (s.sending) AND ${NOT_HANDED}
             ORDER BY ${DUE}, d.seq LIMIT CASE WHEN r.rank % 2 = 1 THEN least(s.most, s.retries) ELSE s.most END
          ) d
         WHERE s.verdict = 'go' AND NOT s.ordered
      ) due
       WHERE nth <= s.retries
       ORDER BY nth BETWEEN 1 AND s.share DESC, rank, due_at, seq LIMIT s.most
    ) chosen`

// The head of an ordered lane is the unfinished delivery with the lowest number. Deferred ones join when they are due: see JOIN.
const HEAD = `
  SELECT d.seq, ${MARKED}, ${NOT_HANDED} AND (s.retries > 0 OR d.attempt_count = 0) AS may_go, ${DUE} AS due_at
    FROM webhook_deliveries_live d
   WHERE s.verdict = 'go' AND s.ordered AND d.webhook_id = s.lane AND d.rank = 0 ORDER BY d.seq LIMIT 1`

const NEXT = `
  SELECT min(n.due_at)
    FROM generate_series(1, 7) AS r(rank)
    CROSS JOIN LATERAL (
      SELECT ${DUE} AS due_at FROM webhook_deliveries_live d
       WHERE d.webhook_id = s.lane AND d.rank = r.rank AND ${DUE} > ${NOW} AND (r.rank > 1 OR NOT d.dated) ORDER BY ${DUE} LIMIT 1
    ) n`

/** On the wall clock. */
const NEXT_DATE = `
  SELECT ${DUE} FROM webhook_deliveries_live d WHERE d.webhook_id = s.lane AND d.rank = 1 AND d.dated ORDER BY ${DUE} LIMIT 1`

/**
 * The deliveries found are a list in one row for each lane, until the end. Otherwise the planner, which expects two rows, would compare every
 * lane with every delivery, and search the next due time for each delivery, which was two thirds of the time.
 */
export const FETCH = statement(
  "lanes.fetch",
  `
WITH handed AS MATERIALIZED (SELECT unnest(${HANDED}) AS seq),
locked AS MATERIALIZED (
  SELECT q.*, l.owner, l.app_id, l.token AS held_token, l.sending_token, l.sending AS taken, l.since AS taken_since,
         e.version, e.disabled, e.paused, e.deleted_at IS NOT NULL AS deleted, e.hold_until, e.breaker_until, e.protection, e.gate_epoch, e.gate_token, e.gate_revision, e.ordered,
         CASE WHEN e.ordered
              THEN EXISTS (SELECT FROM webhook_deliveries_live d WHERE d.webhook_id = q.lane AND d.rank > 1)
              ELSE EXISTS (SELECT FROM webhook_deliveries_live d WHERE d.webhook_id = q.lane AND d.rank = 0)
         END OR EXISTS (SELECT FROM webhook_deliveries_live d WHERE d.webhook_id = q.lane AND ${joins(NOW, WALL)}) AS misplaced,
         -- The lock had to wait: the statement sees the new version of the lane and an old snapshot of the deliveries.
         seen.ctid <> l.ctid AS outdated
    FROM ${COLUMNS.unnest("q")}
    CROSS JOIN ${patience(2000)}
    JOIN lanes seen ON ${lookup("seen.id", "q.lane")}
    JOIN lanes l ON ${lookup("l.id", "q.lane")}
    JOIN endpoints e ON ${lookup("e.id", "q.lane")}
   ORDER BY q.lane COLLATE "C" FOR NO KEY UPDATE OF l
),
s AS MATERIALIZED (
  SELECT locked.*, held.sending, held.since,
         CASE WHEN token < held_token THEN 'lost'
              WHEN outdated THEN 'again'
              WHEN sending_token < token AND taken <> '{}' THEN 'leftover'
              WHEN misplaced THEN 'misplaced'
              WHEN deleted THEN 'go'
              WHEN disabled OR paused OR greatest(hold_until, breaker_until) > ${NOW} THEN 'held'
              ELSE 'go' END AS verdict
    FROM locked
    CROSS JOIN LATERAL (
      SELECT coalesce(array_agg(u.seq), '{}') AS sending, coalesce(array_agg(u.since), '{}') AS since
        FROM unnest(taken, taken_since) AS u(seq, since) WHERE u.seq = ANY (in_hand::bigint[])
    ) held
),
picked AS MATERIALIZED (
  SELECT s.ord, s.lane, s.token, s.sending, s.since, s.deleted, s.disabled, s.paused, s.hold_until, s.breaker_until, s.protection, s.gate_epoch, s.gate_token, s.gate_revision, f.seqs, f.marked, s.owner, s.app_id, s.ordered,
         CASE WHEN f.marked <> '{}' THEN 'leftover' ELSE s.verdict END AS verdict,
         -- The head of an ordered lane always starts.
         least(cardinality(f.seqs), CASE WHEN s.ordered THEN 1 ELSE greatest(0, s.starting) END) AS starting,
         CASE
           WHEN s.verdict <> 'go' THEN NULL
           WHEN h.due_at <= ${NOW} THEN CASE WHEN cardinality(f.seqs) > 0 THEN ${NOW} END
           WHEN NOT s.ordered AND cardinality(f.seqs) >= s.most THEN ${NOW}
           ELSE least(h.due_at, (${NEXT}))
         END AS next_due_at,
         CASE WHEN s.verdict = 'go' THEN (${NEXT_DATE}) END AS next_date_at,
         s.verdict = 'go' AND s.version IS DISTINCT FROM s.known_version AS changed
    FROM s
    LEFT JOIN LATERAL (${HEAD}) h ON true
    CROSS JOIN LATERAL (
      SELECT coalesce(array_agg(c.seq ORDER BY c.place), '{}') AS seqs,
             coalesce(array_agg(c.seq) FILTER (WHERE c.marked), '{}')::float8[] AS marked
        FROM (
          (${UNORDERED})
          UNION ALL
          SELECT h.seq, h.marked, 1 WHERE h.due_at <= ${NOW} AND h.seq <> ALL (s.sending) AND h.may_go
        ) c
    ) f
),
taken AS (
  UPDATE lanes l
     SET token = p.token, sending_token = p.token, sending = p.sending || p.seqs,
         since = p.since || array_fill(${NOW}, ARRAY[p.starting]) || array_fill(-${NOW}, ARRAY[cardinality(p.seqs) - p.starting])
    FROM picked p
   WHERE ${lookup("l.id", "p.lane")} AND p.seqs <> '{}' AND p.verdict = 'go'
)
SELECT p.ord, p.verdict, p.marked, p.owner, p.app_id AS lane_app_id, p.ordered AS lane_ordered,
       p.deleted AS lane_deleted, p.disabled AS lane_disabled, p.paused AS lane_paused, p.hold_until AS lane_hold_until, p.breaker_until AS lane_breaker_until,
       p.protection AS lane_protection, p.gate_epoch AS lane_gate_epoch,
       p.gate_token AS lane_gate_token, p.gate_revision AS lane_gate_revision, p.next_due_at, p.next_date_at,
       e.org_id, e.app_id, e.uid, e.url, e.description, e.event_types, e.channels, e.headers, e.metadata, e.retry_name,
       coalesce(e.retry_policy, named.policy) AS retry_policy, e.ordered, e.concurrency, e.rate_limit, e.disabled, e.disabled_at, e.disabled_reason, e.paused, e.paused_at, e.hold_until, e.breaker_until,
       e.protection, e.gate_epoch, e.resumed_at, e.secrets, e.version, e.api_version, e.created_at, e.updated_at,
       -- A subquery for changed endpoints only: a join might read every application for each fetch.
       (SELECT o.rate_limit FROM applications o WHERE o.id = e.app_id) AS app_rate_limit,
       d.seq, d.id, d.message_id, d.session_id, d.event_type, m.content_type, m.traceparent, m.inbound, octet_length(m.payload) AS payload_length,
       CASE WHEN sum(octet_length(m.payload)) OVER (ORDER BY p.ord, f.place) <= ${MOST_BYTES} THEN m.payload END AS payload,
       d.priority, d.manual, d.error_detail, d.status, d.attempt_count, d.max_attempts, d.received_at, d.age_from, d.next_retry_at,
       d.last_attempted_at, d.stalls
  FROM picked p
  LEFT JOIN LATERAL unnest(p.seqs) WITH ORDINALITY AS f(seq, place) ON p.verdict = 'go'
  LEFT JOIN webhook_deliveries_live d ON ${lookup("d.seq", "f.seq")}
  LEFT JOIN messages m ON ${lookup("m.id", "d.message_id")}
  LEFT JOIN endpoints e ON ${lookup("e.id", "p.lane")} AND p.changed
  LEFT JOIN policies named ON ${lookup("named.org_id", "e.org_id")} AND ${lookup("named.name", "e.retry_name")}
 ORDER BY p.ord, f.place`,
)

/** Deliveries that the sessions have in hand are skipped, and so are `more`. */
export function fetchValues(
  lanes: readonly AskedLane[],
  { now, wall }: Moment,
  more: readonly number[] = [],
): unknown[] {
  const inHand = lanes.flatMap(({ session }) => [...session.handed, ...session.fetched])
  return [...COLUMNS.values(lanes), now, wall, `{${[...inHand, ...more].join()}}`]
}

/** Payloads beyond MOST_BYTES, read without the lock. */
export const PAYLOADS = statement("lanes.payloads", "SELECT id, payload FROM messages WHERE id = ANY ($1)")

/** Corrects deliveries that were accepted while their endpoint became ordered or unordered. */
export const LINE_UP = statement(
  "lanes.line-up",
  `
UPDATE webhook_deliveries_live d SET ordered = e.ordered
  FROM endpoints e
 WHERE e.id = ANY ($1) AND d.webhook_id = e.id AND d.ordered <> e.ordered AND NOT d.dated`,
)

/**
 * Moves deferred deliveries that are due ($2 on the steady clock, $3 on the wall clock) into the ordered line or the queues, so that the head
 * of the line is one probe away. The age of a dated delivery is converted to the steady clock.
 */
export const JOIN = statement(
  "lanes.join",
  `
UPDATE webhook_deliveries_live j
   SET ordered = e.ordered, deferred = false, dated = false, next_retry_at = NULL,
       age_from = j.age_from + CASE WHEN j.dated THEN $2::bigint - $3::bigint ELSE 0 END
  FROM endpoints e
 WHERE e.id = ANY ($1) AND j.webhook_id = e.id AND j.seq = ANY (ARRAY(
   SELECT d.seq FROM webhook_deliveries_live d
    WHERE d.webhook_id = e.id AND ${joins("$2::bigint", "$3::bigint")}
    ORDER BY ${DUE} LIMIT 1000))`,
)

/** By the new count; arrays begin at 1. */
const STALL_WAIT = `('{${STALL_WAITS_MS.join()}}'::bigint[])[d.stalls + 2]`

/**
 * Deliveries that an earlier claim left in its lane's row or marked ($5) become attempts of unknown outcome. A delivery that was not started
 * may have been sent since: it is logged, but does not count as a stall. A delivery that was in hand at several crashes waits. A mark of the
 * session's own token comes from a lost reply and is only removed.
 */
export const TAKE_OVER = statement(
  "lanes.take-over",
  `
WITH l AS MATERIALIZED (
  SELECT l.id, l.sending, l.since, l.sending_token, q.token
    FROM unnest($1::text[], $2::bigint[]) AS q(lane, token)
    CROSS JOIN ${patience(2000)}
    JOIN lanes l ON ${lookup("l.id", "q.lane")} AND l.token <= q.token
   ORDER BY q.lane COLLATE "C" FOR NO KEY UPDATE OF l
),
-- Rows that another transaction has locked are left for later.
marked AS MATERIALIZED (
  SELECT d.seq, sign(d.handed_token)::int * d.received_at AS since,
         -- An older program leaves the marks on rows that it retries.
         abs(d.handed_token) = l.token OR d.attempt_count > 0 AS is_idle
    FROM webhook_deliveries_live d JOIN l ON l.id = d.webhook_id
   WHERE d.seq = ANY ($5::bigint[]) AND d.handed_token IS NOT NULL
   FOR NO KEY UPDATE OF d SKIP LOCKED
),
left_behind AS (
  SELECT u.seq, u.since FROM l CROSS JOIN LATERAL unnest(l.sending, l.since) AS u(seq, since) WHERE l.sending_token < l.token
  UNION ALL
  SELECT seq, since FROM marked WHERE NOT is_idle
),
unmarked AS (
  UPDATE webhook_deliveries_live d SET handed_token = NULL FROM marked m WHERE m.is_idle AND ${lookup("d.seq", "m.seq")}
),
counted AS (
  UPDATE webhook_deliveries_live d
     SET stalls = d.stalls + (u.since > 0)::int, handed_token = NULL,
         next_retry_at = CASE WHEN u.since > 0 AND ${STALL_WAIT} > 0 THEN $4::bigint + ${STALL_WAIT} ELSE d.next_retry_at END
    FROM left_behind u WHERE ${lookup("d.seq", "u.seq")}
  RETURNING d.id, d.webhook_id, d.message_id, d.attempt_count, d.manual, d.target_url, abs(u.since) AS started_at
),
logged AS (
  INSERT INTO attempts (
    id, delivery_id, webhook_id, message_id, attempt_number, manual, status, url, response_truncated, error, started_at, duration_ms
  )
  SELECT posthorn_id('atmpt', $3), id, webhook_id, message_id, attempt_count + 1, manual, 'unknown', target_url, false,
         'the worker stopped before it wrote down how this attempt ended', started_at, 0
    FROM counted
),
let_go AS (
  UPDATE lanes SET token = l.token, sending_token = l.token, sending = '{}', since = '{}' FROM l
   WHERE ${lookup("lanes.id", "l.id")} AND l.sending_token < l.token
)
SELECT seq::float8 FROM marked`,
)
