/** Views with the names and shapes of seed 004, so that its debug queries run as typed; and readable times. */

/** `isSent`: a worker has the delivery in hand; `sentAt`: since when. CREATE OR REPLACE VIEW can add columns only at the end. */
const ofDeliveries = (create: string, isSent: string, sentAt: string, moreOfJobs = "") => `
${create} VIEW jobs AS
SELECT d.id,
       'webhook_delivery' AS type,
       json_build_object('log_id', d.id, 'message_id', d.message_id, 'subscriber_id', d.webhook_id)::text AS payload_json,
       d.attempt_count AS attempts,
       coalesce(
         d.max_attempts,
         (coalesce(e.retry_policy, p.policy)::json ->> 'maxAttempts')::int,
         CASE e.retry_name WHEN 'standard' THEN 10 WHEN 'gateway' THEN 5 WHEN 'enterprise' THEN 6 WHEN 'jobs' THEN 6 END
       ) AS max_attempts,
       CASE
         WHEN d.status = 'delivered' THEN 'completed'
         WHEN d.status = 'dead' THEN 'failed'
         WHEN ${isSent} THEN 'running'
         ELSE 'pending'
       END AS status,
       posthorn_time(coalesce(d.next_retry_at, d.last_attempted_at, d.received_at)) AS available_at,
       CASE WHEN ${isSent} THEN l.owner END AS locked_by,
       posthorn_time(${sentAt}) AS locked_at,
       d.error_detail AS error_text,
       posthorn_time(d.received_at) AS created_at,
       posthorn_time(coalesce(d.last_attempted_at, d.received_at)) AS updated_at${moreOfJobs}
  FROM webhook_deliveries d
  LEFT JOIN endpoints e ON e.id = d.webhook_id
  LEFT JOIN policies p ON p.org_id = e.org_id AND p.name = e.retry_name
  LEFT JOIN lanes l ON l.id = d.webhook_id;

${create} VIEW webhook_deliveries_readable AS
SELECT d.id, d.webhook_id, d.message_id, d.event_type, d.status, d.dead_reason, d.attempt_count, d.error_detail, d.target_url,
       CASE
         WHEN d.status NOT IN ('pending', 'failed') THEN NULL
         WHEN ${isSent} THEN 'sending'
         WHEN e.deleted_at IS NOT NULL THEN 'endpoint deleted'
         WHEN e.disabled THEN 'endpoint disabled'
         WHEN e.paused THEN 'endpoint paused'
         WHEN e.hold_until > extract(epoch FROM now()) * 1000 THEN 'Retry-After'
         WHEN d.next_retry_at > extract(epoch FROM now()) * 1000 THEN 'until next_retry_at'
         ELSE 'due'
       END AS waits_for,
       posthorn_time(d.next_retry_at) AS next_retry_at,
       posthorn_time(d.last_attempted_at) AS last_attempted_at,
       posthorn_time(d.received_at) AS received_at,
       posthorn_time(d.delivered_at) AS delivered_at
  FROM webhook_deliveries d
  LEFT JOIN endpoints e ON e.id = d.webhook_id
  LEFT JOIN lanes l ON l.id = d.webhook_id;
`

const FETCHED = "d.seq = ANY (l.sending)"
const FETCHED_AT = "abs(l.since[array_position(l.sending, d.seq)])"
const HANDED = "d.status IN ('pending', 'failed') AND abs(d.handed_token) = l.token"

export const VIEWS = `
CREATE FUNCTION posthorn_time(ms bigint) RETURNS timestamptz LANGUAGE sql IMMUTABLE AS $$ SELECT to_timestamp(ms / 1000.0) $$;

CREATE VIEW webhook_logs AS
SELECT d.id,
       d.webhook_id AS subscriber_id,
       d.event_type AS event,
       d.attempt_count AS attempts,
       a.response_status AS response_code,
       encode(a.response_body, 'escape') AS response_body,
       posthorn_time(d.received_at) AS created_at
  FROM webhook_deliveries d
  LEFT JOIN LATERAL (SELECT * FROM attempts WHERE delivery_id = d.id ORDER BY seq DESC LIMIT 1) a ON true;
${ofDeliveries("CREATE", FETCHED, FETCHED_AT)}`

const SENT_OR_HANDED = `(${FETCHED} OR ${HANDED})`
const SENT_OR_HANDED_AT = `coalesce(${FETCHED_AT}, CASE WHEN ${HANDED} THEN d.received_at END)`

/** With handed deliveries. */
export const VIEWS_OF_HANDED = ofDeliveries("CREATE OR REPLACE", SENT_OR_HANDED, SENT_OR_HANDED_AT)

/** A subquery and not a join: queries without the column do not pay for it. */
const RESULT = `,
       CASE WHEN d.status IN ('delivered', 'dead') THEN (
         SELECT json_build_object(
                  'status_code', a.response_status, 'body', encode(a.response_body, 'escape'), 'error', a.error, 'duration_ms', a.duration_ms
                )::text
           FROM attempts a WHERE a.delivery_id = d.id ORDER BY a.seq DESC LIMIT 1
       ) END AS result_json`

export const VIEWS_WITH_RESULT = ofDeliveries("CREATE OR REPLACE", SENT_OR_HANDED, SENT_OR_HANDED_AT, RESULT)

/** `holds`: when the endpoint's gate opens; `because`: the reasons that only newer schemas have. */
const viewOfWaits = (holds: string, because: string) => `
CREATE OR REPLACE VIEW webhook_deliveries_readable AS
SELECT d.id, d.webhook_id, d.message_id, d.event_type, d.status, d.dead_reason, d.attempt_count, d.error_detail, d.target_url,
       CASE
         WHEN d.status NOT IN ('pending', 'failed') THEN NULL
         WHEN is_sending THEN 'sending'
         WHEN e.deleted_at IS NOT NULL THEN 'deleted'
         WHEN e.disabled THEN 'disabled'
         WHEN e.paused THEN 'paused'
         WHEN w.start_at > w.now_ms THEN CASE
           WHEN w.start_at = d.next_retry_at THEN CASE WHEN d.deferred AND d.attempt_count = 0 THEN 'scheduled' ELSE 'retry' END
           WHEN w.start_at = h.due_at THEN 'behind'${because}
           ELSE 'held'
         END
         WHEN h.seq IS NOT NULL THEN 'behind'
         ELSE 'due'
       END AS waits_for,
       posthorn_time(d.next_retry_at) AS next_retry_at,
       posthorn_time(d.last_attempted_at) AS last_attempted_at,
       posthorn_time(d.received_at) AS received_at,
       posthorn_time(d.delivered_at) AS delivered_at,
       CASE
         WHEN d.status IN ('pending', 'failed') AND e.deleted_at IS NULL AND NOT (e.disabled OR e.paused OR is_sending)
         THEN posthorn_time(greatest(w.start_at, w.now_ms))
       END AS next_attempt
  FROM webhook_deliveries d
  LEFT JOIN endpoints e ON e.id = d.webhook_id
  LEFT JOIN lanes l ON l.id = d.webhook_id
  LEFT JOIN LATERAL (
    SELECT f.seq, coalesce(f.next_retry_at, 0) AS due_at
      FROM (
        SELECT seq, next_retry_at FROM webhook_deliveries_live f WHERE f.webhook_id = d.webhook_id AND f.rank = 0 ORDER BY seq LIMIT 1
      ) f
     WHERE d.status IN ('pending', 'failed') AND d.rank = 0 AND f.seq < d.seq
  ) h ON true
  CROSS JOIN LATERAL (
    SELECT (extract(epoch FROM now()) * 1000)::bigint AS now_ms,
           greatest(coalesce(d.next_retry_at, 0), ${holds}, coalesce(h.due_at, 0)) AS start_at,
           coalesce(l.since[array_position(l.sending, d.seq)] > 0, false) OR coalesce(d.handed_token = l.token, false) AS is_sending
  ) w;
`

/** The reasons of `core/wait.ts`, and the earliest start of the next attempt; SQL knows only the wall clock. */
export const VIEW_OF_WAITS = viewOfWaits("coalesce(e.hold_until, 0)", "")
export const VIEW_OF_WAITS_WITH_BREAKER = viewOfWaits(
  "coalesce(e.hold_until, 0), coalesce(e.breaker_until, 0)",
  `
           WHEN w.start_at = e.breaker_until THEN 'breaker'`,
)
