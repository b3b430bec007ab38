import { expect, test } from "vitest"
import { toBuffer } from "../../core/bytes.ts"
import { HEALTHY } from "../../core/protection.ts"
import type { FencedSettlement } from "../fence.ts"
import type { NewMessage } from "../store.ts"
import type { AcceptedOnThread } from "./accept.ts"
import { wireOf } from "./wire.ts"

/** All values differ, so that swapped fields are found. */
const message: Required<NewMessage> = {
  id: "msg_1",
  orgId: "org",
  app: "app",
  to: "ep_1",
  eventType: "type",
  payload: Buffer.from([1, 2]),
  contentType: "text/plain",
  eventId: "event",
  channels: ["channel"],
  tags: ["tag"],
  sessionId: "session",
  metadata: { key: "value" },
  priority: "high",
  maxAttempts: 1,
  receivedAt: 2,
  deliverAt: 3,
  dated: true,
  wakeAt: 6,
  idempotency: { key: Buffer.from([3]), digest: Buffer.from([4]) },
  payloadUntil: 4,
  purgeUnmatchedAt: 5,
  traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
  inbound: '{"method":"POST"}',
}
const least: NewMessage = {
  ...message,
  to: null,
  eventId: null,
  channels: [],
  tags: [],
  sessionId: null,
  metadata: {},
  maxAttempts: null,
  deliverAt: null,
  idempotency: null,
  payloadUntil: null,
  inbound: null,
}

const settlement: Required<FencedSettlement> = {
  seq: 1,
  deliveryId: "dlv_1",
  messageId: "msg_1",
  endpointId: "ep_1",
  token: 2 ** 32 + 1,
  expectedAttemptCount: 2,
  expectedAgeFrom: 6,
  appId: "app_1",
  eventType: "type",
  payloadBytes: 17,
  settledAt: 18,
  change: {
    status: "dead",
    deadReason: "gone",
    attemptCount: 3,
    nextRetryAt: 4,
    lastAttemptedAt: 5,
    deliveredAt: 6,
    deadAt: 11,
    errorDetail: "detail",
    ageFrom: 7,
    stalls: 8,
    purgeAt: 9,
    manual: true,
    disableEndpoint: false,
    holdLaneUntil: 10,
  },
  attempt: {
    id: "atmpt_1",
    status: "failed",
    manual: true,
    attemptNumber: 11,
    url: "https://example.com",
    responseStatus: 410,
    responseBody: Buffer.from([5]),
    responseTruncated: false,
    error: "error",
    startedAt: 12,
    durationMs: 13,
    timing: ",,,14",
  },
  gate: {
    holdUntil: 14,
    protection: { ...HEALTHY, downs: 17 },
    epoch: 15,
    revision: 16,
    closes: true,
    disables: "failing",
    transitions: ["opened"],
    previous: HEALTHY,
  },
}
const swapped: FencedSettlement = {
  ...settlement,
  change: { ...settlement.change, manual: false, disableEndpoint: true },
  attempt: { ...settlement.attempt!, manual: false, responseTruncated: true },
}

const lane = { endpointId: "ep_1", appId: "app_1", dueAt: 1, transport: "http" }
const accepted: AcceptedOnThread = {
  messageId: "msg_1",
  appId: "app_1",
  receivedAt: 2,
  deliverAt: 8,
  matched: 3,
  duplicate: true,
  lanes: [
    { ...lane, handed: { seq: 4, id: "dlv_1", token: 3 } },
    { ...lane, handed: undefined },
  ],
}

test.each([
  ["accept", [[message, least], undefined]],
  ["accept", [[message], { a: "client" }]],
  ["settle", [[settlement, swapped, { ...settlement, attempt: null }]]],
  ["closeLane", ["ep_1", 7]],
] as const)("the arguments of %s arrive unchanged on the other thread", (name, args) => {
  const { pack, unpack } = wireOf(name)
  expect(unpack(structuredClone(pack(args)))).toStrictEqual(args)
})

test.each([
  ["accept", [accepted, { ...accepted, duplicate: false, lanes: [] }]],
  ["settle", ["applied", "stale"]],
  ["check", { kind: "sqlite", version: "3" }],
] as const)("the result of %s arrives unchanged", (name, value) => {
  const { packAnswer, unpackAnswer } = wireOf(name)
  expect(unpackAnswer(structuredClone(packAnswer(value)))).toStrictEqual(value)
})

test.each([
  0, 1, 256, 4095, 4096, 70_000,
])("%i bytes of any value arrive unchanged on the other thread", (length) => {
  // A view of a larger buffer, as in Node's pool.
  const bytes = Buffer.alloc(length + 20).subarray(10, 10 + length)
  for (let i = 0; i < length; i++) bytes[i] = i * 7
  const { pack, unpack } = wireOf("accept")
  const [[out]] = unpack(structuredClone(pack([[{ ...message, payload: bytes }]]))) as [[NewMessage]]
  expect(Buffer.compare(toBuffer(out.payload), bytes)).toBe(0)
})

test("a text arrives as a text on the other thread", () => {
  const { pack, unpack } = wireOf("accept")
  const [[out]] = unpack(structuredClone(pack([[{ ...message, payload: "text" }]]))) as [[NewMessage]]
  expect(out.payload).toBe("text")
})
