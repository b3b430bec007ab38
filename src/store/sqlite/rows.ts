/** From SQLite's rows to the store's plain data. */
import type { SQLInputValue, SQLOutputValue } from "node:sqlite"
import type { DeadReason } from "../../core/policy.ts"
import type { DeliveryStatus, LiveStatus } from "../../core/settle.ts"
import type {
  Application,
  Attempt,
  AttemptStatus,
  ClaimedDelivery,
  Delivery,
  Endpoint,
  Message,
  Priority,
  Task,
  TaskAction,
  TaskStatus,
} from "../store.ts"

export type SqlRow = Record<string, SQLOutputValue>

const PRIORITIES: readonly Priority[] = ["high", "normal", "low"]

export function priorityNumber(priority: Priority): number {
  return PRIORITIES.indexOf(priority)
}

const text = (value: SQLOutputValue | undefined) => value as string
const int = (value: SQLOutputValue | undefined) => value as number
const textOrNull = (value: SQLOutputValue | undefined) => value as string | null
const intOrNull = (value: SQLOutputValue | undefined) => value as number | null
const json = (value: SQLOutputValue | undefined) => JSON.parse(value as string)
const jsonOrNull = (value: SQLOutputValue | undefined) => (value === null ? null : json(value))

export function toJson(value: unknown): SQLInputValue {
  return value === null ? null : JSON.stringify(value)
}

export function toApplication(row: SqlRow): Application {
  return {
    id: text(row.id),
    uid: textOrNull(row.uid),
    name: text(row.name),
    metadata: json(row.metadata),
    createdAt: int(row.created_at),
    updatedAt: int(row.updated_at),
  }
}

export function toEndpoint(row: SqlRow): Endpoint {
  return {
    id: text(row.id),
    appId: text(row.app_id),
    uid: textOrNull(row.uid),
    url: text(row.url),
    description: text(row.description),
    eventTypes: jsonOrNull(row.event_types),
    channels: jsonOrNull(row.channels),
    headers: json(row.headers),
    metadata: json(row.metadata),
    retryName: textOrNull(row.retry_name),
    retryPolicy: textOrNull(row.retry_policy),
    ordered: row.ordered === 1,
    concurrency: intOrNull(row.concurrency),
    rateLimit: intOrNull(row.rate_limit),
    disabled: row.disabled === 1,
    paused: row.paused === 1,
    holdUntil: intOrNull(row.hold_until),
    secrets: row.secrets as Uint8Array,
    version: int(row.version),
    createdAt: int(row.created_at),
    updatedAt: int(row.updated_at),
  }
}

export function toMessage(row: SqlRow): Message {
  return {
    seq: int(row.seq),
    id: text(row.id),
    appId: text(row.app_id),
    eventType: text(row.event_type),
    payload: row.payload as Uint8Array,
    contentType: text(row.content_type),
    eventId: textOrNull(row.event_id),
    channels: json(row.channels),
    sessionId: textOrNull(row.session_id),
    metadata: json(row.metadata),
    priority: PRIORITIES[int(row.priority)]!,
    maxAttempts: intOrNull(row.max_attempts),
    receivedAt: int(row.received_at),
    deliverAt: intOrNull(row.deliver_at),
    matched: int(row.matched),
  }
}

export function toDelivery(row: SqlRow): Delivery {
  return {
    seq: int(row.seq),
    id: text(row.id),
    appId: text(row.app_id),
    endpointId: text(row.webhook_id),
    messageId: text(row.message_id),
    sessionId: textOrNull(row.session_id),
    eventType: text(row.event_type),
    targetUrl: text(row.target_url),
    status: row.status as DeliveryStatus,
    deadReason: row.dead_reason as DeadReason | null,
    attemptCount: int(row.attempt_count),
    maxAttempts: intOrNull(row.max_attempts),
    priority: PRIORITIES[int(row.priority)] ?? "normal",
    nextRetryAt: intOrNull(row.next_retry_at),
    lastAttemptedAt: intOrNull(row.last_attempted_at),
    receivedAt: int(row.received_at),
    deliveredAt: intOrNull(row.delivered_at),
    errorDetail: textOrNull(row.error_detail),
    ageFrom: intOrNull(row.age_from),
    stalls: int(row.stalls),
    discardedAt: intOrNull(row.discarded_at),
  }
}

export function toClaimed(row: SqlRow): ClaimedDelivery {
  return {
    seq: int(row.seq),
    id: text(row.id),
    messageId: text(row.message_id),
    sessionId: textOrNull(row.session_id),
    eventType: text(row.event_type),
    payload: row.payload as Uint8Array,
    contentType: text(row.content_type),
    errorDetail: textOrNull(row.error_detail),
    status: row.status as LiveStatus,
    attemptCount: int(row.attempt_count),
    maxAttempts: intOrNull(row.max_attempts),
    receivedAt: int(row.received_at),
    ageFrom: intOrNull(row.age_from),
    nextRetryAt: intOrNull(row.next_retry_at),
    lastAttemptedAt: intOrNull(row.last_attempted_at),
    stalls: int(row.stalls),
  }
}

export function toAttempt(row: SqlRow): Attempt {
  return {
    seq: int(row.seq),
    id: text(row.id),
    deliveryId: text(row.delivery_id),
    endpointId: text(row.webhook_id),
    messageId: text(row.message_id),
    attemptNumber: int(row.attempt_number),
    status: row.status as AttemptStatus,
    url: text(row.url),
    responseStatus: intOrNull(row.response_status),
    responseBody: row.response_body as Uint8Array | null,
    responseTruncated: row.response_truncated === 1,
    error: textOrNull(row.error),
    startedAt: int(row.started_at),
    durationMs: int(row.duration_ms),
  }
}

export function toTask(row: SqlRow): Task {
  return {
    seq: int(row.seq),
    id: text(row.id),
    action: row.action as TaskAction,
    filter: json(row.filter),
    status: row.status as TaskStatus,
    total: int(row.total),
    done: int(row.done),
    changed: int(row.changed),
    cursor: int(row.cursor),
    upTo: int(row.up_to),
    createdAt: int(row.created_at),
    updatedAt: int(row.updated_at),
  }
}
