/** How lanes behave towards each other and towards what their endpoint allows. */
import { describe, expect, test } from "vitest"
import type { Store } from "../../src/store/store.ts"
import { Harness, type HarnessOptions } from "../support/harness.ts"
import { wrapLanes } from "../support/wrap-lanes.ts"

const QUICK = { delays: [1], maxAttempts: 3 }

test("an endpoint that hangs delays nobody else", async () => {
  const harness = await Harness.start()
  harness.receiver.always("/hangs", () => {})
  await harness.endpoint({}, "/hangs")
  await harness.endpoint({}, "/fine")
  for (let i = 0; i < 50; i++) await harness.send({ i })
  await harness.receiver.arrived("/fine", 50)
  await harness.published("delivery.delivered", 50)
  expect(harness.receiver.to("/hangs")).toHaveLength(1)
})

test("a slow request does not hold up the retries and new messages of its own unordered endpoint", async () => {
  const harness = await Harness.start()
  const never = () => {}
  harness.receiver.queue("/", 200, 200, never, 500)
  await harness.endpoint({ retry: QUICK })
  for (let i = 0; i < 2; i++) {
    await harness.send()
    await harness.published("delivery.delivered", i + 1)
  }
  await harness.send({ slow: true })
  await harness.receiver.arrived("/", 3)
  await harness.send({ fails: true })
  await harness.published("delivery.attempt", 3)
  harness.clock.advance(1000)
  await harness.published("delivery.delivered", 3)
  await harness.send({ another: true })
  await harness.published("delivery.delivered", 4)
  expect(harness.receiver.to("/")).toHaveLength(6)
})

test("pause holds what waits and what comes, and resume sends it all", async () => {
  const harness = await Harness.start()
  const id = await harness.endpoint()
  await harness.posthorn.endpoints.pause("acme", id)
  for (let i = 0; i < 5; i++) await harness.send()
  harness.clock.advance(40 * 86_400_000)
  await harness.poll()
  expect(harness.receiver.requests).toHaveLength(0)
  await harness.posthorn.endpoints.resume("acme", id)
  await harness.published("delivery.delivered", 5)
})

test("disabled: new messages get no row there, and what waits goes when it is enabled again", async () => {
  const harness = await Harness.start()
  const id = await harness.endpoint()
  await harness.posthorn.endpoints.pause("acme", id)
  await harness.send()
  await harness.posthorn.endpoints.update("acme", id, { disabled: true })
  await harness.posthorn.endpoints.resume("acme", id)
  expect(await harness.posthorn.send("acme", { eventType: "a", payload: {} })).toMatchObject({ matched: 0 })
  await harness.poll()
  expect(harness.receiver.requests).toHaveLength(0)
  await harness.posthorn.endpoints.update("acme", id, { disabled: false })
  await harness.published("delivery.delivered", 1)
})

test("a rate limit holds in every second", async () => {
  const harness = await Harness.start()
  await harness.endpoint({ rateLimit: 10 })
  await harness.posthorn.sendBatch(
    "acme",
    Array.from({ length: 35 }, (_, i) => ({ eventType: "a", payload: { i } })),
  )
  for (const seconds of [1, 2, 3]) {
    await harness.published("delivery.delivered", seconds * 10)
    await harness.poll()
    expect(harness.receiver.requests).toHaveLength(seconds * 10)
    harness.clock.advance(999)
    await harness.poll()
    expect(harness.receiver.requests).toHaveLength(seconds * 10)
    harness.clock.advance(1)
  }
  await harness.published("delivery.delivered", 35)
})

test("an application's rate limit holds over all its endpoints, and for what is changed later", async () => {
  const harness = await Harness.start()
  for (const path of ["/a", "/b", "/c"]) await harness.endpoint({ rateLimit: path === "/c" ? 1 : null }, path)
  const { applications } = harness.posthorn
  await applications.update("acme", { rateLimit: 10 })
  const messages = Array.from({ length: 10 }, (_, i) => ({ eventType: "a", payload: { i } }))
  await harness.posthorn.sendBatch("acme", messages)
  await harness.published("delivery.delivered", 10)
  await harness.poll()
  expect(harness.receiver.requests).toHaveLength(10)
  expect(harness.receiver.to("/c").length).toBeLessThanOrEqual(1)
  harness.clock.advance(999)
  await harness.poll()
  expect(harness.receiver.requests).toHaveLength(10)
  harness.clock.advance(1)
  await harness.published("delivery.delivered", 20)
  await harness.poll()
  expect(harness.receiver.requests).toHaveLength(20)
  await applications.update("acme", { rateLimit: null })
  harness.clock.advance(1000)
  await expect.poll(() => harness.receiver.requests.length).toBeGreaterThan(20)
})

/** Requests in flight before each of the first answers of an endpoint with a backlog. */
async function expectUnderWay(harness: Harness, expected: readonly number[], answerMs = 0): Promise<void> {
  const waiting: (() => void)[] = []
  harness.receiver.always("/", (_request, response) => void waiting.push(() => void response.end()))
  await harness.endpoint({ concurrency: 4, eventTypes: ["backlog"] })
  await harness.posthorn.sendBatch(
    "acme",
    Array.from({ length: 40 }, () => ({ eventType: "backlog", payload: {} })),
  )
  for (const [answered, underWay] of expected.entries()) {
    await harness.receiver.arrived("/", answered + underWay)
    await harness.published("delivery.delivered", answered)
    await harness.poll()
    expect(waiting).toHaveLength(underWay)
    harness.clock.advance(answerMs)
    waiting.shift()!()
  }
}

test("concurrency grows from one with each success, to what the endpoint allows and no further", async () => {
  await expectUnderWay(await Harness.start(), [1, 2, 3, 4, 4, 4, 4])
})

/** Other endpoints have enough requests in flight to keep the process busy. */
async function startBeside256(options: HarnessOptions = {}): Promise<Harness> {
  const harness = await Harness.start(options)
  harness.receiver.always("/hangs", () => {})
  for (let i = 0; i < 256; i++) await harness.endpoint({ eventTypes: ["hangs"] }, "/hangs")
  await harness.posthorn.send("acme", { eventType: "hangs", payload: {} })
  await harness.receiver.arrived("/hangs", 256)
  return harness
}

test.each([
  ["longer than answering it grows to two", 20, 10, [1, 2, 2, 2, 2]],
  ["less time than answering it grows as ever", 10, 20, [1, 2, 3, 4, 4]],
])("where writing takes %s", async (_, writeMs, answerMs, expected) => {
  const wrapStore = (store: Store) =>
    wrapLanes(store, (session) => ({
      settleIfClaimed: (...args) => {
        harness.clock.advance(writeMs)
        return session.settleIfClaimed(...args)
      },
    }))
  const harness = await startBeside256({ wrapStore })
  await expectUnderWay(harness, expected, answerMs)
})

test.each([
  ["with enough requests in flight it grows to two", 0, [1, 2, 2, 2, 2]],
  ["whose other requests hang it grows as ever", 2000, [1, 2, 3, 4, 4]],
])("in a busy process %s", async (_, underWayMs, expected) => {
  const harness = await startBeside256()
  harness.clock.isBusy = true
  harness.clock.advance(underWayMs)
  await expectUnderWay(harness, expected)
})

describe.each([
  ["is fetched farther ahead", { a: 1 }, [2, 2, 4, 8, 8]],
  ["with large payloads is not", { a: "x".repeat(150_000) }, [2, 2, 2, 2, 2]],
])("a lane that runs dry before its next fetch comes back", (what, payload, limits) => {
  test(what, async () => {
    const asked: number[] = []
    let fetched = 0
    const wrapStore = (store: Store) =>
      wrapLanes(store, (session) => ({
        fetch: async (want, at) => {
          asked.push(want.limit)
          if (fetched > 0) await harness.published("delivery.delivered", fetched)
          const work = await session.fetch(want, at)
          fetched += work.deliveries.length
          return work
        },
      }))
    const harness = await Harness.start({ wrapStore })
    await harness.endpoint({ concurrency: 1 })
    await harness.posthorn.sendBatch(
      "acme",
      Array.from({ length: 30 }, () => ({ eventType: "a", payload })),
    )
    await harness.published("delivery.delivered", 30)
    expect(asked.slice(0, limits.length)).toEqual(limits)
  })
})

test.each([
  true,
  false,
])("a lane (ordered: %s) is fetched right behind the settle of the one before", async (ordered) => {
  const calls: string[] = []
  const wrapStore = (store: Store) =>
    wrapLanes(store, (session) => ({
      fetch: (...args) => {
        calls.push("fetch")
        return session.fetch(...args)
      },
      settleIfClaimed: (...args) => {
        calls.push("settle")
        return session.settleIfClaimed(...args)
      },
    }))
  const harness = await Harness.start({ wrapStore })
  await harness.endpoint({ ordered, concurrency: 1 })
  await harness.posthorn.sendBatch(
    "acme",
    Array.from({ length: 3 }, () => ({ eventType: "a", payload: {} })),
  )
  await harness.published("delivery.delivered", 3)
  const rounds = ordered ? 3 : 1
  expect(calls.slice(0, 2 * rounds + 1)).toEqual([...Array(rounds).fill(["fetch", "settle"]).flat(), "fetch"])
})

test("retries are not starved by a stream of first attempts", async () => {
  const harness = await Harness.start()
  harness.receiver.queue("/", ...Array(10).fill(500))
  await harness.endpoint({ concurrency: 1, retry: { delays: [1], maxAttempts: 5, breaker: false } })
  await harness.posthorn.sendBatch(
    "acme",
    Array.from({ length: 10 }, () => ({ eventType: "a", payload: {} })),
  )
  await harness.published("delivery.attempt", 10)
  await harness.posthorn.sendBatch(
    "acme",
    Array.from({ length: 100 }, () => ({ eventType: "a", payload: {} })),
  )
  harness.clock.advance(1000)
  const attempts = await harness.published("delivery.attempt", 80)
  const retries = attempts.slice(10, 80).filter(({ attempt_count }) => attempt_count > 1)
  expect(retries.length).toBeGreaterThanOrEqual(7)
})

test("high priority goes before normal, and normal before low", async () => {
  const harness = await Harness.start()
  const id = await harness.endpoint({ concurrency: 1 })
  await harness.posthorn.endpoints.pause("acme", id)
  for (const priority of ["low", "normal", "high"] as const) await harness.send({ priority }, { priority })
  await harness.posthorn.endpoints.resume("acme", id)
  await harness.published("delivery.delivered", 3)
  expect(harness.receiver.requests.map(({ body }) => JSON.parse(body.toString()).priority)).toEqual([
    "high",
    "normal",
    "low",
  ])
})

test("priority is refused for a message that an ordered endpoint gets", async () => {
  const harness = await Harness.start()
  await harness.endpoint({ ordered: true })
  await expect(harness.send({}, { priority: "high" })).rejects.toMatchObject({
    code: "invalid_input",
    field: "priority",
  })
  expect(await harness.rows()).toEqual([])
})

test("a changed URL, secret and policy apply from the next attempt, due times already written stay", async () => {
  const harness = await Harness.start()
  harness.receiver.always("/old", 500)
  const id = await harness.endpoint({ retry: { delays: [60, 10], maxAttempts: 5 } }, "/old")
  await harness.send()
  await harness.published("delivery.attempt", 1)
  harness.receiver.always("/new", 500)
  await harness.posthorn.endpoints.update("acme", id, {
    url: harness.receiver.url("/new"),
    retry: { delays: [7], maxAttempts: 2 },
  })
  harness.clock.advance(59_999)
  expect(harness.receiver.to("/new")).toHaveLength(0)
  harness.clock.advance(1)
  await harness.published("delivery.dead", 1)
  expect(harness.receiver.to("/old")).toHaveLength(1)
  expect(harness.receiver.to("/new")).toHaveLength(1)
  expect((await harness.rows())[0]).toMatchObject({
    dead_reason: "exhausted",
    attempt_count: 2,
    target_url: harness.receiver.url("/new"),
  })
})

test("Retry-After holds the whole lane, and 410 disables the endpoint and holds the rest", async () => {
  const harness = await Harness.start({ random: () => 0.5 })
  harness.receiver.queue(
    "/",
    (_request, response) => void response.writeHead(429, { "retry-after": "90" }).end(),
    410,
  )
  await harness.endpoint({ concurrency: 1 })
  for (let i = 0; i < 3; i++) await harness.send()
  await harness.published("delivery.attempt", 1)
  harness.clock.advance(89_999)
  await harness.poll()
  expect(harness.receiver.requests).toHaveLength(1)
  harness.clock.advance(1)
  const [dead] = await harness.published("delivery.dead", 1)
  expect(dead!.reason).toBe("gone")
  await harness.poll()
  expect((await harness.posthorn.endpoints.list("acme")).data[0]).toMatchObject({ disabled: true })
  expect(
    (await harness.rows())
      .map(({ status }) => status)
      .filter((status) => status === "pending" || status === "failed"),
  ).toHaveLength(2)
  expect(harness.receiver.requests).toHaveLength(2)
})

test("deleting an endpoint cancels what waits for it, with a record and an event for each", async () => {
  const harness = await Harness.start()
  harness.receiver.always("/", 500)
  const id = await harness.endpoint({ retry: "gateway" })
  for (let i = 0; i < 250; i++) await harness.send()
  await harness.published("delivery.attempt", 250)
  await harness.posthorn.endpoints.delete("acme", id)
  const dead = await harness.published("delivery.dead", 250)
  expect(new Set(dead.map(({ reason }) => reason))).toEqual(new Set(["cancelled"]))
  expect(await harness.posthorn.stats()).toMatchObject({ dead: 250, failed: 0, pending: 0 })
  await expect(harness.posthorn.dead.retry(dead[0]!.webhook_delivery_id)).rejects.toMatchObject({
    code: "conflict",
  })
})
