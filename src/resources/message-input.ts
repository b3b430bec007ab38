/** Parses a message: input of the caller, before it is written. */
import { createHash } from "node:crypto"
import { type Moment, steadyTimeOf } from "../core/clock.ts"
import { invalid } from "../core/errors.ts"
import {
  nameList,
  optionalName,
  optionalWholeNumber,
  type PayloadBytes,
  payloadBytes,
  refuseUnknown,
  requireChannel,
  requireDelayMs,
  requireMetadata,
  requireName,
  requireObject,
  requireTag,
  requireText,
  requireTime,
  wholeNumber,
} from "../core/input.ts"
import { STANDARD_RETENTION } from "../core/policy.ts"
import type { NewMessage, Priority } from "../store/store.ts"
import type { ResourceContext } from "./resource-context.ts"

export interface MessageInput {
  eventType: string
  /** A JSON value, or bytes that are sent unchanged. */
  payload: unknown
  /** By default application/json for JSON and application/octet-stream for bytes. */
  contentType?: string
  /** Your own id for the event, unique within the application. */
  eventId?: string
  /** The same key and message return the first result again, for at least 24 hours. */
  idempotencyKey?: string
  channels?: readonly string[]
  /** For filters of lists. */
  tags?: readonly string[]
  sessionId?: string
  metadata?: { readonly [key: string]: string }
  /** The earliest time of the first attempt. */
  deliverAt?: Date | number
  /** The first attempt starts after this delay. */
  delaySeconds?: number
  /** Replaces the limit of the policy. */
  maxAttempts?: number
  priority?: Priority
  /** The payload is removed after this time, delivered or not. By default it is kept as long as the message. */
  payloadRetentionDays?: number
  /** The same in hours. */
  payloadRetentionHours?: number
}

const FIELDS = [
  "eventType",
  "payload",
  "contentType",
  "eventId",
  "idempotencyKey",
  "channels",
  "tags",
  "sessionId",
  "metadata",
  "deliverAt",
  "delaySeconds",
  "maxAttempts",
  "priority",
  "payloadRetentionDays",
  "payloadRetentionHours",
] as const

const PRIORITIES: readonly Priority[] = ["high", "normal", "low"]
const MOST_TAGS = 20
const HOUR_MS = 3_600_000
const LONGEST_RETENTION_DAYS = 3650

/** `at` begins the field names of errors in a batch. */
export function parseMessage(
  context: ResourceContext,
  app: string,
  input: MessageInput,
  at = "",
): NewMessage {
  const field = (name: string) => (at === "" ? name : `${at}.${name}`)
  if (typeof app !== "string" || app === "") throw invalid("application", "must be an id or uid")
  requireObject(input, at === "" ? "message" : at)
  refuseUnknown(input, FIELDS, at)
  if (input.payload === undefined) throw invalid(field("payload"), "is required")
  const { clock, ids, orgId, defaultPolicy, maxPayloadBytes } = context
  const now = clock.now()
  const eventType = requireName(input.eventType, field("eventType"))
  const payload = payloadBytes(input.payload, input.contentType, maxPayloadBytes, field)
  const priority = input.priority ?? "normal"
  if (!PRIORITIES.includes(priority)) throw invalid(field("priority"), "must be high, normal or low")
  const unmatchedRetention = defaultPolicy.retention.delivered ?? STANDARD_RETENTION.delivered!
  return {
    id: ids.make("msg", now),
    orgId,
    app,
    to: null,
    eventType,
    payload: payload.bytes,
    contentType: payload.contentType,
    eventId: optionalName(input.eventId, field("eventId")),
    channels: nameList(input.channels, field("channels"), 10, requireChannel) ?? [],
    tags: nameList(input.tags, field("tags"), MOST_TAGS, requireTag) ?? [],
    sessionId: input.sessionId === undefined ? null : requireText(input.sessionId, field("sessionId"), 256),
    metadata: requireMetadata(input.metadata, field("metadata")),
    priority,
    maxAttempts: optionalWholeNumber(input.maxAttempts, field("maxAttempts"), 1, 100_000),
    receivedAt: now,
    ...deliverAt(input, { now, wall: clock.wallNow() }, field),
    payloadUntil: payloadUntil(input, now, field),
    purgeUnmatchedAt: now + Math.round(unmatchedRetention.after * 1000),
    idempotency: idempotency(input, payload, field("idempotencyKey")),
    traceparent: null,
    inbound: null,
  }
}

function deliverAt(
  input: MessageInput,
  at: Moment,
  field: (name: string) => string,
): Pick<NewMessage, "deliverAt" | "dated" | "wakeAt"> {
  const { delaySeconds } = input
  if (delaySeconds !== undefined) {
    if (input.deliverAt !== undefined)
      throw invalid(field("delaySeconds"), "and deliverAt say the same thing; give one of them")
    const delayMs = requireDelayMs(delaySeconds, field("delaySeconds"))
    return { deliverAt: at.wall + delayMs, dated: false, wakeAt: at.now + delayMs }
  }
  if (input.deliverAt === undefined) return { deliverAt: null, dated: false, wakeAt: at.now }
  const date = requireTime(input.deliverAt, field("deliverAt"))
  return { deliverAt: date, dated: true, wakeAt: steadyTimeOf(date, at) }
}

function payloadUntil(input: MessageInput, now: number, field: (name: string) => string): number | null {
  const { payloadRetentionDays: days, payloadRetentionHours: hours } = input
  if (days !== undefined && hours !== undefined)
    throw invalid(field("payloadRetentionHours"), "and a number of days say the same thing; give one of them")
  if (hours !== undefined)
    return now + HOUR_MS * wholeNumber(hours, field("payloadRetentionHours"), 1, 24 * LONGEST_RETENTION_DAYS)
  if (days === undefined) return null
  return now + 24 * HOUR_MS * wholeNumber(days, field("payloadRetentionDays"), 1, LONGEST_RETENTION_DAYS)
}

/** The digest covers the whole input: another request with the same key is a conflict. */
function idempotency(input: MessageInput, payload: PayloadBytes, field: string): NewMessage["idempotency"] {
  if (input.idempotencyKey === undefined) return null
  const key = requireKey(input.idempotencyKey, field)
  return { key: shortHash(key), digest: shortHash(...digested(input, payload)) }
}

/** Every message gets a key of its own, and the digest of the whole batch: one message more makes it another batch. */
export function bindBatch(
  messages: readonly NewMessage[],
  inputs: readonly MessageInput[],
  idempotencyKey: string,
): NewMessage[] {
  const batchKey = requireKey(idempotencyKey, "idempotencyKey")
  const digest = shortHash(
    ...messages.map(({ payload: bytes, contentType }, i) =>
      shortHash(...digested(inputs[i]!, { bytes, contentType })),
    ),
  )
  return messages.map((message, i) => {
    if (message.idempotency !== null)
      throw invalid(
        `messages[${i}].idempotencyKey`,
        "and one of the batch exclude each other; give one of them",
      )
    return { ...message, idempotency: { key: shortHash(`${batchKey}\n${i}`), digest } }
  })
}

function requireKey(value: string, field: string): string {
  const key = requireText(value, field, 256)
  if (key === "") throw invalid(field, "must not be empty")
  return key
}

function digested(
  input: MessageInput,
  { bytes, contentType }: PayloadBytes,
): (string | PayloadBytes["bytes"])[] {
  const { payload: _payload, idempotencyKey: _key, ...rest } = input
  return [JSON.stringify(Object.entries(rest).sort(([a], [b]) => (a < b ? -1 : 1))), contentType, bytes]
}

function shortHash(...parts: readonly (string | Uint8Array | PayloadBytes["bytes"])[]): Uint8Array {
  const hash = createHash("sha256")
  for (const part of parts) hash.update(part)
  return hash.digest().subarray(0, 16)
}
