/** Seed 004, phase 6: the jobs, their backoff schedule, delayed execution and claiming. */
import { expect, test } from "vitest"
import { START } from "../support/clock.ts"
import { Harness } from "../support/harness.ts"

async function startFailing(more: object = {}): Promise<Harness> {
  const harness = await Harness.start()
  harness.receiver.always("/", 500)
  await harness.endpoint({ retry: "jobs" })
  await harness.send({}, more)
  await harness.published("delivery.attempt", 1)
  return harness
}

test("wh-006b: attempts start at 0, 1, 6, 36, 156 and 756 seconds; the sixth failure is permanent", async () => {
  const harness = await startFailing()
  for (const seconds of [1, 5, 30, 120, 600]) await harness.attemptAfter(seconds * 1000)
  const attempts = await harness.published("delivery.attempt", 6)
  expect(attempts.map(({ at }) => (at - START) / 1000)).toEqual([0, 1, 6, 36, 156, 756])
  expect(await harness.published("delivery.dead", 1)).toMatchObject([
    { reason: "exhausted", attempt_count: 6 },
  ])
  harness.clock.advance(86_400_000)
  await harness.poll()
  await harness.quiet()
  expect(harness.receiver.to("/")).toHaveLength(6)
})

test("example 3: with max_attempts 10 the schedule goes on with 1800, then 3600 seconds", async () => {
  const harness = await startFailing({ maxAttempts: 10 })
  expect((await harness.rows())[0]).toMatchObject({ max_attempts: 10 })
  for (const seconds of [1, 5, 30, 120, 600, 1800, 3600, 3600, 3600]) {
    expect(harness.events.some(({ type }) => type === "delivery.dead")).toBe(false)
    await harness.attemptAfter(seconds * 1000)
  }
  expect(await harness.published("delivery.dead", 1)).toMatchObject([
    { reason: "exhausted", attempt_count: 10 },
  ])
})

test("example 1: a delivery that failed twice is retried without manual intervention until it succeeds", async () => {
  const harness = await Harness.start()
  harness.receiver.queue("/", 500, 404)
  await harness.endpoint({ retry: "jobs" })
  await harness.send()
  await harness.published("delivery.attempt", 1)
  await harness.attemptAfter(1000)
  await harness.attemptAfter(5000)
  expect((await harness.rows())[0]).toMatchObject({
    status: "delivered",
    attempt_count: 3,
    next_retry_at: null,
  })
})

test("a job can be enqueued with a delay in seconds", async () => {
  const harness = await Harness.start()
  await harness.endpoint({ retry: "jobs" })
  await harness.send({}, { delaySeconds: 30 })
  expect((await harness.rows())[0]).toMatchObject({ status: "pending", next_retry_at: START + 30_000 })
  await harness.attemptAfter(30_000)
  expect((await harness.rows())[0]).toMatchObject({ status: "delivered", attempt_count: 1 })
})

test("a job can be enqueued for a time (available_at), which a restart does not change", async () => {
  const harness = await Harness.start()
  await harness.endpoint({ retry: "jobs" })
  await harness.send({}, { deliverAt: new Date(START + 3_600_000) })
  harness.clock.advance(600_000)
  await harness.restart()
  await harness.attemptAfter(3_000_000)
  expect((await harness.rows())[0]).toMatchObject({ status: "delivered", delivered_at: START + 3_600_000 })
})

test("a job that the worker has claimed is running, and completed when the answer has come", async () => {
  const harness = await Harness.start()
  const answer = harness.receiver.hold("/")
  await harness.endpoint({ retry: "jobs" })
  await harness.send()
  await harness.receiver.arrived("/", 1)
  const job = async () => (await harness.sql("SELECT status, attempts, locked_at, locked_by FROM jobs"))[0]
  expect(await job()).toMatchObject({ status: "running", attempts: 0, locked_at: "2031-05-18 18:00:00" })
  expect((await job())?.locked_by).not.toBeNull()
  answer(200)
  await harness.published("delivery.delivered", 1)
  expect(await job()).toEqual({ status: "completed", attempts: 1, locked_at: null, locked_by: null })
})

test("a job that is finished has a result_json of its last attempt", async () => {
  const harness = await Harness.start()
  harness.receiver.queue("/", 500)
  await harness.endpoint({ retry: { delays: [1], maxAttempts: 2 } })
  const result = async () => (await harness.sql("SELECT result_json FROM jobs"))[0]!.result_json
  expect(await harness.sql("SELECT result_json FROM jobs")).toEqual([])
  await harness.send()
  await harness.published("delivery.attempt", 1)
  expect(await result()).toBeNull()
  const answer = harness.receiver.hold("/")
  harness.clock.advance(1000)
  await harness.receiver.arrived("/", 2)
  harness.clock.advance(120)
  answer(503)
  await harness.published("delivery.dead", 1)
  expect(JSON.parse((await result()) as string)).toEqual({
    status_code: 503,
    body: expect.any(String),
    error: "HTTP 503",
    duration_ms: 120,
  })
})

test("claiming is atomic: however often the queue is polled, no job is done twice", async () => {
  const harness = await Harness.start()
  await harness.endpoint({ retry: "jobs" })
  const sends = Array.from({ length: 100 }, (_, n) => harness.send({ n }))
  for (let polls = 0; polls < 10; polls++) await harness.posthorn.engine?.pollOnce()
  const ids = await Promise.all(sends)
  await harness.published("delivery.delivered", 100)
  await harness.poll()
  await harness.quiet()
  expect(
    harness.receiver
      .to("/")
      .map(({ id }) => id)
      .sort(),
  ).toEqual(ids.sort())
})

test("every attempt is tracked with its number, response code, body and duration", async () => {
  const harness = await Harness.start()
  harness.receiver.queue("/", 500, 404)
  await harness.endpoint({ retry: "jobs" })
  await harness.send()
  await harness.published("delivery.attempt", 1)
  await harness.attemptAfter(1000)
  const answer = harness.receiver.hold("/")
  harness.clock.advance(5000)
  await harness.receiver.arrived("/", 3)
  harness.clock.advance(120)
  answer(200)
  await harness.published("delivery.delivered", 1)
  const delivery = (await harness.rows())[0]!.id as string
  const { data } = await harness.posthorn.attempts.list({ delivery })
  const shown = data.map(({ attemptNumber, status, responseStatus, responseBody, durationMs }) => [
    attemptNumber,
    status,
    responseStatus,
    String(Buffer.from(responseBody ?? [])),
    durationMs,
  ])
  expect(shown).toEqual([
    [3, "succeeded", 200, "", 120],
    [2, "failed", 404, "answer 404", 0],
    [1, "failed", 500, "answer 500", 0],
  ])
})
