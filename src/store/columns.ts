/** Columns that both stores write and read. */
import { writeProtection } from "../core/protection.ts"
import { toJson } from "./rows.ts"
import type { Endpoint } from "./store.ts"

export const NEW_MESSAGE =
  "id, app_id, event_type, payload, content_type, event_id, channels, tags, session_id, metadata, priority, max_attempts, received_at, deliver_at, matched, purge_at, payload_until, traceparent, inbound"
export const NEW_DELIVERY =
  "id, app_id, webhook_id, message_id, session_id, event_type, target_url, max_attempts, priority, ordered, deferred, dated, next_retry_at, received_at, age_from"
export const NEW_ATTEMPT =
  "id, delivery_id, webhook_id, message_id, attempt_number, manual, status, url, response_status, response_body, response_truncated, error, started_at, duration_ms, timing"

/** Of the table `m`, without the payload, which is the largest part. */
export const MESSAGE =
  "m.seq, m.id, m.app_id, m.event_type, m.content_type, m.event_id, m.channels, m.tags, m.session_id, m.metadata, m.priority, m.max_attempts, m.received_at, m.deliver_at, m.matched, m.expunged, m.traceparent, m.inbound"

/** A check for times that an operator may type: one too large for a number would keep every lane from being read. */
export const isTime = (column: string) => `${column} BETWEEN 0 AND 8640000000000000`

export const ENDPOINT =
  "id, app_id, org_id, created_at, uid, url, description, event_types, channels, headers, metadata, retry_name, retry_policy, ordered, concurrency, rate_limit, disabled, disabled_at, disabled_reason, paused, paused_at, hold_until, breaker_until, protection, gate_epoch, resumed_at, secrets, version, updated_at, api_version"

/** In the order of `ENDPOINT`. SQLite stores the lists as JSON, PostgreSQL as arrays. */
export function endpointValues(endpoint: Endpoint) {
  return [
    endpoint.id,
    endpoint.appId,
    endpoint.orgId,
    endpoint.createdAt,
    endpoint.uid,
    endpoint.url,
    endpoint.description,
    endpoint.eventTypes,
    endpoint.channels,
    toJson(endpoint.headers),
    toJson(endpoint.metadata),
    endpoint.retryName,
    // The join fills this in for a policy by name; only a policy of the endpoint's own is stored with it.
    endpoint.retryName === null ? endpoint.retryPolicy : null,
    endpoint.ordered,
    endpoint.concurrency,
    endpoint.rateLimit,
    endpoint.disabled,
    endpoint.disabledAt,
    endpoint.disabledReason,
    endpoint.paused,
    endpoint.pausedAt,
    endpoint.holdUntil,
    endpoint.protection.until,
    writeProtection(endpoint.protection),
    endpoint.gateEpoch,
    endpoint.resumedAt,
    endpoint.secrets,
    endpoint.version,
    endpoint.updatedAt,
    endpoint.apiVersion,
  ]
}
