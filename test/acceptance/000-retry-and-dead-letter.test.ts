/** Seed 000, UC-0268: retry webhook delivery with exponential backoff and dead letter. */
import { expect, test } from "vitest"
import { Harness } from "../support/harness.ts"

test("S1: the first delivery failure schedules a 30-second retry", async () => {
  const harness = await Harness.start()
  harness.receiver.always("/", 500)
  await harness.endpoint({ retry: "gateway" })
  await harness.send()
  await harness.published("delivery.attempt", 1)
  const [row] = harness.rows()
  expect(row).toMatchObject({
    status: "failed",
    attempt_count: 1,
    next_retry_at: harness.clock.now() + 30_000,
  })
  expect(row?.error_detail).toBe("HTTP 500: answer 500")
  harness.clock.advance(29_999)
  expect(harness.receiver.to("/")).toHaveLength(1)
  harness.clock.advance(1)
  await harness.published("delivery.attempt", 2)
  expect(harness.rows()[0]).toMatchObject({
    status: "failed",
    attempt_count: 2,
    next_retry_at: harness.clock.now() + 120_000,
  })
})

test("S2: the fifth consecutive failure marks the row dead and emits a dead-letter event", async () => {
  const harness = await Harness.start()
  harness.receiver.always("/", 500)
  const endpointId = await harness.endpoint({ retry: "gateway" })
  const messageId = await harness.send({}, { sessionId: "session-7" })
  for (const [i, seconds] of [0, 30, 120, 600, 3600].entries()) {
    harness.clock.advance(seconds * 1000)
    await harness.published("delivery.attempt", i + 1)
  }
  const [dead] = await harness.published("delivery.dead", 1)
  const [row] = harness.rows()
  expect(row).toMatchObject({
    status: "dead",
    dead_reason: "exhausted",
    attempt_count: 5,
    next_retry_at: null,
  })
  expect(dead).toMatchObject({
    webhook_delivery_id: row?.id,
    webhook_id: endpointId,
    message_id: messageId,
    session_id: "session-7",
    reason: "exhausted",
    last_error: "HTTP 500: answer 500",
  })
  harness.clock.advance(30 * 86_400_000)
  await harness.posthorn.engine?.pollOnce()
  expect(harness.receiver.to("/")).toHaveLength(5)
})
