/** The order of deliveries in a lane, fetched and handed over, and how many a worker prefetches. */
import { expect, test, vi } from "vitest"
import type { EndpointInput } from "../../src/index.ts"
import { Harness, type HarnessOptions } from "../support/harness.ts"

interface Course extends HarnessOptions {
  /** Number of messages that fail at first, 10 ms apart. */
  readonly failing?: number
  /** The final answer to the others. */
  readonly status?: number
}

/** An endpoint whose answers are held back. */
async function start(
  endpoint: Partial<EndpointInput>,
  { failing = 0, status = 200, ...options }: Course = {},
) {
  const harness = await Harness.start(options)
  const endpointId = await harness.endpoint(endpoint)
  harness.receiver.queue("/", ...Array(failing).fill(500))
  for (let n = 1; n <= failing; n++) {
    await harness.send({ n: `failed ${n}` })
    await harness.published("delivery.attempt", n)
    harness.clock.advance(10)
  }
  const held: (() => void)[] = []
  harness.receiver.always(
    "/",
    (_request, response) => void held.push(() => void response.writeHead(status).end()),
  )
  const sent = () => harness.receiver.requests.map(({ body }) => JSON.parse(body.toString()).n)
  /** Answers one after the other until so many were sent, and tells in which order. */
  const order = async (count: number) => {
    await harness.calm()
    while (sent().length < count) {
      await expect.poll(() => held.length).toBeGreaterThan(0)
      held.shift()!()
      await harness.receiver.arrived("/", sent().length + 1)
      await harness.calm()
    }
    return sent()
  }
  const isSent = async () =>
    (await harness.ground.inHand()).filter((row) => row.sent === 1).map(({ seq }) => seq)
  return { harness, endpointId, order, isSent }
}

test("by priority, and those of one priority as they came, whatever came first", async () => {
  const { harness, order } = await start({ concurrency: 1 })
  await harness.send({ n: "first" })
  await harness.receiver.arrived("/", 1)
  for (const n of ["low 1", "low 2", "normal", "high 1", "high 2"])
    await harness.send({ n }, { priority: n.split(" ")[0] })
  expect(await order(6)).toEqual(["first", "high 1", "high 2", "normal", "low 1", "low 2"])
})

test("messages of high priority go next, however many come at once", async () => {
  const { harness, order } = await start({ concurrency: 4 })
  await harness.send({ n: "first" })
  await harness.receiver.arrived("/", 1)
  await harness.send({ n: "low" }, { priority: "low" })
  await harness.calm()
  await harness.posthorn.sendBatch(
    "acme",
    Array.from({ length: 10 }, (_, n) => ({ eventType: "a", payload: { n }, priority: "high" })),
  )
  expect(await order(10)).not.toContain("low")
})

test("a message of high priority goes next, however many others are fetched", async () => {
  const { harness, order } = await start({ concurrency: 2 })
  for (let n = 1; n <= 20; n++) await harness.send({ n })
  await harness.receiver.arrived("/", 1)
  await harness.send({ n: "high" }, { priority: "high" })
  await harness.calm()
  expect((await order(3)).slice(1)).toContain("high")
})

const RETRY = { delays: [100], jitter: "none", maxAttempts: 3, timeout: 600, breaker: false } as const

test.each([
  ["few", { concurrency: 1 }, 40, 4],
  ["all", {}, 120, 120],
  ["as many as may be", {}, 200, 128],
])("retries that come due have one start in five while first attempts wait, %s of which are in hand", async (_, endpoint, count, handed) => {
  const { harness, order } = await start({ ...endpoint, retry: RETRY }, { failing: 10, status: 500 })
  // The lane is given back, and opened anew with the first, for as many as its endpoint may be handed.
  harness.clock.advance(11_000)
  await harness.quiet()
  for (let n = 1; n <= count; n++) {
    await harness.send({ n })
    if (n === 1) await harness.receiver.arrived("/", 11)
    await harness.calm()
  }
  expect(await harness.ground.inHand()).toHaveLength(handed)
  harness.clock.advance(90_000)
  const sent = (await order(40)).slice(10)
  const first = sent.filter((n) => typeof n === "number")
  const retried = sent.filter((n) => typeof n !== "number")
  expect(first).toEqual(first.map((_, i) => i + 1))
  expect(retried).toEqual(retried.map((_, i) => `failed ${i + 1}`))
  expect(retried.length).toBeGreaterThanOrEqual(4)
  expect(retried.length).toBeLessThanOrEqual(6)
})

test("retries that keep coming due do not starve first attempts", async () => {
  const retry = { delays: [1], jitter: "none", maxAttempts: 3, breaker: false } as const
  const { harness, order } = await start({ concurrency: 1, retry }, { failing: 20 })
  harness.clock.advance(1000)
  await harness.calm()
  for (let n = 1; n <= 5; n++) await harness.send({ n })
  expect((await order(32)).slice(20)).toEqual(expect.arrayContaining([1, 2, 3, 4, 5]))
})

test("messages that come due one after the other are sent in that order", async () => {
  const { harness, order } = await start({ concurrency: 1 })
  const startedAt = harness.clock.now()
  for (let n = 1; n <= 20; n++) await harness.send({ n }, { deliverAt: new Date(startedAt + 10_000 + n) })
  harness.clock.advance(10_000)
  for (let n = 1; n <= 20; n++) {
    harness.clock.advance(1)
    await harness.calm()
  }
  expect(await order(20)).toEqual(Array.from({ length: 20 }, (_, i) => i + 1))
})

test("however many come due while nothing is answered, a worker takes few of them in hand, and waits", async () => {
  const count = 60
  const { harness } = await start(
    {
      concurrency: 1,
      retry: { delays: [100], jitter: "none", maxAttempts: 3, timeout: 600, breaker: false },
    },
    { failing: count },
  )
  harness.clock.advance(100_000 - count * 10)
  for (let n = 1; n <= count; n++) {
    await harness.calm()
    harness.clock.advance(10)
  }
  await harness.calm()
  const setTimer = vi.spyOn(harness.clock, "setTimer")
  await new Promise((resolve) => setTimeout(resolve, 50))
  expect(setTimer.mock.calls.length).toBeLessThan(10)
  const inHand = await harness.ground.inHand()
  expect(inHand.length).toBeLessThanOrEqual(8)
  expect(inHand.filter(({ sent }) => sent === 1)).toHaveLength(1)
})

test("a delivery that is fetched while others wait is not recorded as being sent", async () => {
  const { harness, order, isSent } = await start(
    { concurrency: 2, retry: { delays: [1], jitter: "none", maxAttempts: 3, breaker: false } },
    { failing: 1 },
  )
  for (let n = 1; n <= 3; n++) await harness.send({ n })
  await harness.calm()
  harness.clock.advance(1000)
  await order(5)
  const before = await isSent()
  await harness.send({ n: 7 })
  await harness.calm()
  expect((await isSent()).filter((seq) => !before.includes(seq))).toEqual([])
})

test("the deliveries recorded as being sent are those that are sent, also where a fetch keeps places for retries", async () => {
  const { harness, endpointId, isSent } = await start({ concurrency: 1, retry: RETRY }, { failing: 2 })
  await harness.posthorn.endpoints.pause("acme", endpointId)
  for (let n = 1; n <= 3; n++) await harness.send({ n })
  harness.clock.advance(100_000)
  await harness.posthorn.endpoints.resume("acme", endpointId)
  await harness.receiver.arrived("/", 3)
  await harness.calm()
  const ids = await harness.sql(
    "SELECT message_id FROM webhook_deliveries WHERE seq = ?",
    (await isSent())[0] as number,
  )
  expect(await isSent()).toHaveLength(1)
  expect(harness.receiver.requests[2]!.headers["webhook-id"]).toBe(ids[0]!.message_id)
})

test("a priority that there is none of cannot be typed", async () => {
  const { harness } = await start({})
  await harness.send({ n: 1 })
  for (const table of ["webhook_deliveries", "messages"])
    await expect(harness.sql(`UPDATE ${table} SET priority = 3`)).rejects.toThrow(/check/i)
})
