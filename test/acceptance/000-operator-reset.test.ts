/** Seed 000, UC-0268: what is on disk when an event is heard, and the operator's manual reset of a dead row. */
import { expect, test } from "vitest"
import { Harness } from "../support/harness.ts"

const RESET = "UPDATE webhook_deliveries SET status = 'pending', attempt_count = 0 WHERE id = ?"

/** One row that has failed all its attempts. */
async function startWithDeadRow(): Promise<{ harness: Harness; id: string }> {
  const harness = await Harness.start()
  harness.receiver.always("/", 500)
  await harness.endpoint({ retry: "gateway" })
  await harness.send()
  await harness.published("delivery.attempt", 1)
  for (const seconds of [30, 120, 600, 3600]) await harness.attemptAfter(seconds * 1000)
  await harness.published("delivery.dead", 1)
  return { harness, id: (await harness.rows())[0]!.id as string }
}

test("the row update is persisted to the database before the event is broadcast", async () => {
  const harness = await Harness.start()
  harness.receiver.queue("/", 500, 200, 400)
  await harness.endpoint({ retry: "gateway" })
  const looks: Promise<unknown>[] = []
  harness.posthorn.on("gateway:webhooks", ({ type, webhook_delivery_id }) => {
    const look = harness.sql(
      "SELECT status, attempt_count FROM webhook_deliveries WHERE id = ?",
      webhook_delivery_id,
    )
    looks.push(look.then(([row]) => [type, row?.status, row?.attempt_count]))
  })
  await harness.send()
  await harness.published("delivery.attempt", 1)
  await Promise.all(looks)
  await harness.attemptAfter(30_000)
  await harness.send({}, { maxAttempts: 1 })
  await harness.published("delivery.dead", 1)
  expect(await Promise.all(looks)).toEqual([
    ["delivery.attempt", "failed", 1],
    ["delivery.attempt", "delivered", 2],
    ["delivery.delivered", "delivered", 2],
    ["delivery.attempt", "dead", 1],
    ["delivery.dead", "dead", 1],
  ])
})

test("F1: the operator's manual reset, typed as SQL, re-enables retries at the next poll", async () => {
  const { harness, id } = await startWithDeadRow()
  const answer = harness.receiver.hold("/")
  await harness.sql(RESET, id)
  expect((await harness.rows())[0]).toMatchObject({
    status: "pending",
    dead_reason: null,
    next_retry_at: null,
  })
  harness.clock.advance(5000)
  await harness.receiver.arrived("/", 6)
  answer(200)
  await harness.published("delivery.delivered", 1)
  expect(await harness.rows()).toMatchObject([
    {
      id,
      status: "delivered",
      dead_reason: null,
      attempt_count: 1,
      next_retry_at: null,
      delivered_at: harness.clock.now(),
      error_detail: null,
    },
  ])
  expect(harness.receiver.to("/")).toHaveLength(6)
})

test("F1: a reset that sets next_retry_at too is due at that time, and not before", async () => {
  const { harness, id } = await startWithDeadRow()
  harness.receiver.always("/", 200)
  const dueAt = harness.clock.now() + 60_000
  await harness.sql(
    "UPDATE webhook_deliveries SET status = 'pending', attempt_count = 0, next_retry_at = ? WHERE id = ?",
    dueAt,
    id,
  )
  expect((await harness.rows())[0]).toMatchObject({ status: "pending", next_retry_at: dueAt })
  harness.clock.advance(30_000)
  await harness.poll()
  await harness.quiet()
  expect(harness.receiver.to("/")).toHaveLength(5)
  await harness.attemptAfter(30_000)
  expect((await harness.rows())[0]).toMatchObject({ status: "delivered", delivered_at: dueAt })
})

test("F1: a row that was reset goes through the whole schedule again", async () => {
  const { harness, id } = await startWithDeadRow()
  await harness.sql(RESET, id)
  harness.clock.advance(5000)
  // PostgreSQL's own look may come before the poll.
  const { at } = (await harness.published("delivery.attempt", 6))[5]!
  expect((await harness.rows())[0]).toMatchObject({
    status: "failed",
    dead_reason: null,
    attempt_count: 1,
    next_retry_at: at + 30_000,
  })
  await harness.attemptAfter(at + 30_000 - harness.clock.now())
  for (const seconds of [120, 600, 3600]) await harness.attemptAfter(seconds * 1000)
  expect(await harness.published("delivery.dead", 2)).toHaveLength(2)
  expect((await harness.rows())[0]).toMatchObject({
    status: "dead",
    dead_reason: "exhausted",
    attempt_count: 5,
  })
})

test("F1: the reset revives only the rows that it names", async () => {
  const harness = await Harness.start()
  harness.receiver.always("/", 500)
  await harness.endpoint({ retry: "gateway" })
  const first = await harness.send({}, { maxAttempts: 1 })
  const second = await harness.send({}, { maxAttempts: 1 })
  await harness.published("delivery.dead", 2)
  harness.receiver.always("/", 200)
  await harness.sql(
    "UPDATE webhook_deliveries SET status = 'pending', attempt_count = 0 WHERE message_id = ?",
    second,
  )
  harness.clock.advance(5000)
  await harness.published("delivery.delivered", 1)
  await harness.quiet()
  expect(await harness.rows()).toMatchObject([
    { message_id: first, status: "dead", attempt_count: 1 },
    { message_id: second, status: "delivered", attempt_count: 1 },
  ])
})
