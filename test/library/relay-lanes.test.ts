/** Lanes of agents: changes of URLs and connections, many endpoints, agents that take nothing. */
import { expect, test } from "vitest"
import type { Store } from "../../src/store/store.ts"
import { Harness, type HarnessOptions } from "../support/harness.ts"
import { TestAgent } from "../support/test-agent.ts"
import { wrapLanes } from "../support/wrap-lanes.ts"

const RELAY = { url: "relay://hub", ordered: true }

/** Counts how often lanes are opened: a lane that is claimed and given back again and again would stall the process. */
async function start(options: HarnessOptions = {}) {
  let opened = 0
  const wrapStore = (store: Store): Store => ({
    ...store,
    openLane(...args) {
      if (++opened > 1000) throw new Error("a lane is opened again and again")
      return store.openLane(...args)
    },
  })
  return { harness: await Harness.start({ wrapStore, ...options }), opened: () => opened }
}

test("an endpoint that gets the URL of a receiver while its agent is away is delivered to there", async () => {
  const { harness, opened } = await start()
  const id = await harness.endpoint(RELAY)
  const agent = await TestAgent.join(harness)
  await harness.send()
  agent.answer(await agent.event(1), 200)
  await harness.published("delivery.delivered", 1)
  agent.cut()
  await harness.send()
  await harness.quiet()
  await harness.posthorn.endpoints.update("acme", id, { url: harness.receiver.url("/new") })
  await harness.published("delivery.delivered", 2)
  expect(harness.receiver.to("/new")).toHaveLength(1)
  expect(opened()).toBeLessThan(20)
})

test("an endpoint that gets the URL of a connected agent is delivered to it", async () => {
  const { harness } = await start()
  harness.receiver.always("/", 500)
  const id = await harness.endpoint({ retry: { delays: [3600], maxAttempts: 5 } })
  const agent = await TestAgent.join(harness)
  await harness.send()
  await harness.published("delivery.attempt", 1)
  await harness.posthorn.endpoints.update("acme", id, { url: "relay://hub" })
  await harness.quiet()
  harness.clock.advance(3_600_000)
  agent.answer(await agent.event(1), 200)
  await harness.published("delivery.delivered", 1)
})

test("an agent that drains keeps its event in flight, and its other endpoints wait without work", async () => {
  const { harness, opened } = await start()
  await harness.endpoint({ ...RELAY, eventTypes: ["slow"] })
  await harness.endpoint({ ...RELAY, eventTypes: ["invoice.paid"] })
  const agent = await TestAgent.join(harness)
  await harness.send({}, { eventType: "slow" })
  const slow = await agent.event(1)
  agent.say({ kind: "drain" })
  await harness.send()
  await harness.calm()
  expect(opened()).toBeLessThan(20)
  agent.answer(slow, 200)
  await harness.published("delivery.delivered", 1)
  await agent.socket.until(() => agent.socket.closedWith !== null)
  const next = await TestAgent.join(harness)
  next.answer(await next.event(1), 200)
  await harness.published("delivery.delivered", 2)
})

test("a key that is limited to endpoints takes no other agent's name", async () => {
  const { harness } = await start()
  await harness.endpoint(RELAY)
  const other = await harness.endpoint({ url: "relay://other", eventTypes: ["other"] })
  const hub = await TestAgent.join(harness)
  await expect(TestAgent.join(harness, { agent: "hub" }, { endpointIds: [other] })).rejects.toThrow("4401")
  expect(hub.socket.closedWith).toBeNull()
  const allowed = await TestAgent.join(harness, { agent: "other" }, { endpointIds: [other] })
  await harness.send({}, { eventType: "other" })
  allowed.answer(await allowed.event(1), 200)
  await harness.published("delivery.delivered", 1)
})

test("an agent serves more endpoints than a page of the store has", { timeout: 120_000 }, async () => {
  const { harness } = await start()
  let last = ""
  for (let n = 0; n < 255; n++) last = await harness.endpoint({ ...RELAY, eventTypes: [`type.${n}`] })
  const agent = await TestAgent.join(harness)
  await harness.send({}, { eventType: "type.254" })
  expect((await agent.event(1)).endpointId).toBe(last)
})

test("agents that take nothing leave the places of lanes to others", async () => {
  const { harness } = await start({ maxInFlight: 3 })
  for (let n = 0; n < 4; n++) await harness.endpoint({ url: `relay://idle-${n}`, eventTypes: ["idle"] })
  await harness.endpoint({ eventTypes: ["invoice.paid"] })
  for (let n = 0; n < 4; n++) await TestAgent.join(harness, { agent: `idle-${n}`, credit: 0 })
  await harness.send({}, { eventType: "idle" })
  await harness.calm()
  await harness.send()
  await harness.published("delivery.delivered", 1)
})

test("without order an agent gets up to 16 events at once, and after a cut those again, in order and first", async () => {
  const { harness } = await start()
  await harness.endpoint({ url: "relay://hub" })
  for (let n = 1; n <= 60; n++) await harness.send({ n })
  /** Acknowledges the events in flight until there are 16: the lane doubles its concurrency with each success. */
  const numbersOf = async (agent: TestAgent, count: number) => {
    const events = () => agent.socket.of("event")
    for (let answered = 0; events().length < count; ) {
      await agent.event(answered + 1)
      await harness.calm()
      for (const event of events().slice(answered, count - 16)) agent.answer(event, 200)
      answered = Math.min(events().length, count - 16)
    }
    return events().map(({ body }) => JSON.parse(body!).n)
  }
  const first = await TestAgent.join(harness)
  const numbers = Array.from({ length: 60 }, (_, i) => i + 1)
  expect(await numbersOf(first, 31)).toEqual(numbers.slice(0, 31))
  expect(first.session.inFlight).toBe(16)
  first.cut()
  await harness.quiet()
  const second = await TestAgent.join(harness)
  expect(await numbersOf(second, 45)).toEqual(numbers.slice(15))
  expect(second.socket.of("event").map(({ attempt }) => attempt)).toEqual(Array(45).fill(1))
})

test("a delivery that is fetched while its agent leaves goes over the next connection at once", async () => {
  const fetched = Promise.withResolvers<void>()
  const left = Promise.withResolvers<void>()
  const wrapStore = (store: Store) =>
    wrapLanes(store, (session) => ({
      async fetch(...want) {
        const work = await session.fetch(...want)
        fetched.resolve()
        await left.promise
        return work
      },
    }))
  const { harness } = await start({ wrapStore })
  await harness.endpoint({ url: "relay://hub" })
  await harness.send()
  const first = await TestAgent.join(harness)
  await fetched.promise
  first.cut()
  left.resolve()
  await harness.quiet()
  const second = await TestAgent.join(harness)
  second.answer(await second.event(1), 200)
  await harness.published("delivery.delivered", 1)
})

test("a delivery that an operator's SQL revived is given up when the age that begins then ends", async () => {
  const { harness } = await start()
  await harness.endpoint({ url: "relay://hub", retry: { delays: [60], maxAge: 3600, autoDisable: false } })
  const agent = await TestAgent.join(harness)
  await harness.send()
  agent.answer(await agent.event(1), 404)
  await harness.published("delivery.dead", 1)
  agent.cut()
  await harness.quiet()
  await harness.sql("UPDATE webhook_deliveries SET status = 'pending', attempt_count = 0")
  harness.clock.advance(86_400_000)
  await harness.posthorn.engine!.expireOnce()
  expect((await harness.rows())[0]).toMatchObject({ status: "pending" })
  harness.clock.advance(3_600_000)
  await harness.posthorn.engine!.expireOnce()
  expect((await harness.rows())[0]).toMatchObject({ status: "dead", dead_reason: "expired" })
})

test("a timeout whose milliseconds are no exact number becomes a whole deadline", async () => {
  const { harness } = await start()
  await harness.endpoint({ url: "relay://hub", retry: { delays: [1], maxAttempts: 2, timeout: 16.1 } })
  const agent = await TestAgent.join(harness)
  await harness.send()
  expect((await agent.event(1)).deadline).toBe(16_100)
})
