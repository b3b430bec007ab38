import { expect, test } from "vitest"
import { PosthornError } from "../../src/index.ts"
import type { Store } from "../../src/store/store.ts"
import { Harness } from "../support/harness.ts"
import { wrapLanes } from "../support/wrap-lanes.ts"

test("fractions of seconds in a policy are written as whole milliseconds", async () => {
  const harness = await Harness.start()
  const retention = { delivered: { after: 86_400 / 7 } }
  await harness.endpoint({ retry: { delays: [1 / 3], maxAge: 1000 / 7, retention } })
  harness.receiver.queue("/", 500)
  await harness.send()
  await harness.published("delivery.attempt", 1)
  harness.clock.advance(334)
  await harness.published("delivery.delivered", 1)
  expect((await harness.rows())[0]!.purge_at).toBe(harness.clock.now() + Math.round((86_400 / 7) * 1000))
})

test("a dead letter from before an endpoint ceased to be ordered blocks nobody when it is retried", async () => {
  const harness = await Harness.start()
  harness.receiver.always("/", 500)
  const id = await harness.endpoint({ ordered: true, retry: { delays: [86_400], maxAttempts: 1 } })
  await harness.send()
  const [dead] = await harness.published("delivery.dead", 1)
  await harness.posthorn.endpoints.update("acme", id, {
    ordered: false,
    retry: { delays: [86_400], maxAttempts: 5 },
  })
  await harness.posthorn.dead.retry(dead!.webhook_delivery_id)
  await harness.published("delivery.attempt", 2)
  harness.receiver.always("/", 200)
  await harness.send()
  await harness.published("delivery.delivered", 1)
  expect((await harness.rows())[0]).toMatchObject({ status: "failed", ordered: 0 })
})

test("a delivery that was only prefetched when the process died has no stall counted", async () => {
  const harness = await Harness.start()
  harness.receiver.always("/", () => {})
  await harness.endpoint({ rateLimit: 1 })
  for (let i = 0; i < 3; i++) await harness.send({ i })
  await harness.receiver.arrived("/", 1)
  await harness.poll()
  expect((await harness.ground.inHand()).filter(({ sent }) => sent === 1)).toHaveLength(1)
  // The claims as a crash leaves them, for the next start to find.
  await harness.close()
  await harness.sql(
    harness.ground.kind === "sqlite"
      ? "INSERT INTO in_flight VALUES (1, 1, 5), (2, 1, -5)"
      : "UPDATE lanes SET sending_token = 1, sending = '{1,2}', since = '{5,-5}'",
  )
  await harness.open()
  await harness.receiver.arrived("/", 2)
  expect(
    (await harness.sql("SELECT stalls FROM webhook_deliveries ORDER BY seq")).map(({ stalls }) => stalls),
  ).toEqual([1, 0, 0])
})

test("close ends though the store cannot be written; deliveries that were not settled are sent again", async () => {
  let full = false
  const wrapStore = (store: Store) =>
    wrapLanes(store, (session) => ({
      settleIfClaimed: (outcomes) =>
        full ? Promise.reject(new PosthornError("store_full", "full")) : session.settleIfClaimed(outcomes),
    }))
  const harness = await Harness.start({ wrapStore })
  await harness.endpoint()
  full = true
  await harness.send()
  await harness.receiver.arrived("/", 1)
  await harness.close()
  full = false
  await harness.open()
  await harness.receiver.arrived("/", 2)
  await harness.published("delivery.delivered", 1)
})

test("a delivery whose first giving back failed is sent soon after the second, without a poll", async () => {
  let timesGivenBack = 0
  const wrapStore = (store: Store) =>
    wrapLanes(store, (session) => ({
      giveBack: (unsent) =>
        unsent.length > 0 && timesGivenBack++ === 0
          ? Promise.reject(new PosthornError("store_full", "full"))
          : session.giveBack(unsent),
    }))
  const harness = await Harness.start({ wrapStore, pollIntervalMs: 3_600_000 })
  const id = await harness.endpoint({ rateLimit: 1 })
  for (let n = 0; n < 2; n++) await harness.send()
  await harness.published("delivery.delivered", 1)
  // The lane has the second in hand by then, and waits for the next second.
  await harness.calm()
  await harness.posthorn.endpoints.update("acme", id, { description: "changed" })
  await harness.calm()
  expect(timesGivenBack).toBe(1)
  harness.clock.advance(1000)
  await harness.quiet()
  expect(timesGivenBack).toBe(2)
  expect((await harness.rows()).map(({ status }) => status)).toEqual(["delivered", "delivered"])
})

test("a cancelled delivery is not sent, also when a lane had fetched it", async () => {
  const harness = await Harness.start()
  const release = harness.receiver.hold("/")
  await harness.endpoint({ concurrency: 1 })
  for (let i = 0; i < 3; i++) await harness.send({ i })
  await harness.receiver.arrived("/", 1)
  await harness.poll()
  const { data } = await harness.posthorn.deliveries.list()
  for (const { id } of data.slice(0, 2)) await harness.posthorn.deliveries.cancel(id)
  release(200)
  await harness.published("delivery.delivered", 1)
  await harness.poll()
  expect(harness.receiver.to("/")).toHaveLength(1)
})

test("a deferred message is sent on time, also while its lane is busy with a slow request", async () => {
  const harness = await Harness.start({ pollIntervalMs: 3_600_000 })
  harness.receiver.queue("/", 200, () => {})
  await harness.endpoint({ concurrency: 2 })
  await harness.send()
  await harness.published("delivery.delivered", 1)
  await harness.send({ slow: true })
  await harness.receiver.arrived("/", 2)
  await harness.send({ deferred: true }, { delaySeconds: 1 })
  harness.clock.advance(1000)
  await harness.receiver.arrived("/", 3)
})

test("errors do not open more connections: concurrency grows with success only", async () => {
  const harness = await Harness.start()
  let most = 0
  let underWay = 0
  harness.receiver.always("/", (_request, response) => {
    most = Math.max(most, ++underWay)
    setImmediate(() => {
      underWay--
      response.writeHead(503).end()
    })
  })
  await harness.endpoint({ retry: { delays: [3600], maxAttempts: 5, breaker: false } })
  await harness.posthorn.sendBatch(
    "acme",
    Array.from({ length: 50 }, () => ({ eventType: "a", payload: {} })),
  )
  await harness.published("delivery.attempt", 50)
  expect(most).toBe(1)
})

test("any view of bytes is sent as its bytes, and copied before the call returns", async () => {
  const harness = await Harness.start()
  await harness.endpoint()
  const large = new Uint8Array(1000).fill(7)
  const sends = [
    harness.send(large.subarray(10, 13)),
    harness.send(new Uint16Array([258])),
    harness.send(new ArrayBuffer(2)),
  ]
  large.fill(0)
  await Promise.all(sends)
  const received = await harness.receiver.arrived("/", 3)
  expect(received.map(({ body }) => [...body]).sort()).toEqual([
    [0, 0],
    [2, 1],
    [7, 7, 7],
  ])
})

test("a policy that is changed while a request is in flight decides the outcome of that request", async () => {
  const harness = await Harness.start()
  const release = harness.receiver.hold("/")
  const id = await harness.endpoint({ concurrency: 1, retry: { delays: [10], maxAttempts: 5 } })
  await harness.send()
  await harness.receiver.arrived("/", 1)
  await harness.posthorn.endpoints.update("acme", id, { retry: { delays: [1000], maxAttempts: 5 } })
  await harness.send()
  await harness.poll()
  release(500)
  await harness.published("delivery.attempt", 1)
  expect((await harness.rows())[0]).toMatchObject({ next_retry_at: harness.clock.now() + 1_000_000 })
})

test("retrying many leaves the dead letters of a deleted endpoint as they are", async () => {
  const harness = await Harness.start()
  harness.receiver.always("/gone", 400)
  harness.receiver.queue("/here", 400)
  const gone = await harness.endpoint({ retry: "enterprise" }, "/gone")
  await harness.endpoint({ retry: "enterprise" }, "/here")
  await harness.send()
  await harness.published("delivery.dead", 2)
  await harness.posthorn.endpoints.delete("acme", gone)
  const { id } = await harness.posthorn.dead.retryMany({})
  await harness.published("delivery.delivered", 1)
  await harness.quiet()
  expect(await harness.posthorn.tasks.get(id)).toMatchObject({ status: "finished", done: 2, changed: 1 })
  expect(await harness.posthorn.dead.list()).toMatchObject({
    data: [{ deadReason: "rejected", attemptCount: 1 }],
  })
})

test("a policy that was broken by hand fails its own deliveries, and nobody else's", async () => {
  const harness = await Harness.start()
  harness.receiver.always("/broken", 503)
  const id = await harness.endpoint({ retry: { delays: [1], maxAttempts: 3 } }, "/broken")
  // Enough to send with, and too little to say what comes next.
  const rest = '{"timeout":30,"connectTimeout":10,"maxAttempts":3}'
  await harness.sql("UPDATE endpoints SET retry_policy = ?, version = version + 1 WHERE id = ?", rest, id)
  await harness.send()
  await harness.receiver.arrived("/broken", 1)
  await harness.endpoint({}, "/")
  const sent = await harness.send()
  expect(await harness.published("delivery.delivered", 1)).toMatchObject([{ message_id: sent }])
  expect((await harness.rows())[0]).toMatchObject({ status: "pending", attempt_count: 0 })
})
