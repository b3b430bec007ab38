/**
 * Seed 002, work order 05: a webhook whose seven days end while it is paused, disabled, or while Posthorn is down gets one attempt
 * first. Waiting behind another webhook, or for a receiver that hangs, earns none.
 */
import { expect, test } from "vitest"
import { START } from "../support/clock.ts"
import { Harness } from "../support/harness.ts"
import { wrapLanes } from "../support/wrap-lanes.ts"

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

test("a webhook whose 7 days ended while its endpoint was disabled gets one attempt first", async () => {
  const harness = await Harness.start()
  const endpointId = await harness.endpoint({ retry: "relay" })
  await harness.posthorn.endpoints.pause("acme", endpointId)
  await harness.send()
  await harness.posthorn.endpoints.update("acme", endpointId, { disabled: true })
  await harness.posthorn.endpoints.resume("acme", endpointId)
  harness.clock.advance(8 * DAY_MS)
  await harness.posthorn.endpoints.update("acme", endpointId, { disabled: false })
  await harness.published("delivery.delivered", 1)
})

test("a webhook whose 7 days ended while the store could not be read gets one attempt first", async () => {
  let down = false
  const harness = await Harness.start({
    wrapStore: (store) =>
      wrapLanes(store, (session) => ({
        fetch: (...args) => (down ? Promise.reject(new Error("the store is down")) : session.fetch(...args)),
      })),
  })
  harness.receiver.queue("/", 500)
  await harness.endpoint({ retry: { delays: [3600], maxAge: 5400 } })
  await harness.send()
  await harness.published("delivery.attempt", 1)
  down = true
  for (let minutes = 0; minutes < 100; minutes++) {
    harness.clock.advance(60_000)
    await harness.calm()
  }
  down = false
  harness.clock.advance(60_000)
  await harness.published("delivery.delivered", 1)
})

test("webhooks that wait in line behind one that fails are dead letters when their 7 days end, without being sent", async () => {
  const harness = await Harness.start()
  harness.receiver.always("/", 500)
  await harness.endpoint({
    ordered: true,
    retry: { delays: [6 * 3600], maxAge: 7 * 86_400, autoDisable: false },
  })
  const ids: string[] = []
  for (let n = 0; n < 5; n++) {
    ids.push(await harness.send({ n }))
    await harness.published("delivery.attempt", 1)
    await harness.quiet()
    harness.clock.advance(60_000)
  }
  for (let hours = 6; hours < 7 * 24; hours += 6) await attemptAt(harness, hours * 3_600_000)
  harness.clock.advance(START + 7 * DAY_MS + 4 * 60_000 - harness.clock.now())
  const dead = await harness.published("delivery.dead", 5)
  expect(dead.map(({ message_id, reason }) => [message_id, reason])).toEqual(ids.map((id) => [id, "expired"]))
  expect(new Set(harness.receiver.to("/").map(({ id }) => id))).toEqual(new Set([ids[0]]))
  expect(dead.slice(1).every(({ attempt_count }) => attempt_count === 0)).toBe(true)
})

/** Moves the clock to so long after its start, when an attempt is due. */
async function attemptAt(harness: Harness, ms: number): Promise<void> {
  const before = harness.events.filter(({ type }) => type === "delivery.attempt").length
  harness.clock.advance(START + ms - harness.clock.now())
  await harness.published("delivery.attempt", before + 1)
  await harness.quiet()
}

test.each([
  true,
  false,
])("the backlog of a receiver that hangs shrinks as ages end, without being sent (ordered: %s)", async (ordered) => {
  const harness = await Harness.start()
  harness.receiver.hold("/")
  await harness.endpoint({
    ordered,
    concurrency: 1,
    retry: { delays: [10], maxAge: 60, timeout: 100, connectTimeout: 100 },
  })
  for (let n = 0; n < 5; n++) await harness.send({ n })
  await harness.receiver.arrived("/", 1)
  harness.clock.advance(100_000)
  const dead = await harness.published("delivery.dead", 5)
  expect(dead.map(({ reason, attempt_count }) => [reason, attempt_count])).toEqual([
    ["expired", 1],
    ...Array.from({ length: 4 }, () => ["expired", 0]),
  ])
  expect(harness.receiver.to("/")).toHaveLength(1)
})

test("a Retry-After is the receiver's wish, not a hold of ours: what it outlasts is not sent", async () => {
  const harness = await Harness.start()
  harness.receiver.queue("/", (_, response) => response.writeHead(503, { "retry-after": "7200" }).end())
  await harness.endpoint({ concurrency: 1, retry: { delays: [10], maxAge: 3600, retryAfter: 86_400 } })
  await harness.send({ n: 1 })
  await harness.published("delivery.attempt", 1)
  await harness.send({ n: 2 })
  harness.clock.advance(7_200_000)
  const dead = await harness.published("delivery.dead", 2)
  expect(dead.map(({ reason }) => reason)).toEqual(["expired", "expired"])
  expect(harness.receiver.to("/")).toHaveLength(1)
})

test("a webhook that waited 7 days in line, and was paused when they ended, gets one attempt when its turn comes", async () => {
  const harness = await Harness.start()
  harness.receiver.always("/", 500)
  const endpointId = await harness.endpoint({ retry: "relay" })
  const [first, second] = [await harness.send({ n: 1 }), await harness.send({ n: 2 })]
  await harness.published("delivery.attempt", 1)
  await harness.posthorn.endpoints.pause("acme", endpointId)
  harness.clock.advance(8 * DAY_MS)
  await harness.posthorn.endpoints.resume("acme", endpointId)
  const dead = await harness.published("delivery.dead", 2)
  expect(dead).toMatchObject([
    { message_id: first, reason: "expired", attempt_count: 2 },
    { message_id: second, reason: "expired", attempt_count: 1 },
  ])
  expect(harness.receiver.to("/").map(({ id }) => id)).toEqual([first, first, second])
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
