/** Seed 000, UC-0268: retry webhook delivery with exponential backoff and dead letter. */
import { expect, test } from "vitest"
import { verifySignature } from "../../src/index.ts"
import { Harness } from "../support/harness.ts"

test("S1: the first delivery failure schedules a 30-second retry", async () => {
  const harness = await Harness.start()
  harness.receiver.always("/", 500)
  await harness.endpoint({ retry: "gateway" })
  await harness.send()
  await harness.published("delivery.attempt", 1)
  expect((await harness.rows())[0]).toMatchObject({
    status: "failed",
    attempt_count: 1,
    last_attempted_at: harness.clock.now(),
    next_retry_at: harness.clock.now() + 30_000,
    error_detail: "HTTP 500: answer 500",
  })
  await harness.attemptAfter(30_000)
  expect((await harness.rows())[0]).toMatchObject({ status: "failed", attempt_count: 2 })
})

test("S2 and F1: the fifth consecutive failure marks the row dead and emits a dead-letter event", async () => {
  const harness = await Harness.start()
  harness.receiver.always("/", 500)
  const endpointId = await harness.endpoint({ retry: "gateway" })
  const messageId = await harness.send({}, { sessionId: "session-7" })
  await harness.published("delivery.attempt", 1)
  for (const seconds of [30, 120, 600]) await harness.attemptAfter(seconds * 1000)
  expect((await harness.rows())[0]).toMatchObject({ status: "failed", attempt_count: 4 })
  expect(harness.events.some(({ type }) => type === "delivery.dead")).toBe(false)
  await harness.attemptAfter(3_600_000)
  const [row] = await harness.rows()
  expect(row).toMatchObject({
    status: "dead",
    dead_reason: "exhausted",
    attempt_count: 5,
    next_retry_at: null,
  })
  expect(await harness.published("delivery.dead", 1)).toMatchObject([
    {
      webhook_delivery_id: row?.id,
      webhook_id: endpointId,
      message_id: messageId,
      session_id: "session-7",
      reason: "exhausted",
      last_error: "HTTP 500: answer 500",
    },
  ])
})

test("F1: no further automatic retry is scheduled for a dead row, at no later poll", async () => {
  const harness = await Harness.start()
  harness.receiver.always("/", 500)
  await harness.endpoint({ retry: "gateway" })
  await harness.send({}, { maxAttempts: 1 })
  await harness.published("delivery.dead", 1)
  const before = await harness.rows()
  for (const seconds of [5, 30, 21_600, 30 * 86_400]) {
    harness.clock.advance(seconds * 1000)
    await harness.poll()
    await harness.quiet()
  }
  expect(harness.receiver.to("/")).toHaveLength(1)
  expect(await harness.rows()).toEqual(before)
})

test("the retry schedule is 30, 120, 600 and 3600 seconds, to the millisecond", async () => {
  const harness = await Harness.start()
  harness.receiver.always("/", 503)
  await harness.endpoint({ retry: "gateway" })
  await harness.send()
  const [first] = await harness.published("delivery.attempt", 1)
  const attempts = [first!]
  for (const seconds of [30, 120, 600, 3600]) attempts.push(await harness.attemptAfter(seconds * 1000))
  const delays = attempts.map(({ next_retry_at, at }) => next_retry_at && next_retry_at - at)
  expect(delays).toEqual([30_000, 120_000, 600_000, 3_600_000, null])
  expect(attempts.map(({ attempt_count }) => attempt_count)).toEqual([1, 2, 3, 4, 5])
})

test("A1: a delivery that succeeds is marked delivered, with a success event and no retry", async () => {
  const harness = await Harness.start()
  harness.receiver.queue("/", 500, 204)
  const endpointId = await harness.endpoint({ retry: "gateway" })
  await harness.send({}, { sessionId: "session-8" })
  await harness.published("delivery.attempt", 1)
  await harness.attemptAfter(30_000)
  const [row] = await harness.rows()
  expect(row).toMatchObject({
    status: "delivered",
    attempt_count: 2,
    last_attempted_at: harness.clock.now(),
    delivered_at: harness.clock.now(),
    next_retry_at: null,
    error_detail: null,
  })
  expect(await harness.published("delivery.delivered", 1)).toMatchObject([
    {
      webhook_delivery_id: row?.id,
      webhook_id: endpointId,
      session_id: "session-8",
      attempt_count: 2,
      response_status: 204,
    },
  ])
  harness.clock.advance(86_400_000)
  await harness.quiet()
  expect(harness.receiver.to("/")).toHaveLength(2)
})

test("the main success flow posts the HMAC-signed payload to target_url", async () => {
  const harness = await Harness.start()
  const endpointId = await harness.endpoint({ retry: "gateway" }, "/hooks")
  await harness.send({ total: 12 })
  const [request] = await harness.receiver.arrived("/hooks", 1)
  expect((await harness.rows())[0]).toMatchObject({ target_url: harness.receiver.url("/hooks") })
  expect(JSON.parse(String(request!.body))).toEqual({ total: 12 })
  const { key } = await harness.posthorn.endpoints.secret("acme", endpointId)
  const nowMs = harness.clock.wallNow()
  verifySignature(key, request!.headers, request!.body, { nowMs })
  expect(() => verifySignature(key, request!.headers, '{"total":13}', { nowMs })).toThrow("no signature fits")
})
