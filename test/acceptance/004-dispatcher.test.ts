/** Seed 004, phase 6: dispatch to subscribers, batch dispatch, statistics, and what each subscriber may have of its own. */
import { expect, test } from "vitest"
import { START } from "../support/clock.ts"
import { Harness } from "../support/harness.ts"

test("a dispatch goes to every subscriber of its event type, and to no other", async () => {
  const harness = await Harness.start()
  await harness.endpoint({ retry: "jobs" }, "/all")
  await harness.endpoint({ retry: "jobs", eventTypes: ["invoice.paid", "invoice.void"] }, "/invoices")
  await harness.endpoint({ retry: "jobs", eventTypes: ["user.created"] }, "/users")
  await harness.endpoint({ retry: "jobs", disabled: true }, "/disabled")
  const send = (eventType: string) => harness.posthorn.send("acme", { eventType, payload: {} })
  expect(await send("invoice.paid")).toMatchObject({ matched: 2 })
  expect(await send("user.created")).toMatchObject({ matched: 2 })
  expect(await send("order.sent")).toMatchObject({ matched: 1 })
  await harness.published("delivery.delivered", 5)
  await harness.quiet()
  const counts = ["/all", "/invoices", "/users", "/disabled"].map((path) => harness.receiver.to(path).length)
  expect(counts).toEqual([3, 1, 1, 0])
})

test("a subscriber's failures are its own: the others have one delivery each", async () => {
  const harness = await Harness.start()
  for (const path of ["/a", "/b", "/c"]) await harness.endpoint({ retry: "jobs" }, path)
  harness.receiver.queue("/b", 500)
  await harness.send()
  await harness.published("delivery.attempt", 3)
  await harness.attemptAfter(1000)
  await harness.published("delivery.delivered", 3)
  expect(["/a", "/b", "/c"].map((path) => harness.receiver.to(path).length)).toEqual([1, 2, 1])
})

test("another application's subscribers get nothing", async () => {
  const harness = await Harness.start()
  await harness.endpoint({ retry: "jobs" })
  await harness.posthorn.applications.create({ uid: "other", name: "Other" })
  await harness.posthorn.endpoints.create("other", { url: harness.receiver.url("/other") })
  await harness.send()
  await harness.published("delivery.delivered", 1)
  await harness.quiet()
  expect(harness.receiver.to("/other")).toHaveLength(0)
})

test("batch dispatch delivers every message of the batch", async () => {
  const harness = await Harness.start()
  await harness.endpoint({ retry: "jobs", eventTypes: ["even"] })
  const batch = Array.from({ length: 30 }, (_, n) => ({ eventType: n % 2 ? "odd" : "even", payload: { n } }))
  const results = await harness.posthorn.sendBatch("acme", batch)
  expect(results.map(({ matched }) => matched)).toEqual(
    batch.map(({ eventType }) => Number(eventType === "even")),
  )
  await harness.published("delivery.delivered", 15)
  const numbers = harness.receiver.to("/").map(({ body }) => JSON.parse(String(body)).n)
  expect(numbers.sort((a, b) => a - b)).toEqual(Array.from({ length: 15 }, (_, n) => n * 2))
})

test("batch dispatch is all or nothing", async () => {
  const harness = await Harness.start()
  await harness.endpoint({ retry: "jobs" })
  const batch = [
    { eventType: "invoice.paid", payload: {} },
    { eventType: "not a type", payload: {} },
  ]
  await expect(harness.posthorn.sendBatch("acme", batch)).rejects.toMatchObject({
    code: "invalid_input",
    field: "messages[1].eventType",
  })
  expect(await harness.rows()).toEqual([])
})

test("statistics are retrieved in all, by application and by subscriber", async () => {
  const harness = await Harness.start()
  const good = await harness.endpoint({ retry: "jobs" }, "/good")
  const bad = await harness.endpoint({ retry: "jobs" }, "/bad")
  harness.receiver.always("/bad", 500)
  await harness.posthorn.applications.create({ uid: "other", name: "Other" })
  await harness.send({}, { maxAttempts: 1 })
  await harness.send()
  await harness.send({}, { delaySeconds: 60 })
  await harness.published("delivery.attempt", 4)
  const { posthorn } = harness
  expect(await posthorn.stats()).toEqual({ pending: 2, failed: 1, delivered: 2, dead: 1, calledOff: 0 })
  expect(await posthorn.stats("acme")).toEqual(await posthorn.stats())
  expect(await posthorn.stats("other")).toEqual({
    pending: 0,
    failed: 0,
    delivered: 0,
    dead: 0,
    calledOff: 0,
  })
  expect(await posthorn.endpoints.stats("acme", good)).toEqual({
    pending: 1,
    failed: 0,
    delivered: 2,
    dead: 0,
    calledOff: 0,
  })
  expect(await posthorn.endpoints.stats("acme", bad)).toEqual({
    pending: 1,
    failed: 1,
    delivered: 0,
    dead: 1,
    calledOff: 0,
  })
})

test("planned: a subscriber may have a backoff schedule of its own", async () => {
  const harness = await Harness.start()
  harness.receiver.always("/", 500)
  await harness.endpoint({ retry: { delays: [2, 3], maxAttempts: 3 } })
  await harness.send()
  await harness.published("delivery.attempt", 1)
  await harness.attemptAfter(2000)
  await harness.attemptAfter(3000)
  expect(await harness.published("delivery.dead", 1)).toMatchObject([{ attempt_count: 3 }])
})

test("planned: critical events go before others that wait", async () => {
  const harness = await Harness.start()
  const endpointId = await harness.endpoint({ retry: "jobs", concurrency: 1 })
  await harness.posthorn.endpoints.pause("acme", endpointId)
  for (const priority of ["low", "normal", "high"]) await harness.send({ priority }, { priority })
  await harness.posthorn.endpoints.resume("acme", endpointId)
  await harness.published("delivery.delivered", 3)
  const order = harness.receiver.to("/").map(({ body }) => JSON.parse(String(body)).priority)
  expect(order).toEqual(["high", "normal", "low"])
})

test("planned: a subscriber's rate limit is kept", async () => {
  const harness = await Harness.start()
  const times: number[] = []
  harness.receiver.always("/", (_request, response) => {
    times.push(harness.clock.now() - START)
    response.end()
  })
  await harness.endpoint({ retry: "jobs", rateLimit: 2 })
  const batch = Array.from({ length: 5 }, (_, n) => ({ eventType: "invoice.paid", payload: { n } }))
  await harness.posthorn.sendBatch("acme", batch)
  for (const count of [2, 4, 5]) {
    await harness.published("delivery.delivered", count)
    await harness.calm()
    harness.clock.advance(1000)
  }
  expect(times).toEqual([0, 0, 1000, 1000, 2000])
})
