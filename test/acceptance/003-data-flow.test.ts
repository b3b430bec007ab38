/** Seed 003: the data flow of the webhook retry mechanism, from trigger to success, dead letter or retry. */
import { expect, test } from "vitest"
import { Harness } from "../support/harness.ts"

async function startFailing(random: () => number, more: object = {}): Promise<Harness> {
  const harness = await Harness.start({ random })
  harness.receiver.always("/", 500)
  await harness.endpoint({ retry: "enterprise" })
  await harness.send({}, more)
  await harness.published("delivery.attempt", 1)
  return harness
}

test("success (2xx): mark complete", async () => {
  const harness = await Harness.start()
  await harness.endpoint({ retry: "enterprise" })
  await harness.send()
  await harness.published("delivery.delivered", 1)
  expect((await harness.rows())[0]).toMatchObject({
    status: "delivered",
    attempt_count: 1,
    next_retry_at: null,
  })
})

test("failure, not retryable (4xx): mark failed and route to the dead letters", async () => {
  const harness = await Harness.start()
  harness.receiver.always("/", 422)
  await harness.endpoint({ retry: "enterprise" })
  const id = await harness.send()
  const [dead] = await harness.published("delivery.dead", 1)
  expect(dead).toMatchObject({ message_id: id, reason: "rejected", attempt_count: 1 })
  const { data } = await harness.posthorn.dead.list()
  expect(data).toMatchObject([
    {
      messageId: id,
      status: "dead",
      deadReason: "rejected",
      nextRetryAt: null,
      errorDetail: "HTTP 422: answer 422",
    },
  ])
  harness.clock.advance(3_600_000)
  await harness.quiet()
  expect(harness.receiver.to("/")).toHaveLength(1)
})

test("failure, retryable (5xx): schedule a retry, and repeat when it is due until it succeeds", async () => {
  const harness = await Harness.start({ random: () => 0.5 })
  harness.receiver.queue("/", 500, 503)
  await harness.endpoint({ retry: "enterprise" })
  await harness.send()
  await harness.published("delivery.attempt", 1)
  expect((await harness.rows())[0]).toMatchObject({
    status: "failed",
    next_retry_at: harness.clock.now() + 1000,
  })
  await harness.attemptAfter(1000)
  const last = await harness.attemptAfter(2000)
  expect(last).toMatchObject({ success: true, attempt_count: 3, next_retry_at: null })
  expect((await harness.rows())[0]).toMatchObject({ status: "delivered", attempt_count: 3 })
})

test("failure, retryable (timeout): schedule a retry", async () => {
  const harness = await Harness.start({ random: () => 0.5 })
  harness.receiver.hold("/")
  await harness.endpoint({ retry: "enterprise" })
  await harness.send()
  await harness.receiver.arrived("/", 1)
  harness.clock.advance(30_000)
  const [attempt] = await harness.published("delivery.attempt", 1)
  expect(attempt).toMatchObject({ success: false, error: "timeout", next_retry_at: attempt!.at + 1000 })
  harness.receiver.always("/", 200)
  await harness.attemptAfter(1000)
  expect((await harness.rows())[0]).toMatchObject({ status: "delivered", attempt_count: 2 })
})

test.each([
  ["at its least, half", 0, [500, 1000, 2000, 4000, 8000]],
  ["in the middle, as it is", 0.5, [1000, 2000, 4000, 8000, 16_000]],
  ["at its most, one and a half times", 0.999_999_999, [1500, 3000, 6000, 12_000, 24_000]],
])("the delay after failure n is 2^(n-1) seconds, with jitter %s; the sixth failure is the last", async (_, draw, delays) => {
  const harness = await startFailing(() => draw)
  for (const ms of delays) await harness.attemptAfter(ms)
  const [dead] = await harness.published("delivery.dead", 1)
  expect(dead).toMatchObject({ reason: "exhausted", attempt_count: 6 })
})

test("jitter is uniform between 0.5 and 1.5, drawn anew for each delay", async () => {
  const harness = await Harness.start()
  harness.receiver.always("/", 500)
  await harness.endpoint({ retry: "enterprise" })
  const messages = Array.from({ length: 200 }, (_, n) => ({ eventType: "invoice.paid", payload: { n } }))
  await harness.posthorn.sendBatch("acme", messages)
  const attempts = await harness.published("delivery.attempt", 200)
  const factors = attempts.map(({ next_retry_at, at }) => (next_retry_at! - at) / 1000)
  expect(factors.every((factor) => factor >= 0.5 && factor <= 1.5)).toBe(true)
  // 200 draws miss some tenth of the range about once in a hundred million runs.
  for (let bin = 5; bin < 15; bin++) {
    expect(factors.some((factor) => factor >= bin / 10 && factor <= (bin + 1) / 10)).toBe(true)
  }
})

test.each([
  ["shortened by jitter to half an hour at the least", 0, [1_024_000, 1_800_000]],
  ["never lengthened by jitter beyond an hour", 0.999_999_999, [3_072_000, 3_600_000]],
])("from the 13th failure on the delay is capped: %s", async (_, draw, expected) => {
  const harness = await startFailing(() => draw, { maxAttempts: 20 })
  for (let failure = 1; failure <= 12; failure++) {
    harness.clock.advance(((await harness.rows())[0]!.next_retry_at as number) - harness.clock.now())
    await harness.published("delivery.attempt", failure + 1)
  }
  const attempts = await harness.published("delivery.attempt", 13)
  const delays = attempts.map(({ next_retry_at, at }) => next_retry_at! - at)
  expect(delays.slice(-2)).toEqual(expected)
})

test("DEC-5: the idempotency-key, the webhook-id and the payload's bytes are the same on every retry", async () => {
  const harness = await startFailing(() => 0.5)
  for (const seconds of [1, 2, 4, 8, 16]) await harness.attemptAfter(seconds * 1000)
  const payload = Buffer.from([0xff, 0x00, 0x7b, 0x0a, 0xc3, 0x28])
  const raw = await harness.send(payload, { contentType: "application/vnd.acme" })
  await harness.published("delivery.attempt", 7)
  await harness.attemptAfter(1000)

  const requests = harness.receiver.to("/")
  const [message] = await harness.rows()
  expect(requests.map(({ headers }) => headers["idempotency-key"])).toEqual([
    ...Array(6).fill(message!.message_id),
    raw,
    raw,
  ])
  expect(requests.map(({ id, headers }) => id === headers["idempotency-key"])).toEqual(Array(8).fill(true))
  expect(requests.slice(0, 6).map(({ body }) => String(body))).toEqual(Array(6).fill("{}"))
  expect(requests.slice(6).map(({ body }) => body)).toEqual([payload, payload])
  expect(requests.at(-1)?.headers["content-type"]).toBe("application/vnd.acme")
})
