/** Seed 002, work order 05: webhooks for a home hub, over the connection that the hub opened. */
import { expect, test } from "vitest"
import { Harness, type HarnessOptions } from "../support/harness.ts"
import { TestAgent } from "../support/test-agent.ts"

const DAY_MS = 86_400_000
const RELAY = { url: "relay://hub", retry: "relay" }

async function start(options: HarnessOptions = {}) {
  const harness = await Harness.start(options)
  const endpointId = await harness.endpoint(RELAY)
  return { harness, endpointId }
}

/** The payloads' numbers, in the order in which the agent got them. */
const numbersOf = (agent: TestAgent) => agent.socket.of("event").map(({ body }) => JSON.parse(body!).n)

const statusOf = async (harness: Harness) =>
  (await harness.rows()).map(({ status, dead_reason: reason }) =>
    reason === null ? status : `${status} ${reason}`,
  )

test("success → status=delivered, and the hub hears that it is settled", async () => {
  const { harness, endpointId } = await start()
  const agent = await TestAgent.join(harness)
  const messageId = await harness.send({ n: 1 })
  const event = await agent.event(1)
  expect(event).toMatchObject({
    messageId,
    endpointId,
    attempt: 1,
    eventType: "invoice.paid",
    sourceId: null,
    method: "POST",
    body: '{"n":1}',
    receivedAt: new Date(harness.clock.now()).toISOString(),
    deadline: 30_000,
  })
  const headers = Object.fromEntries(event.headers)
  expect(headers).toMatchObject({ "webhook-id": messageId, "content-type": "application/json" })
  agent.answer(event, 200)
  const [settled] = await agent.socket.came("settled")
  expect(settled).toMatchObject({ id: event.id, attempt: 1, status: "delivered" })
  expect((await harness.rows())[0]).toMatchObject({
    status: "delivered",
    attempt_count: 1,
    delivered_at: harness.clock.now(),
    purge_at: harness.clock.now() + 7 * DAY_MS,
  })
})

test("permanent failure (4xx) → status=failed, which is dead (rejected) here, and it is not retried", async () => {
  const { harness } = await start()
  const agent = await TestAgent.join(harness)
  await harness.send()
  const event = await agent.event(1)
  agent.ack(event, "permanent", { status: 404, response: { body: "no such device" } })
  await harness.published("delivery.dead", 1)
  expect((await harness.rows())[0]).toMatchObject({
    status: "dead",
    dead_reason: "rejected",
    error_detail: "HTTP 404: no such device",
    next_retry_at: null,
    purge_at: harness.clock.now() + 7 * DAY_MS,
  })
  expect((await agent.socket.came("settled"))[0]).toMatchObject({ id: event.id, status: "dead" })
})

test("transient failure (5xx) → attempts++, and the hub gets it again after 1s, 2s, 4s … max 1 hour", async () => {
  const { harness } = await start()
  const agent = await TestAgent.join(harness)
  await harness.send()
  const delays = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3600, 3600]
  const first = await agent.event(1)
  agent.answer(first, 503)
  await harness.published("delivery.attempt", 1)
  for (const [i, seconds] of delays.entries()) {
    expect((await harness.rows())[0]).toMatchObject({
      status: "failed",
      attempt_count: i + 1,
      next_retry_at: harness.clock.now() + seconds * 1000,
    })
    await harness.quiet()
    harness.clock.advance(seconds * 1000 - 1)
    await harness.calm()
    expect(agent.socket.of("event")).toHaveLength(i + 1)
    harness.clock.advance(1)
    const again = await agent.event(i + 2)
    expect(again).toMatchObject({ id: first.id, messageId: first.messageId, attempt: i + 2 })
    agent.answer(again, 500)
    await harness.published("delivery.attempt", i + 2)
  }
})

test("don't deliver webhook N+1 until webhook N is delivered or failed", async () => {
  const { harness } = await start()
  const agent = await TestAgent.join(harness)
  for (let n = 1; n <= 3; n++) await harness.send({ n })
  agent.answer(await agent.event(1), 500)
  await harness.published("delivery.attempt", 1)
  await harness.quiet()
  expect(numbersOf(agent)).toEqual([1])
  harness.clock.advance(1000)
  agent.answer(await agent.event(2), 200)
  agent.answer(await agent.event(3), 400)
  agent.answer(await agent.event(4), 200)
  await harness.published("delivery.delivered", 2)
  expect(numbersOf(agent)).toEqual([1, 1, 2, 3])
  expect(await statusOf(harness)).toEqual(["delivered", "dead rejected", "delivered"])
})

test("while no hub is connected nothing is attempted, and a hub that connects gets all in order", async () => {
  const { harness } = await start()
  for (let n = 1; n <= 3; n++) await harness.send({ n })
  await harness.quiet()
  harness.clock.advance(3 * DAY_MS)
  await harness.poll()
  expect((await harness.rows()).map(({ attempt_count: n }) => n)).toEqual([0, 0, 0])
  const agent = await TestAgent.join(harness)
  for (let n = 1; n <= 3; n++) agent.answer(await agent.event(n), 200)
  await harness.published("delivery.delivered", 3)
  expect(numbersOf(agent)).toEqual([1, 2, 3])
})

test("webhooks that wait for the hub for more than 7 days → dead letter, which notifies", async () => {
  const { harness } = await start()
  await harness.send({ n: 1 })
  harness.clock.advance(DAY_MS)
  await harness.send({ n: 2 })
  await harness.quiet()
  harness.clock.advance(6 * DAY_MS - 60_000)
  await harness.posthorn.engine!.expireOnce()
  expect(await statusOf(harness)).toEqual(["pending", "pending"])
  harness.clock.advance(60_000)
  await harness.posthorn.engine!.expireOnce()
  const [dead] = await harness.published("delivery.dead", 1)
  expect(dead).toMatchObject({ reason: "expired" })
  expect(await statusOf(harness)).toEqual(["dead expired", "pending"])
  expect((await harness.rows())[0]).toMatchObject({
    attempt_count: 0,
    next_retry_at: null,
    purge_at: ((await harness.rows())[0]!.received_at as number) + 14 * DAY_MS,
  })
})

test("the sweep for webhooks without a hub runs by itself every minute", async () => {
  const { harness } = await start()
  await harness.send()
  await harness.quiet()
  for (let day = 0; day < 7; day++) harness.clock.advance(DAY_MS)
  await harness.calm()
  harness.clock.advance(60_000)
  await harness.published("delivery.dead", 1)
  expect(await statusOf(harness)).toEqual(["dead expired"])
})

test("a hub that connects after 7 days gets none of the webhooks from before, and all others", async () => {
  const { harness } = await start()
  await harness.send({ n: 1 })
  await harness.quiet()
  harness.clock.advance(7 * DAY_MS)
  await harness.send({ n: 2 })
  const agent = await TestAgent.join(harness)
  agent.answer(await agent.event(1), 200)
  await harness.published("delivery.delivered", 1)
  expect(numbersOf(agent)).toEqual([2])
  expect(await statusOf(harness)).toEqual(["dead expired", "delivered"])
})

test("a pause of 8 days expires nothing: the hub has an hour to connect after it", async () => {
  const { harness, endpointId } = await start()
  await harness.send()
  await harness.posthorn.endpoints.pause("acme", endpointId)
  harness.clock.advance(8 * DAY_MS)
  await harness.posthorn.engine!.expireOnce()
  await harness.posthorn.endpoints.resume("acme", endpointId)
  harness.clock.advance(3_599_000)
  await harness.posthorn.engine!.expireOnce()
  expect(await statusOf(harness)).toEqual(["pending"])
  harness.clock.advance(2000)
  await harness.posthorn.engine!.expireOnce()
  expect(await statusOf(harness)).toEqual(["dead expired"])
})

test("an event that the connection's end cut off is no attempt, and goes first to the next connection", async () => {
  const { harness } = await start()
  const agent = await TestAgent.join(harness)
  for (let n = 1; n <= 2; n++) await harness.send({ n })
  const event = await agent.event(1)
  agent.cut()
  await harness.quiet()
  expect((await harness.rows())[0]).toMatchObject({ status: "pending", attempt_count: 0 })
  const next = await TestAgent.join(harness)
  const again = await next.event(1)
  expect(again).toMatchObject({ id: event.id, messageId: event.messageId, attempt: 1 })
  expect(again.token).not.toBe(event.token)
  next.answer(again, 200)
  next.answer(await next.event(2), 200)
  await harness.published("delivery.delivered", 2)
  expect(numbersOf(next)).toEqual([1, 2])
  expect(await harness.posthorn.attempts.list({ message: event.messageId })).toMatchObject({
    data: [{ status: "succeeded" }, { status: "unknown", error: "the agent's connection ended" }],
  })
})

test("the newest connection of a hub wins, and the older one is told why", async () => {
  const { harness } = await start()
  const old = await TestAgent.join(harness)
  await harness.send({ n: 1 })
  const event = await old.event(1)
  const agent = await TestAgent.join(harness)
  expect(old.socket.closedWith).toMatchObject({ code: 4409 })
  const again = await agent.event(1)
  expect(again.id).toBe(event.id)
  old.answer(event, 400)
  agent.answer(again, 200)
  await harness.published("delivery.delivered", 1)
  expect(await statusOf(harness)).toEqual(["delivered"])
})

test("an operator's retry of a dead webhook goes to the hub as one that an operator asked for", async () => {
  const { harness } = await start()
  const agent = await TestAgent.join(harness)
  await harness.send()
  const event = await agent.event(1)
  expect(event.manual).toBe(false)
  agent.answer(event, 404)
  await harness.published("delivery.dead", 1)
  await harness.posthorn.dead.retry(event.id)
  const again = await agent.event(2)
  expect(again).toMatchObject({ id: event.id, attempt: 1, manual: true })
  agent.answer(again, 200)
  await harness.published("delivery.delivered", 1)
})

test("consider edge restart: the hub gets what waited, in order, from the database", async () => {
  const { harness } = await start()
  const agent = await TestAgent.join(harness)
  for (let n = 1; n <= 3; n++) await harness.send({ n })
  await agent.event(1)
  await harness.restart()
  expect(agent.socket.frames.some(({ kind }) => kind === "drain")).toBe(true)
  const next = await TestAgent.join(harness)
  for (let n = 1; n <= 3; n++) next.answer(await next.event(n), 200)
  await harness.published("delivery.delivered", 3)
  expect(numbersOf(next)).toEqual([1, 2, 3])
})
