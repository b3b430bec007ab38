/** Seed 002, work order 05: in-order delivery for each endpoint, resumed from database state. */
import { expect, test } from "vitest"
import { Harness } from "../support/harness.ts"

/** The payloads' numbers in the order in which they arrived. */
function arrivals(harness: Harness, path = "/"): number[] {
  return harness.receiver.to(path).map(({ body }) => JSON.parse(String(body)).n)
}

async function startWithLine(...answers: number[]): Promise<{ harness: Harness; endpointId: string }> {
  const harness = await Harness.start()
  harness.receiver.queue("/", ...answers)
  const endpointId = await harness.endpoint({ retry: "relay" })
  for (let n = 1; n <= 3; n++) await harness.send({ n })
  await harness.published("delivery.attempt", 1)
  return { harness, endpointId }
}

test("the relay preset makes an endpoint ordered", async () => {
  const harness = await Harness.start()
  const endpointId = await harness.endpoint({ retry: "relay" })
  expect(await harness.posthorn.endpoints.get("acme", endpointId)).toMatchObject({ ordered: true })
})

test("webhook N+1 is not delivered until webhook N is delivered", async () => {
  const { harness } = await startWithLine(500, 500, 500)
  for (const seconds of [1, 2, 4]) {
    await harness.quiet()
    expect(arrivals(harness).every((n) => n === 1)).toBe(true)
    await harness.attemptAfter(seconds * 1000)
  }
  await harness.published("delivery.delivered", 3)
  expect(arrivals(harness)).toEqual([1, 1, 1, 1, 2, 3])
})

test("webhook N+1 is delivered as soon as webhook N has failed for good", async () => {
  const { harness } = await startWithLine(400)
  await harness.published("delivery.delivered", 2)
  expect(arrivals(harness)).toEqual([1, 2, 3])
  expect((await harness.rows()).map(({ status }) => status)).toEqual(["dead", "delivered", "delivered"])
})

test("webhook N+1 is not requested while the answer to webhook N is still to come", async () => {
  const harness = await Harness.start()
  const answer = harness.receiver.hold("/")
  await harness.endpoint({ retry: "relay" })
  for (let n = 1; n <= 3; n++) await harness.send({ n })
  await harness.receiver.arrived("/", 1)
  await harness.poll()
  expect(arrivals(harness)).toEqual([1])
  answer(200)
  await harness.published("delivery.delivered", 3)
  expect(arrivals(harness)).toEqual([1, 2, 3])
})

test("each webhook is in the database as delivered before the next is requested", async () => {
  const harness = await Harness.start()
  const seen: unknown[] = []
  harness.receiver.always("/", async (_request, response) => {
    seen.push((await harness.rows()).map(({ status }) => status))
    response.end()
  })
  await harness.endpoint({ retry: "relay" })
  const messages = [1, 2, 3].map((n) => ({ eventType: "invoice.paid", payload: { n } }))
  await harness.posthorn.sendBatch("acme", messages)
  await harness.published("delivery.delivered", 3)
  expect(seen).toEqual([
    ["pending", "pending", "pending"],
    ["delivered", "pending", "pending"],
    ["delivered", "delivered", "pending"],
  ])
})

test("the order is kept across restarts", async () => {
  const { harness } = await startWithLine(500, 500, 200, 500)
  await harness.restart()
  await harness.attemptAfter(1000)
  await harness.restart()
  await harness.attemptAfter(2000)
  await harness.published("delivery.attempt", 4)
  await harness.restart()
  await harness.send({ n: 4 })
  await harness.quiet()
  expect(arrivals(harness)).toEqual([1, 1, 1, 2])
  await harness.attemptAfter(1000)
  await harness.published("delivery.delivered", 4)
  expect(arrivals(harness)).toEqual([1, 1, 1, 2, 2, 3, 4])
})

test("after a restart the retry schedule is resumed from database state", async () => {
  const { harness } = await startWithLine(500, 500, 500, 500)
  await harness.attemptAfter(1000)
  await harness.attemptAfter(2000)
  harness.clock.advance(1500)
  await harness.restart()
  const attempt = await harness.attemptAfter(2500)
  expect(attempt).toMatchObject({ attempt_count: 4, next_retry_at: harness.clock.now() + 8000 })
})

test("an endpoint whose line is stuck holds up no other endpoint", async () => {
  const { harness } = await startWithLine(500)
  await harness.endpoint({ retry: "relay" }, "/other")
  for (let n = 4; n <= 6; n++) await harness.send({ n })
  await harness.published("delivery.delivered", 3)
  expect(arrivals(harness)).toEqual([1])
  expect(arrivals(harness, "/other")).toEqual([4, 5, 6])
})

test("a batch keeps its own order", async () => {
  const harness = await Harness.start()
  await harness.endpoint({ retry: "relay" })
  const messages = Array.from({ length: 20 }, (_, n) => ({ eventType: "invoice.paid", payload: { n } }))
  await harness.posthorn.sendBatch("acme", messages)
  await harness.published("delivery.delivered", 20)
  expect(arrivals(harness)).toEqual(messages.map(({ payload }) => payload.n))
})

test("a webhook with deliverAt blocks nobody before its time, and joins the line then", async () => {
  const harness = await Harness.start()
  await harness.endpoint({ retry: "relay" })
  await harness.send({ n: 1 }, { deliverAt: new Date(harness.clock.now() + 60_000) })
  await harness.send({ n: 2 })
  await harness.send({ n: 3 })
  await harness.published("delivery.delivered", 2)
  expect(arrivals(harness)).toEqual([2, 3])
  harness.receiver.queue("/", 500)
  await harness.attemptAfter(60_000)
  await harness.send({ n: 4 })
  await harness.quiet()
  expect(arrivals(harness)).toEqual([2, 3, 1])
  await harness.attemptAfter(1000)
  await harness.published("delivery.delivered", 4)
  expect(arrivals(harness)).toEqual([2, 3, 1, 1, 4])
})

test("a dead webhook that an operator retries goes next, before the one that waits for its retry", async () => {
  const { harness } = await startWithLine(400, 500)
  await harness.published("delivery.attempt", 2)
  expect((await harness.rows()).map(({ status }) => status)).toEqual(["dead", "failed", "pending"])
  harness.clock.advance(400)
  await harness.posthorn.dead.retry((await harness.rows())[0]!.id as string)
  await harness.published("delivery.delivered", 1)
  await harness.quiet()
  expect(arrivals(harness)).toEqual([1, 2, 1])
  await harness.attemptAfter(600)
  await harness.published("delivery.delivered", 3)
  expect(arrivals(harness)).toEqual([1, 2, 1, 2, 3])
})
