/** The retry budget of an endpoint, and the share of slots that retries take in a process. */
import { expect, test } from "vitest"
import type { PolicyInput } from "../../src/core/policy.ts"
import { sendMany, virtualTime } from "../support/virtual-time.ts"

const SECOND = 1000
const MINUTE = 60_000
/** A 404 opens no breaker, so that only the budget limits the retries. */
const EVERY_SECOND: PolicyInput = { delays: [1], jitter: "none", maxAttempts: 100 }

test("an empty budget defers retries to one a minute, and drops none; first attempts go at once", async () => {
  const { harness, receiver, clock, pass } = await virtualTime()
  await harness.endpoint({ retry: EVERY_SECOND })
  receiver.always("/", 404)
  await sendMany(harness, 50)
  await harness.published("delivery.attempt", 50)
  await pass(30 * SECOND, SECOND)
  expect(receiver.requests).toHaveLength(50 + 20)
  await pass(10 * MINUTE, 10 * SECOND)
  expect(receiver.requests.length - 70).toBeGreaterThanOrEqual(9)
  expect(receiver.requests.length - 70).toBeLessThanOrEqual(11)
  const waiting = await harness.posthorn.deliveries.list({ limit: 50 })
  expect(waiting.data.map(({ status, waitReason }) => [status, waitReason])).toEqual(
    Array.from({ length: 50 }, () => ["failed", "budget"]),
  )

  const [endpoint] = (await harness.posthorn.endpoints.list("acme")).data
  expect(endpoint!.budget).toMatchObject({ tokens: 100, retriesAt: expect.any(Date) })
  expect(endpoint!.budget!.left).toBeLessThan(5)

  const before = receiver.requests.length
  await harness.send({ n: "new" })
  await harness.calm()
  expect(receiver.requests.slice(before)).toMatchObject([{ body: '{"n":"new"}', at: clock.now() }])
})

test("successes give the budget back, so that deferred retries do not wait after the outage", async () => {
  const { harness, receiver, pass } = await virtualTime()
  await harness.endpoint({ retry: EVERY_SECOND })
  receiver.always("/", 404)
  await sendMany(harness, 200)
  await harness.published("delivery.attempt", 200)
  await pass(MINUTE, SECOND)
  receiver.always("/", 200)
  await pass(3 * MINUTE, SECOND)
  await harness.published("delivery.delivered", 200)
})

test("a restart does not refill the budget", async () => {
  const { harness, receiver, pass } = await virtualTime()
  await harness.endpoint({ retry: EVERY_SECOND })
  receiver.always("/", 404)
  await sendMany(harness, 50)
  await harness.published("delivery.attempt", 50)
  await pass(30 * SECOND, SECOND)
  await harness.restart()
  await pass(20 * SECOND, SECOND)
  expect(receiver.requests).toHaveLength(50 + 20)
})

test("an ordered endpoint waits for its budget, and keeps its order", async () => {
  const { harness, receiver, pass } = await virtualTime()
  await harness.endpoint({ ordered: true, retry: EVERY_SECOND })
  receiver.always("/", 404)
  await sendMany(harness, 3)
  await harness.published("delivery.attempt", 1)
  await pass(MINUTE, SECOND)
  expect(receiver.requests.length).toBeLessThanOrEqual(1 + 21)
  receiver.requests.length = 0
  receiver.always("/", 200)
  await pass(2 * MINUTE, SECOND)
  expect(receiver.requests.map(({ body }) => JSON.parse(body).n)).toEqual([0, 1, 2])
})

test("a delivery whose age ends while the budget defers it gets one attempt", async () => {
  const { harness, receiver, pass } = await virtualTime()
  await harness.endpoint({
    concurrency: 1,
    retry: { delays: [1], jitter: "none", maxAge: 50, budget: { tokens: 5 } },
  })
  receiver.always("/", 404)
  await sendMany(harness, 2)
  await harness.published("delivery.attempt", 2)
  await pass(40 * SECOND, SECOND)
  expect(receiver.requests).toHaveLength(3)
  receiver.always("/", 200)
  await pass(3 * MINUTE, SECOND)
  await harness.published("delivery.delivered", 2)
})

const FAILING = 900

test("900 of 1000 endpoints fail: no first attempt of the others waits for a retry's slot", {
  timeout: 120_000,
}, async () => {
  const { harness, receiver, clock, pass } = await virtualTime({ maxInFlight: 500 })
  const retry: PolicyInput = { delays: [30], jitter: "none", maxAttempts: 50, breaker: false, budget: false }
  await harness.endpoint({ eventTypes: ["nothing"] })
  const outages: unknown[] = []
  harness.posthorn.on("engine.outage.began", (event) => void outages.push(event))
  let afterMs = 0
  for (let i = 0; i < 1000; i++) {
    const group = i < FAILING ? "failing" : "fine"
    const url = harness.receiver.url(`/${group}/${i}`)
    await harness.posthorn.endpoints.create("acme", { url, eventTypes: [group], retry })
    if (i < FAILING) receiver.by(`/failing/${i}`, () => ({ answer: 503, afterMs }))
  }
  await sendMany(harness, 1, "failing")
  await harness.published("delivery.attempt", FAILING)
  // The retries want more slots than there are, and keep them.
  afterMs = 10 * MINUTE
  await pass(30 * SECOND, 10 * SECOND)
  for (let round = 0; round < 3; round++) {
    await pass(SECOND, SECOND)
    const before = receiver.requests.length
    expect(receiver.inFlight).toBe(250)
    await sendMany(harness, 1, "fine")
    await harness.calm()
    const fine = receiver.requests.slice(before).filter(({ path }) => path.startsWith("/fine"))
    expect(fine.map(({ at }) => at)).toEqual(Array.from({ length: 1000 - FAILING }, () => clock.now()))
  }
  afterMs = 0
  await pass(11 * MINUTE, 10 * MINUTE)
  await harness.published("delivery.attempt", 2 * FAILING + 3 * (1000 - FAILING))
  expect(outages).toEqual([])
})

test("sending all that waits now fills the budget", async () => {
  const { harness, receiver, pass } = await virtualTime()
  await harness.endpoint({ retry: EVERY_SECOND })
  receiver.always("/", 404)
  await sendMany(harness, 100)
  await harness.published("delivery.attempt", 100)
  await pass(30 * SECOND, SECOND)
  receiver.always("/", 200)
  await harness.posthorn.deliveries.sendNow({})
  await harness.published("delivery.delivered", 100)
})
