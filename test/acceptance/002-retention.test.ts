/** Seed 002, work order 05: retention cleanup, every hour. */
import { expect, test } from "vitest"
import { Harness } from "../support/harness.ts"

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** Everything that belongs to deliveries, by table. */
async function counts(harness: Harness): Promise<unknown> {
  const [row] = await harness.sql(`
    SELECT (SELECT count(*) FROM webhook_deliveries) AS deliveries,
           (SELECT count(*) FROM messages) AS messages,
           (SELECT count(*) FROM attempts) AS attempts`)
  return { ...row }
}

const NOTHING = { deliveries: 0, messages: 0, attempts: 0 }

/** PostgreSQL removes whole days at once: what may go from some time on goes at the next midnight. */
function goneAt(harness: Harness, at: number): number {
  return harness.ground.kind === "sqlite" ? at : Math.ceil(at / DAY_MS) * DAY_MS
}

/** The one row is there until the very moment, also for a cleanup, and gone with the cleanup at that moment. */
async function expectRemovedAt(harness: Harness, at: number): Promise<void> {
  harness.clock.advance(at - 1 - harness.clock.now())
  await harness.quiet()
  await harness.posthorn.engine?.maintainOnce()
  expect(await harness.rows()).toHaveLength(1)
  harness.clock.advance(goneAt(harness, at) - harness.clock.now())
  await harness.quiet()
  await harness.posthorn.engine?.maintainOnce()
  expect(await counts(harness)).toEqual(NOTHING)
}

/** Failed once and tried again a second later, so that no two of its times are the same. */
async function startWithOutcome(status: number): Promise<Harness> {
  const harness = await Harness.start()
  harness.receiver.queue("/", 500, status)
  await harness.endpoint({ retry: "relay" })
  await harness.send()
  await harness.published("delivery.attempt", 1)
  await harness.attemptAfter(1000)
  return harness
}

test("delivered webhooks are deleted 7 days after delivered_at, not a moment earlier", async () => {
  const harness = await startWithOutcome(200)
  const [row] = await harness.rows()
  expect(row).toMatchObject({ status: "delivered", delivered_at: (row?.received_at as number) + 1000 })
  await expectRemovedAt(harness, (row?.delivered_at as number) + 7 * DAY_MS)
})

test("webhooks that failed with a 4xx are deleted 7 days after last_attempted_at, not a moment earlier", async () => {
  const harness = await startWithOutcome(400)
  const [row] = await harness.rows()
  expect(row).toMatchObject({
    dead_reason: "rejected",
    last_attempted_at: (row?.received_at as number) + 1000,
  })
  await expectRemovedAt(harness, (row?.last_attempted_at as number) + 7 * DAY_MS)
})

test("expired dead letters are deleted 14 days after received_at, not a moment earlier", async () => {
  const harness = await Harness.start()
  harness.receiver.always("/", 500)
  const endpointId = await harness.endpoint({ retry: "relay" })
  await harness.posthorn.endpoints.pause("acme", endpointId)
  await harness.send()
  const receivedAt = harness.clock.now()
  harness.clock.advance(8 * DAY_MS)
  await harness.posthorn.endpoints.resume("acme", endpointId)
  await harness.published("delivery.dead", 1)
  expect((await harness.rows())[0]).toMatchObject({ dead_reason: "expired", received_at: receivedAt })
  await expectRemovedAt(harness, receivedAt + 14 * DAY_MS)
})

test("the cleanup runs by itself every hour", async () => {
  const harness = await startWithOutcome(200)
  const at = goneAt(harness, harness.clock.now() + 7 * DAY_MS)
  harness.clock.advance(at - 1 - harness.clock.now())
  await harness.quiet()
  // That cleanup was a millisecond too early; the next one is an hour after it.
  expect(await harness.rows()).toHaveLength(1)
  harness.clock.advance(HOUR_MS - 1)
  await harness.quiet()
  expect(await harness.rows()).toHaveLength(1)
  harness.clock.advance(1)
  await harness.quiet()
  expect(await counts(harness)).toEqual(NOTHING)
})

test("the cleanup never removes a webhook that is still to be delivered", async () => {
  const harness = await startWithOutcome(400)
  const endpointId = (await harness.rows())[0]!.webhook_id as string
  await harness.posthorn.endpoints.pause("acme", endpointId)
  await harness.send()
  await harness.sql(
    "UPDATE webhook_deliveries SET status = 'pending', attempt_count = 0 WHERE status = 'dead'",
  )
  for (let day = 0; day < 60; day += 15) {
    harness.clock.advance(15 * DAY_MS)
    await harness.quiet()
    await harness.posthorn.engine?.maintainOnce()
  }
  expect((await harness.rows()).map(({ status }) => status)).toEqual(["pending", "pending"])
  await harness.posthorn.endpoints.resume("acme", endpointId)
  await harness.published("delivery.delivered", 2)
})

test("a message stays as long as one of its webhooks does", async () => {
  const harness = await Harness.start()
  await harness.endpoint({ retry: "relay" })
  const paused = await harness.endpoint({ retry: "relay" }, "/paused")
  await harness.posthorn.endpoints.pause("acme", paused)
  await harness.send({ total: 12 })
  await harness.published("delivery.delivered", 1)
  harness.clock.advance(goneAt(harness, harness.clock.now() + 7 * DAY_MS) - harness.clock.now())
  await harness.quiet()
  await harness.posthorn.engine?.maintainOnce()
  expect(await counts(harness)).toEqual({ deliveries: 1, messages: 1, attempts: 0 })
  await harness.posthorn.endpoints.resume("acme", paused)
  const [request] = await harness.receiver.arrived("/paused", 1)
  expect(JSON.parse(String(request!.body))).toEqual({ total: 12 })
})

test("after a restart the cleanup does not run before the first poll, but an hour later", async () => {
  const harness = await startWithOutcome(200)
  await harness.send({}, { delaySeconds: 10 * 86_400 })
  await harness.close()
  harness.clock.advance(10 * DAY_MS)
  const answer = harness.receiver.hold("/")
  await harness.open()
  await harness.receiver.arrived("/", 3)
  expect((await harness.rows()).map(({ status }) => status)).toEqual(["delivered", "pending"])
  answer(200)
  await harness.published("delivery.delivered", 2)
  harness.clock.advance(HOUR_MS - 1)
  await harness.quiet()
  expect(await harness.rows()).toHaveLength(2)
  harness.clock.advance(1)
  await harness.quiet()
  expect(await harness.rows()).toHaveLength(1)
})
