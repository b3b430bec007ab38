// biome-ignore-all format: a line for each value would hide that both sides of a pair have them in the same order

/**
 * The most frequent calls cross the threads as arrays, since a copied object carries its property names. A message, its outcome and the answer
 * take 17 µs to copy as objects, and 12 as arrays, including the packing.
 */
import type { Bytes } from "../../core/bytes.ts"
import type { FencedSettlement } from "../fence.ts"
import type { NewAttempt, NewMessage } from "../store.ts"
import type { AcceptedOnThread, LaneOnThread } from "./accept.ts"
import type { OperationName } from "./operations.ts"

interface Wire {
  pack(args: readonly unknown[]): readonly unknown[]
  unpack(packed: readonly unknown[]): readonly unknown[]
  packAnswer(value: unknown): unknown
  unpackAnswer(packed: unknown): unknown
}

const asItIs = <T>(value: T): T => value
const AS_IT_IS: Wire = { pack: asItIs, unpack: asItIs, packAnswer: asItIs, unpackAnswer: asItIs }

const WIRES: { readonly [name in OperationName]?: Wire } = {
  accept: {
    pack: ([messages, tx]) => [(messages as NewMessage[]).map(packMessage), tx],
    unpack: ([messages, tx]) => [(messages as PackedMessage[]).map(unpackMessage), tx],
    packAnswer: (accepted) => (accepted as AcceptedOnThread[]).map(packAccepted),
    unpackAnswer: (accepted) => (accepted as PackedAccepted[]).map(unpackAccepted),
  },
  settle: {
    ...AS_IT_IS,
    pack: ([settlements]) => (settlements as FencedSettlement[]).map(packSettlement),
    unpack: (settlements) => [(settlements as PackedSettlement[]).map(unpackSettlement)],
  },
}

export function wireOf(name: OperationName): Wire {
  return WIRES[name] ?? AS_IT_IS
}

type PackedMessage = ReturnType<typeof packMessage>
type PackedSettlement = ReturnType<typeof packSettlement>
type PackedAttempt = ReturnType<typeof packAttempt>
type PackedAccepted = ReturnType<typeof packAccepted>
type PackedLane = ReturnType<typeof packLane>

const packMessage = (m: NewMessage) => [
  m.id, m.orgId, m.app, m.to, m.eventType, packContent(m.payload), m.contentType, m.eventId, unlessEmpty(m.channels), unlessEmpty(m.tags),
  m.sessionId, unlessEmpty(m.metadata), m.priority, m.maxAttempts, m.receivedAt, m.deliverAt, m.dated, m.wakeAt,
  m.idempotency && packBytes(m.idempotency.key), m.idempotency && packBytes(m.idempotency.digest), m.payloadUntil, m.purgeUnmatchedAt,
  m.traceparent, m.inbound,
] as const

const unpackMessage = ([
  id, orgId, app, to, eventType, payload, contentType, eventId, channels, tags,
  sessionId, metadata, priority, maxAttempts, receivedAt, deliverAt, dated, wakeAt, key, digest, payloadUntil, purgeUnmatchedAt,
  traceparent, inbound,
]: PackedMessage): NewMessage => ({
  id, orgId, app, to, eventType, payload: unpackContent(payload), contentType, eventId, channels: channels ?? [], tags: tags ?? [],
  sessionId, metadata: metadata ?? {}, priority, maxAttempts, receivedAt, deliverAt, dated, wakeAt,
  idempotency: key === null || digest === null ? null : { key: unpackBytes(key), digest: unpackBytes(digest) },
  payloadUntil, purgeUnmatchedAt, traceparent, inbound,
})

const packSettlement = ({ seq, deliveryId, messageId, endpointId, token, expectedAttemptCount, expectedAgeFrom, appId, eventType, payloadBytes, change: c, attempt, settledAt, gate }: FencedSettlement) => [
  seq, deliveryId, messageId, endpointId, token, expectedAttemptCount, expectedAgeFrom, appId, eventType, payloadBytes,
  c.status, c.deadReason, c.attemptCount, c.nextRetryAt, c.lastAttemptedAt, c.deliveredAt, c.deadAt, c.errorDetail, c.ageFrom, c.stalls,
  c.purgeAt, c.manual, c.disableEndpoint, c.holdLaneUntil, attempt === null ? null : packAttempt(attempt), settledAt, gate,
] as const

const unpackSettlement = ([
  seq, deliveryId, messageId, endpointId, token, expectedAttemptCount, expectedAgeFrom, appId, eventType, payloadBytes,
  status, deadReason, attemptCount, nextRetryAt, lastAttemptedAt, deliveredAt, deadAt, errorDetail, ageFrom, stalls,
  purgeAt, manual, disableEndpoint, holdLaneUntil, attempt, settledAt, gate,
]: PackedSettlement): FencedSettlement => ({
  seq, deliveryId, messageId, endpointId, token, expectedAttemptCount, expectedAgeFrom, appId, eventType, payloadBytes,
  change: {
    status, deadReason, attemptCount, nextRetryAt, lastAttemptedAt, deliveredAt, deadAt, errorDetail, ageFrom, stalls,
    purgeAt, manual, disableEndpoint, holdLaneUntil,
  },
  attempt: attempt === null ? null : unpackAttempt(attempt), settledAt, gate,
})

const packAttempt = (a: NewAttempt) => [
  a.id, a.status, a.manual, a.attemptNumber, a.url, a.responseStatus, a.responseBody === null ? null : packContent(a.responseBody), a.responseTruncated, a.error, a.startedAt, a.durationMs, a.timing,
] as const

const unpackAttempt = ([
  id, status, manual, attemptNumber, url, responseStatus, responseBody, responseTruncated, error, startedAt, durationMs, timing,
]: PackedAttempt): NewAttempt => ({
  id, status, manual, attemptNumber, url, responseStatus, responseBody: responseBody === null ? null : unpackContent(responseBody),
  responseTruncated, error, startedAt, durationMs, timing,
})

const packAccepted = (a: AcceptedOnThread) => [a.messageId, a.appId, a.receivedAt, a.deliverAt, a.matched, a.duplicate, a.lanes.map(packLane)] as const

const unpackAccepted = ([messageId, appId, receivedAt, deliverAt, matched, duplicate, lanes]: PackedAccepted): AcceptedOnThread => ({
  messageId, appId, receivedAt, deliverAt, matched, duplicate, lanes: lanes.map(unpackLane),
})

const packLane = ({ endpointId, appId, dueAt, transport, handed }: LaneOnThread) => [
  endpointId, appId, dueAt, transport, handed?.seq ?? null, handed?.id ?? null, handed?.token ?? null,
] as const

const unpackLane = ([endpointId, appId, dueAt, transport, seq, id, token]: PackedLane): LaneOnThread => ({
  endpointId, appId, dueAt, transport, handed: seq === null || id === null || token === null ? undefined : { seq, id, token },
})

/** Up to this size `Buffer.from` uses Node's pool. */
const MOST_AS_TEXT = 4095

/** As a text with a character for each byte: copying 1 kB takes 3 µs, and 6 as an ArrayBuffer. */
function packBytes(bytes: Uint8Array): Uint8Array | string {
  if (bytes.length > MOST_AS_TEXT) return bytes
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1")
}

function unpackBytes(packed: Uint8Array | string): Uint8Array {
  return typeof packed === "string" ? Buffer.from(packed, "latin1") : packed
}

/** Bytes that cross as a text are marked, so that texts stay texts. */
function packContent(content: Bytes): Bytes | readonly [string] {
  if (typeof content === "string") return content
  const packed = packBytes(content)
  return typeof packed === "string" ? [packed] : packed
}

function unpackContent(packed: Bytes | readonly [string]): Bytes {
  return Array.isArray(packed) ? unpackBytes(packed[0]) : (packed as Bytes)
}

function unlessEmpty<T extends object>(value: T): T | null {
  for (const _key in value) return value
  return null
}
