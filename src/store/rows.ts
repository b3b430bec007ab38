/** Database rows to the store's plain data. SQLite has numbers for booleans, and JSON where PostgreSQL has arrays. */

import { enabledAgain } from "../core/failing.ts"
import { DISABLE_REASONS, type GateState, type LoadedGate } from "../core/gate.ts"
import type { DeadReason } from "../core/policy.ts"
import { type Protection, readProtection } from "../core/protection.ts"
import type { DeliveryStatus, LiveStatus } from "../core/settle.ts"
import type {
  Application,
  Attempt,
  AttemptCounts,
  AttemptStatus,
  ClaimedDelivery,
  DeadGroup,
  Delivery,
  Endpoint,
  EndpointActivity,
  EndpointGate,
  EndpointPatch,
  Entry,
  EntryKind,
  LaneStatus,
  Message,
  NamedPolicy,
  PayloadSize,
  Priority,
  StatusCodeCount,
  StatusCounts,
  Task,
  TaskAction,
  TaskStatus,
  Usage,
} from "./store.ts"

export type Row = Record<string, unknown>

const PRIORITIES: readonly Priority[] = ["high", "normal", "low"]

/** An operator may have typed any number. */
const toPriority = (value: unknown): Priority => PRIORITIES[value as number] ?? "normal"

export function priorityNumber(priority: Priority): number {
  return PRIORITIES.indexOf(priority)
}

export function orNull<T>(row: Row | undefined, to: (row: Row) => T): T | null {
  return row === undefined ? null : to(row)
}

const text = (value: unknown) => value as string
const int = (value: unknown) => value as number
const textOrNull = (value: unknown) => value as string | null
const intOrNull = (value: unknown) => value as number | null
const bool = (value: unknown) => value === true || value === 1
const json = (value: unknown) => JSON.parse(value as string)
const listOrNull = (value: unknown): string[] | null =>
  typeof value === "string" ? json(value) : (value as string[] | null)

export function toJson(value: object | null): string | null {
  // A fast path: nearly all lists are empty.
  if (Array.isArray(value) && value.length === 0) return "[]"
  return value === null ? null : JSON.stringify(value)
}

/** State of an endpoint that does not exist. */
export const MISSING: Row = {
  deleted: false,
  disabled: true,
  paused: false,
  hold_until: null,
  breaker_until: null,
  protection: null,
  gate_epoch: 0,
  gate_token: 0,
  gate_revision: 0,
}

export function toLoadedGate(row: Row, prefix = ""): LoadedGate {
  const number = (column: string) => int(row[prefix + column])
  const [epoch, token, revision] = [number("gate_epoch"), number("gate_token"), number("gate_revision")]
  return { ...toGateState(row, prefix), epoch, token, revision }
}

export function toGateState(row: Row, prefix = ""): GateState {
  return {
    deleted: bool(row[`${prefix}deleted`]),
    disabled: bool(row[`${prefix}disabled`]),
    paused: bool(row[`${prefix}paused`]),
    holdUntil: intOrNull(row[`${prefix}hold_until`]),
    protection: toProtection(row, prefix),
  }
}

function toProtection(row: Row, prefix = ""): Protection {
  return readProtection(textOrNull(row[`${prefix}protection`]), intOrNull(row[`${prefix}breaker_until`]))
}

export function toApplication(row: Row): Application {
  return {
    id: text(row.id),
    orgId: text(row.org_id),
    uid: textOrNull(row.uid),
    name: text(row.name),
    metadata: json(row.metadata),
    rateLimit: intOrNull(row.rate_limit),
    createdAt: int(row.created_at),
    updatedAt: int(row.updated_at),
  }
}

export function toEndpoint(row: Row): Endpoint {
  return {
    id: text(row.id),
    orgId: text(row.org_id),
    appId: text(row.app_id),
    uid: textOrNull(row.uid),
    url: text(row.url),
    description: text(row.description),
    eventTypes: listOrNull(row.event_types),
    channels: listOrNull(row.channels),
    headers: json(row.headers),
    metadata: json(row.metadata),
    retryName: textOrNull(row.retry_name),
    retryPolicy: textOrNull(row.retry_policy),
    ordered: bool(row.ordered),
    concurrency: intOrNull(row.concurrency),
    rateLimit: intOrNull(row.rate_limit),
    appRateLimit: intOrNull(row.app_rate_limit),
    disabled: bool(row.disabled),
    // An older version enables an endpoint without clearing them.
    disabledAt: bool(row.disabled) ? intOrNull(row.disabled_at) : null,
    disabledReason: bool(row.disabled)
      ? (DISABLE_REASONS.find((reason) => reason === row.disabled_reason) ?? null)
      : null,
    paused: bool(row.paused),
    pausedAt: intOrNull(row.paused_at),
    resumedAt: intOrNull(row.resumed_at),
    holdUntil: intOrNull(row.hold_until),
    protection: toProtection(row),
    gateEpoch: int(row.gate_epoch),
    secrets: new Uint8Array(row.secrets as Uint8Array),
    version: int(row.version),
    apiVersion: int(row.api_version),
    createdAt: int(row.created_at),
    updatedAt: int(row.updated_at),
  }
}

export function patchEndpoint(before: Endpoint, patch: EndpointPatch, now: number): Endpoint {
  const after = { ...before, ...patch, version: before.version + 1, updatedAt: now }
  const isResumed = (before.disabled || before.paused) && !(after.disabled || after.paused)
  const isEnabled = before.disabled && !after.disabled
  const isReset = isEnabled || patch.holdUntil !== undefined || patch.protection !== undefined
  const gateEpoch = before.gateEpoch + Number(isReset)
  return {
    ...after,
    ...disabling(before, after, now),
    pausedAt: after.paused ? (before.paused ? before.pausedAt : now) : null,
    gateEpoch,
    resumedAt: isResumed ? now : before.resumedAt,
  }
}

/** By hand: outcomes disable endpoints in the store. */
function disabling(before: Endpoint, after: Pick<Endpoint, "disabled">, now: number) {
  const enabled = { disabledAt: null, disabledReason: null }
  if (!after.disabled) {
    if (!before.disabled) return enabled
    const wasFailing = before.disabledReason === "failing"
    return { ...enabled, protection: enabledAgain(before.protection, wasFailing, now) }
  }
  const { disabledAt, disabledReason } = before
  return before.disabled
    ? { disabledAt, disabledReason }
    : { disabledAt: now, disabledReason: "manual" as const }
}

export function toAttemptCounts(rows: readonly Row[]): AttemptCounts {
  const counts = { succeeded: 0, failed: 0, unknown: 0 }
  for (const row of rows) counts[row.status as AttemptStatus] = int(row.n)
  return counts
}

export function toStatusCodeCount(row: Row): StatusCodeCount {
  return { status: int(row.status), count: int(row.n) }
}

export function toStatusCounts(rows: readonly Row[]): StatusCounts {
  const counts = { pending: 0, failed: 0, delivered: 0, dead: 0, calledOff: 0 }
  for (const row of rows) {
    counts[row.status as DeliveryStatus] = int(row.n)
    counts.calledOff += int(row.called_off)
  }
  return counts
}

export function toDeadGroup(row: Row): DeadGroup {
  return {
    appId: text(row.app_id),
    endpointId: text(row.webhook_id),
    deadReason: row.dead_reason as DeadReason,
    errorDetail: textOrNull(row.error),
    count: int(row.n),
    oldestAt: int(row.oldest_at),
    newestAt: int(row.newest_at),
  }
}

export function toUsage(row: Row): Usage {
  return { appId: text(row.app_id), messages: int(row.messages), destinations: int(row.destinations) }
}

export function toPolicy(row: Row): NamedPolicy {
  return {
    orgId: text(row.org_id),
    name: text(row.name),
    policy: text(row.policy),
    updatedAt: int(row.updated_at),
  }
}

export function toEntry(row: Row): Entry {
  return {
    kind: row.kind as EntryKind,
    orgId: text(row.org_id),
    name: text(row.name),
    owner: textOrNull(row.owner),
    body: text(row.body),
    version: int(row.version),
    createdAt: int(row.created_at),
    updatedAt: int(row.updated_at),
    expiresAt: intOrNull(row.expires_at),
  }
}

export function toMessage(row: Row): Message {
  return {
    seq: int(row.seq),
    id: text(row.id),
    appId: text(row.app_id),
    eventType: text(row.event_type),
    payload: (row.payload as Uint8Array | null | undefined) ?? null,
    expunged: bool(row.expunged),
    contentType: text(row.content_type),
    eventId: textOrNull(row.event_id),
    channels: json(row.channels),
    tags: json(row.tags),
    sessionId: textOrNull(row.session_id),
    metadata: json(row.metadata),
    priority: toPriority(row.priority),
    maxAttempts: intOrNull(row.max_attempts),
    receivedAt: int(row.received_at),
    deliverAt: intOrNull(row.deliver_at),
    matched: int(row.matched),
    traceparent: textOrNull(row.traceparent),
    inbound: textOrNull(row.inbound),
  }
}

export function toPayloadSize(row: Row): PayloadSize {
  return { messageId: text(row.id), bytes: int(row.bytes) }
}

export function toDelivery(row: Row): Delivery {
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
    priority: toPriority(row.priority),
    nextRetryAt: intOrNull(row.next_retry_at),
    lastAttemptedAt: intOrNull(row.last_attempted_at),
    receivedAt: int(row.received_at),
    deliveredAt: intOrNull(row.delivered_at),
    errorDetail: textOrNull(row.error_detail),
    ageFrom: intOrNull(row.age_from),
    stalls: int(row.stalls),
    manual: bool(row.manual),
    discardedAt: intOrNull(row.discarded_at),
    deferred: bool(row.deferred) && int(row.attempt_count) === 0,
    dated: bool(row.dated),
  }
}

export function toGate(row: Row): EndpointGate {
  return {
    ...toGateState(row),
    endpointId: text(row.id),
    url: text(row.url),
    head: row.head === null ? null : { seq: int(row.head), nextRetryAt: intOrNull(row.head_due) },
  }
}

export function toActivity(row: Row): EndpointActivity {
  return {
    endpointId: text(row.id),
    oldestWaitingAt: intOrNull(row.oldest_waiting_at),
    lastSuccessAt: intOrNull(row.last_success_at),
  }
}

export function toLaneStatus(row: Row): LaneStatus {
  const dues = [row.head_due, row.due_at].filter((due) => due !== null).map(int)
  const kinds = [
    { at: dues.length === 0 ? null : Math.min(...dues), deferred: false, dated: false },
    { at: row.delayed_at, deferred: true, dated: false },
    { at: row.dated_at, deferred: true, dated: true },
  ]
  return {
    endpointId: text(row.id),
    appId: text(row.app_id),
    waiting: int(row.waiting),
    retrying: int(row.retrying),
    sending: int(row.sending),
    isLowerBound: bool(row.is_lower_bound),
    oldestAt: int(row.oldest_at),
    first: kinds
      .filter(({ at }) => at !== null)
      .map(({ at, deferred, dated }) => ({ nextRetryAt: int(at) || null, deferred, dated })),
  }
}

export function toClaimed(row: Row): ClaimedDelivery {
  return {
    seq: int(row.seq),
    id: text(row.id),
    messageId: text(row.message_id),
    sessionId: textOrNull(row.session_id),
    eventType: text(row.event_type),
    payload: row.payload as Uint8Array | null,
    contentType: text(row.content_type),
    priority: toPriority(row.priority),
    manual: bool(row.manual),
    errorDetail: textOrNull(row.error_detail),
    status: row.status as LiveStatus,
    attemptCount: int(row.attempt_count),
    maxAttempts: intOrNull(row.max_attempts),
    receivedAt: int(row.received_at),
    ageFrom: intOrNull(row.age_from),
    nextRetryAt: intOrNull(row.next_retry_at),
    lastAttemptedAt: intOrNull(row.last_attempted_at),
    stalls: int(row.stalls),
    traceparent: textOrNull(row.traceparent),
    inbound: textOrNull(row.inbound),
  }
}

export function toAttempt(row: Row): Attempt {
  return {
    seq: int(row.seq),
    id: text(row.id),
    deliveryId: text(row.delivery_id),
    endpointId: text(row.webhook_id),
    messageId: text(row.message_id),
    attemptNumber: int(row.attempt_number),
    manual: bool(row.manual),
    status: row.status as AttemptStatus,
    url: text(row.url),
    responseStatus: intOrNull(row.response_status),
    responseBody: row.response_body as Uint8Array | null,
    responseTruncated: bool(row.response_truncated),
    error: textOrNull(row.error),
    startedAt: int(row.started_at),
    durationMs: int(row.duration_ms),
    timing: textOrNull(row.timing),
  }
}

export function toTask(row: Row): Task {
  return {
    seq: int(row.seq),
    id: text(row.id),
    orgId: text(row.org_id),
    action: row.action as TaskAction,
    type: text(row.type),
    filter: json(row.filter),
    status: row.status as TaskStatus,
    data: textOrNull(row.data),
    total: int(row.total),
    done: int(row.done),
    changed: int(row.changed),
    cursor: int(row.cursor),
    upTo: int(row.up_to),
    createdAt: int(row.created_at),
    updatedAt: int(row.updated_at),
  }
}
