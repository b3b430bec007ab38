/** Seed 002, work order 05: what a pause, downtime or the line kept from being tried gets an attempt before its seven days count. */
import { expect, test } from "vitest"
import { Harness } from "../support/harness.ts"

const DAY_MS = 86_400_000

/** One webhook for a paused endpoint, eight days later. */
async function pausedForEightDays(): Promise<{ harness: Harness; resume: () => Promise<unknown> }> {
  const harness = await Harness.start()
  const endpointId = await harness.endpoint({ retry: "relay" })
  await harness.posthorn.endpoints.pause("acme", endpointId)
  await harness.send()
  harness.clock.advance(8 * DAY_MS)
  await harness.poll()
  await harness.quiet()
  return { harness, resume: () => harness.posthorn.endpoints.resume("acme", endpointId) }
}

test("a webhook that a pause held past 7 days is not given up while it is held", async () => {
  const { harness } = await pausedForEightDays()
  expect((await harness.rows())[0]).toMatchObject({ status: "pending", attempt_count: 0 })
  expect(harness.receiver.requests).toHaveLength(0)
})

test("a webhook that a pause held past 7 days gets one attempt, and is delivered by it", async () => {
  const { harness, resume } = await pausedForEightDays()
  await resume()
  await harness.published("delivery.delivered", 1)
  expect((await harness.rows())[0]).toMatchObject({ status: "delivered", attempt_count: 1 })
})

test("a webhook that a pause held past 7 days is a dead letter when its one attempt fails", async () => {
  const { harness, resume } = await pausedForEightDays()
  harness.receiver.always("/", 500)
  await resume()
  const [dead] = await harness.published("delivery.dead", 1)
  expect(dead).toMatchObject({ reason: "expired", attempt_count: 1, last_error: "HTTP 500: answer 500" })
  expect(harness.receiver.to("/")).toHaveLength(1)
})

test("a webhook whose retry fell into 8 days of downtime gets one attempt first", async () => {
  const harness = await Harness.start()
  harness.receiver.queue("/", 500)
  await harness.endpoint({ retry: "relay" })
  await harness.send()
  await harness.published("delivery.attempt", 1)
  await harness.close()
  harness.clock.advance(8 * DAY_MS)
  await harness.open()
  await harness.published("delivery.delivered", 1)
  expect((await harness.rows())[0]).toMatchObject({ status: "delivered", attempt_count: 2 })
})

test("a webhook that waited 7 days in line behind another gets one attempt when its turn comes", async () => {
  const harness = await Harness.start()
  harness.receiver.always("/", 500)
  await harness.endpoint({ retry: "relay" })
  const [first, second] = [await harness.send({ n: 1 }), await harness.send({ n: 2 })]
  await harness.published("delivery.attempt", 1)
  await harness.close()
  // As after a week of failures: the head's next step is the end of its age.
  const endsAt = harness.clock.now() + 7 * DAY_MS
  await harness.sql(
    "UPDATE webhook_deliveries SET attempt_count = 180, next_retry_at = ? WHERE message_id = ?",
    endsAt,
    first,
  )
  await harness.open()
  harness.clock.advance(7 * DAY_MS)
  const dead = await harness.published("delivery.dead", 2)
  expect(dead).toMatchObject([
    { message_id: first, reason: "expired", attempt_count: 180 },
    { message_id: second, reason: "expired", attempt_count: 1 },
  ])
  expect(harness.receiver.to("/").map(({ id }) => id)).toEqual([first, second])
})

test("the seven days run from deliverAt when that is later", async () => {
  const harness = await Harness.start()
  harness.receiver.queue("/", 500)
  await harness.endpoint({ retry: "relay" })
  await harness.send({}, { delaySeconds: 10 * 86_400 })
  await harness.attemptAfter(10 * DAY_MS)
  expect((await harness.rows())[0]).toMatchObject({
    status: "failed",
    next_retry_at: harness.clock.now() + 1000,
  })
})

const SQL_RESET = "UPDATE webhook_deliveries SET status = 'pending', attempt_count = 0"

test.each([
  [
    "an operator's retry",
    async (harness: Harness) => harness.posthorn.dead.retry((await harness.rows())[0]!.id as string),
  ],
  ["an operator's reset by SQL", (harness: Harness) => harness.sql(SQL_RESET)],
])("%s of an expired webhook starts its seven days anew", async (_, revive) => {
  const { harness, resume } = await pausedForEightDays()
  harness.receiver.queue("/", 500, 500)
  await resume()
  await harness.published("delivery.dead", 1)
  await revive(harness)
  await harness.poll()
  await harness.published("delivery.attempt", 2)
  expect((await harness.rows())[0]).toMatchObject({
    status: "failed",
    dead_reason: null,
    attempt_count: 1,
    next_retry_at: harness.clock.now() + 1000,
  })
})
