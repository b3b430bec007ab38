/**
 * The statement that accepts messages: it finds applications, idempotency keys and subscribed endpoints, and writes messages, deliveries and
 * wakes. One statement has one snapshot of the endpoints, so that no endpoint created before is missed, in any process.
 *
 * Its parameters include the process's open lanes. A delivery for an open lane is marked with the lane's token instead of waking it, if the
 * session knows the endpoint's newest version and its worker is alive. The worker's row is locked, so that a worker that takes over its lanes
 * finds all marks.
 */

import { NEW_DELIVERY, NEW_MESSAGE } from "../columns.ts"
import { generationAt, KEPT_GENERATIONS } from "../idempotency.ts"
import { PLACE_BYTES } from "../open-lane.ts"
import { priorityNumber, toJson } from "../rows.ts"
import { statement } from "../statements.ts"
import type { NewMessage } from "../store.ts"
import type { Offer } from "./lane-sessions.ts"
import { Columns, lookup, Packed, patience, unnamed } from "./statement.ts"

/** `again`: another open transaction has written the key; a retry finds its result. */
export type AcceptResult =
  | "new"
  | "again"
  | "duplicate"
  | "no_application"
  | "key_conflict"
  | "event_id_conflict"
  | "priority_refused"

/** A message, and the position of its payload in the packed ones. */
interface Numbered {
  readonly message: NewMessage
  readonly payloadAt: number
}

const COLUMNS = new Columns<Numbered>({
  id: ["text", ({ message }) => message.id],
  event_type: ["text", ({ message }) => message.eventType],
  payload_at: ["int", ({ payloadAt }) => payloadAt],
  payload_length: ["int", ({ message }) => message.payload.length],
  content_type: ["text", ({ message }) => message.contentType],
  channels: ["text", ({ message }) => toJson(message.channels)],
  tags: ["text", ({ message }) => toJson(message.tags)],
  session_id: ["text", ({ message }) => message.sessionId],
  metadata: ["text", ({ message }) => toJson(message.metadata)],
  priority: ["smallint", ({ message }) => priorityNumber(message.priority)],
  max_attempts: ["int", ({ message }) => message.maxAttempts],
  received_at: ["bigint", ({ message }) => message.receivedAt],
  deliver_at: ["bigint", ({ message }) => message.deliverAt],
  dated: ["bool", ({ message }) => message.dated],
  wake_at: ["bigint", ({ message }) => message.wakeAt],
  payload_until: ["bigint", ({ message }) => message.payloadUntil],
  org_id: ["text", ({ message }) => message.orgId],
  app: ["text", ({ message }) => message.app],
  recipient: ["text", ({ message }) => message.to],
  event_id: ["text", ({ message }) => message.eventId],
  key: ["bytea", ({ message }) => message.idempotency?.key ?? null],
  digest: ["bytea", ({ message }) => message.idempotency?.digest ?? null],
  purge_at: ["bigint", ({ message }) => message.purgeUnmatchedAt],
  traceparent: ["text", ({ message }) => message.traceparent],
  inbound: ["text", ({ message }) => message.inbound],
})
const PAYLOADS = COLUMNS.next()
const GENERATION = PAYLOADS + 1
const OWNER = PAYLOADS + 2
/** By endpoint: token, version, room, number that starts immediately. One JSON value, since the planner would join arrays row by row. */
const OFFERS = PAYLOADS + 3

const handed = (column: string, type = "") =>
  `CASE WHEN j.ord = 1 THEN ARRAY(SELECT ${column} FROM deliveries WHERE handed_token IS NOT NULL ORDER BY seq)${type} END AS handed_${column}`

const text = (wait: string) => `
WITH alive AS MATERIALIZED (
  SELECT FROM ${wait} workers WHERE id = $${OWNER}::bigint AND lease_until > '-infinity' FOR SHARE OF workers
),
i AS MATERIALIZED (
  SELECT i.*,
         CASE WHEN dated THEN deliver_at ELSE wake_at END AS due_at,
         coalesce(
           (SELECT a.id FROM applications a WHERE a.id = i.app AND a.org_id = i.org_id AND a.deleted_at IS NULL),
           (SELECT a.id FROM applications a WHERE a.uid = i.app AND a.org_id = i.org_id AND a.deleted_at IS NULL)
         ) AS app_id
    FROM ${wait} ${COLUMNS.unnest("i")}
),
used AS MATERIALIZED (
  SELECT i.ord, k.message_id, k.digest = i.digest AS same
    FROM i CROSS JOIN LATERAL (
      SELECT message_id, digest FROM idempotency
       WHERE app_id = i.app_id AND key = i.key AND generation > $${GENERATION} - ${KEPT_GENERATIONS}
       -- When a generation ends, two processes may each have written the key.
       ORDER BY generation LIMIT 1
    ) k
),
recipients AS MATERIALIZED (
  -- OFFSET 0 keeps the planner from a hash join over every application's endpoints.
  SELECT i.ord, e.*
    FROM i CROSS JOIN LATERAL (
      SELECT endpoint_id FROM endpoint_subscriptions WHERE app_id = i.app_id AND event_type = i.event_type AND i.recipient IS NULL
       UNION ALL
      SELECT endpoint_id FROM endpoint_subscriptions WHERE app_id = i.app_id AND event_type = '' AND i.recipient IS NULL
       UNION ALL
      SELECT i.recipient WHERE i.recipient IS NOT NULL
      OFFSET 0
    ) wanted CROSS JOIN LATERAL (
      SELECT e.id, e.url, e.ordered,
             CASE WHEN NOT e.paused AND ($${OFFERS}::jsonb -> e.id ->> 1)::int = e.version THEN $${OFFERS}::jsonb -> e.id END AS offer
        FROM endpoints e
       -- IS TRUE keeps the planner from the application's index, which seems as good while there is one endpoint.
       WHERE e.id = wanted.endpoint_id AND (e.app_id = i.app_id) IS TRUE AND e.deleted_at IS NULL AND NOT e.disabled
         AND (i.recipient IS NOT NULL OR e.channels IS NULL OR i.channels::jsonb ?| e.channels)
      OFFSET 0
    ) e
),
-- Aggregated once, like the keys and event ids below: looked up for each message, the cost of a batch was quadratic.
matches AS MATERIALIZED (
  SELECT ord, count(*) AS matched, array_agg(id ORDER BY id) AS lanes, min(id) FILTER (WHERE ordered) AS ordered_endpoint
    FROM recipients GROUP BY ord
),
judged AS MATERIALIZED (
  SELECT i.*, m.matched, m.lanes, m.ordered_endpoint,
         used.message_id AS used_by,
         CASE
           WHEN i.app_id IS NULL THEN 'no_application'
           WHEN NOT used.same THEN 'key_conflict'
           WHEN used.same THEN 'duplicate'
           WHEN i.priority <> 1 AND m.ordered_endpoint IS NOT NULL THEN 'priority_refused'
           WHEN i.event_id IS NULL THEN 'new'
           WHEN EXISTS (SELECT FROM messages e WHERE e.app_id = i.app_id AND e.event_id = i.event_id)
             THEN 'event_id_conflict'
           WHEN i.ord NOT IN (SELECT min(ord) FROM i WHERE event_id IS NOT NULL GROUP BY app_id, event_id)
             THEN 'again'
           ELSE 'new'
         END AS result
    FROM i LEFT JOIN used USING (ord) LEFT JOIN matches m USING (ord)
),
-- Ordered by key, so that two batches with the same keys do not deadlock.
keys AS (
  INSERT INTO idempotency (generation, app_id, key, message_id, digest)
  SELECT $${GENERATION}, app_id, key, id, digest FROM judged
   WHERE result = 'new' AND key IS NOT NULL ORDER BY app_id, key
  ON CONFLICT DO NOTHING
  RETURNING message_id
),
fresh AS MATERIALIZED (
  SELECT j.* FROM judged j WHERE j.result = 'new' AND (j.key IS NULL OR j.id IN (SELECT message_id FROM keys))
),
written AS (
  INSERT INTO messages (${NEW_MESSAGE})
  SELECT id, app_id, event_type, substr($${PAYLOADS}::bytea, payload_at, payload_length), content_type, event_id, channels,
         tags, session_id, metadata, priority, max_attempts, received_at, deliver_at, coalesce(matched, 0),
         CASE WHEN matched IS NULL THEN purge_at END, payload_until, traceparent, inbound
    FROM fresh ORDER BY ord
),
placed AS MATERIALIZED (
  SELECT f.*, r.id AS webhook_id, r.url, r.ordered,
         CASE WHEN f.deliver_at IS NULL AND EXISTS (SELECT FROM alive)
                   AND (r.offer ->> 2)::int > coalesce(sum(1 + f.payload_length / ${PLACE_BYTES}) FILTER (WHERE f.deliver_at IS NULL) OVER before, 0)
              THEN CASE WHEN count(*) FILTER (WHERE f.deliver_at IS NULL) OVER before < (r.offer ->> 3)::int
                        THEN (r.offer ->> 0)::bigint ELSE -(r.offer ->> 0)::bigint END
         END AS handed_token
    FROM fresh f JOIN recipients r USING (ord)
  WINDOW before AS (PARTITION BY r.id ORDER BY f.ord ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
),
deliveries AS (
  INSERT INTO webhook_deliveries_live (${NEW_DELIVERY}, handed_token)
  SELECT posthorn_id('dlv', id), app_id, webhook_id, id, session_id, event_type, url, max_attempts, priority, ordered OR dated,
         deliver_at IS NOT NULL, dated, CASE WHEN deliver_at IS NOT NULL THEN due_at END, received_at, due_at, handed_token
    FROM placed ORDER BY ord, webhook_id
  RETURNING seq, id, webhook_id, message_id, handed_token
),
wakes AS (
  INSERT INTO lane_wakes (lane_id, due_at)
  SELECT webhook_id, min(wake_at) FROM placed WHERE handed_token IS NULL GROUP BY webhook_id
)
SELECT CASE WHEN j.result = 'new' AND f.ord IS NULL THEN 'again' ELSE j.result END AS result,
       j.app_id, j.used_by, prior.received_at AS prior_received_at, prior.deliver_at AS prior_deliver_at, prior.matched AS prior_matched,
       j.ordered_endpoint, f.lanes,
       -- All handed deliveries are in the row of the first message.
       ${handed("seq", "::float8[]")}, ${handed("id")}, ${handed("webhook_id")}, ${handed("message_id")}
  FROM judged j
  LEFT JOIN fresh f USING (ord)
  LEFT JOIN messages prior ON ${lookup("prior.id", "j.used_by")}
 ORDER BY j.ord`

export const ACCEPT = statement("messages.accept", text(`${patience(500)} CROSS JOIN`))

/** For the user's own transaction: without a lock timeout of ours, and not prepared on the user's connection. */
export const ACCEPT_IN_TRANSACTION = unnamed(text(""))

export interface Offers {
  /** The worker of this process. */
  readonly owner: number
  readonly lanes: readonly Offer[]
}

export const NO_OFFERS: Offers = { owner: 0, lanes: [] }

export function acceptValues(
  messages: readonly NewMessage[],
  { owner, lanes }: Offers = NO_OFFERS,
): unknown[] {
  const payloads = new Packed(messages.map(({ payload }) => payload))
  const numbered = messages.map((message, i) => ({ message, payloadAt: payloads.at[i]! }))
  const offers = lanes.map(({ session, version, room, starting }) => [
    session.claim.endpointId,
    [session.claim.token, version, room, starting],
  ])
  return [
    ...COLUMNS.values(numbered),
    payloads.bytes,
    generationOf(messages),
    // 0 is no worker.
    lanes.length === 0 ? 0 : owner,
    JSON.stringify(Object.fromEntries(offers)),
  ]
}

export function generationOf(messages: readonly NewMessage[]): number {
  return generationAt(Math.max(...messages.map(({ receivedAt }) => receivedAt)))
}
