/**
 * The statement that accepts messages whose endpoints this process knows: it asks whether they are still the same, and writes. Nothing is written if
 * they are not. What goes to an open lane is marked as in its owner's hands, if that worker still lives: its row is locked, so that whoever
 * takes its lanes over finds all that was handed to it before.
 */
import type { NewMessage } from "../store.ts"
import { AS_IT_CAME, type Numbered } from "./accept.ts"
import type { Offer } from "./hands.ts"
import type { Route, Routes } from "./routes.ts"
import { Columns, Packed, patience, type Statement } from "./statement.ts"

export interface Outgoing {
  readonly id: string
  readonly route: Route
  readonly offer: Offer | null
}

/** A message as it will be written. */
export interface Planned {
  readonly message: NewMessage
  readonly routes: Routes
  readonly deliveries: readonly Outgoing[]
}

interface NumberedDelivery extends Outgoing {
  readonly message: number
}

const MESSAGES = new Columns<Planned & Numbered>({
  ...AS_IT_CAME,
  app_id: ["text", ({ routes }) => routes.recipients.appId],
  matched: ["int", ({ deliveries }) => deliveries.length],
  purge_at: [
    "bigint",
    ({ message, deliveries }) => (deliveries.length === 0 ? message.purgeUnmatchedAt : null),
  ],
})
const DELIVERIES = new Columns<NumberedDelivery>({
  id: ["text", ({ id }) => id],
  webhook_id: ["text", ({ route }) => route.id],
  target_url: ["text", ({ route }) => route.url],
  ordered: ["bool", ({ route }) => route.ordered],
  message: ["int", ({ message }) => message],
  hand: ["bigint", ({ offer }) => offer && (offer.starts ? offer.token : -offer.token)],
  owner: ["bigint", ({ offer }) => offer?.owner ?? null],
})
const APPLICATIONS = new Columns<Planned>({
  org_id: ["text", ({ message }) => message.orgId],
  app: ["text", ({ message }) => message.app],
  app_id: ["text", ({ routes }) => routes.recipients.appId],
  version: ["bigint", ({ routes }) => routes.version],
})

const FIRST_DELIVERY = MESSAGES.next()
const FIRST_APPLICATION = DELIVERIES.next(FIRST_DELIVERY)
const OWNERS = APPLICATIONS.next(FIRST_APPLICATION)
const PAYLOADS = OWNERS + 1

export const ACCEPT_KNOWN: Statement = {
  name: "messages.accept-known",
  text: `
WITH known AS MATERIALIZED (
  SELECT k.ord, a.id IS NOT NULL AS stands
    FROM ${APPLICATIONS.unnest("k", FIRST_APPLICATION)}
    LEFT JOIN LATERAL (
      SELECT a.id FROM applications a
       WHERE a.id = k.app_id AND a.org_id = k.org_id AND a.deleted_at IS NULL AND k.app IN (a.id, a.uid)
         AND coalesce((SELECT r.version FROM application_routes r WHERE r.app_id = a.id), 0) = k.version
      OFFSET 0
    ) a ON true
),
alive AS MATERIALIZED (
  SELECT id FROM ${patience(500)} CROSS JOIN workers
   WHERE id = ANY ($${OWNERS}::bigint[]) AND lease_until > '-infinity' FOR SHARE OF workers
),
i AS MATERIALIZED (
  SELECT i.*, CASE WHEN dated THEN deliver_at ELSE wake_at END AS due_at
    FROM ${MESSAGES.unnest("i")}
   WHERE (SELECT bool_and(stands) FROM known)
),
written AS (
  INSERT INTO messages (
    id, app_id, event_type, payload, content_type, channels, tags, session_id, metadata, priority, max_attempts,
    received_at, deliver_at, matched, purge_at, payload_until
  )
  SELECT id, app_id, event_type, substr($${PAYLOADS}::bytea, payload_at, payload_length), content_type, channels,
         tags, session_id, metadata, priority, max_attempts, received_at, deliver_at, matched, purge_at, payload_until
    FROM i ORDER BY ord
),
d AS MATERIALIZED (
  SELECT d.*, i.id AS message_id, i.app_id, i.session_id, i.event_type, i.max_attempts, i.priority, i.deliver_at, i.dated, i.wake_at, i.due_at, i.received_at,
         CASE WHEN d.owner IN (SELECT id FROM alive) THEN d.hand END AS handed_token
    FROM ${DELIVERIES.unnest("d", FIRST_DELIVERY)} JOIN i ON i.ord = d.message
),
deliveries AS (
  INSERT INTO webhook_deliveries_live (
    id, app_id, webhook_id, message_id, session_id, event_type, target_url, max_attempts, priority, ordered, deferred, dated,
    next_retry_at, received_at, age_from, handed_token
  )
  SELECT id, app_id, webhook_id, message_id, session_id, event_type, target_url, max_attempts, priority, ordered OR dated,
         deliver_at IS NOT NULL, dated, CASE WHEN deliver_at IS NOT NULL THEN due_at END, received_at, due_at, handed_token
    FROM d ORDER BY ord
  RETURNING seq
),
wakes AS (
  INSERT INTO lane_wakes (lane_id, due_at)
  SELECT webhook_id, min(wake_at) FROM d WHERE handed_token IS NULL GROUP BY webhook_id
)
SELECT ARRAY(SELECT ord FROM known WHERE NOT stands)::int[] AS outdated,
       ARRAY(SELECT id FROM alive)::float8[] AS alive,
       ARRAY(SELECT seq FROM deliveries ORDER BY seq)::float8[] AS seqs`,
}

/** One of each application, as the message named it. */
export function applicationsOf(planned: readonly Planned[]): Planned[] {
  return [...new Map(planned.map((one) => [one.routes, one])).values()]
}

export function acceptKnownValues(planned: readonly Planned[], applications: readonly Planned[]): unknown[] {
  const payloads = new Packed(planned.map(({ message }) => message.payload))
  const deliveries = planned.flatMap(({ deliveries }, i) =>
    deliveries.map((delivery) => ({ ...delivery, message: i + 1 })),
  )
  const owners = new Set(deliveries.flatMap(({ offer }) => (offer === null ? [] : [offer.owner])))
  return [
    ...MESSAGES.values(planned.map((one, i) => ({ ...one, payloadAt: payloads.at[i]! }))),
    ...DELIVERIES.values(deliveries),
    ...APPLICATIONS.values(applications),
    [...owners],
    payloads.bytes,
  ]
}
