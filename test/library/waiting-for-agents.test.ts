/** Deliveries that wait for an agent say so, and their endpoints are offline. */
import { expect, test } from "vitest"
import { takeSnapshot } from "../../src/monitor/snapshot.ts"
import { LEASE_MS, Presence } from "../../src/relay/presence.ts"
import type { Store } from "../../src/store/store.ts"
import { TestClock } from "../support/clock.ts"
import { Harness } from "../support/harness.ts"
import { TestAgent } from "../support/test-agent.ts"

const DAY_MS = 86_400_000
const RELAY = { url: "relay://hub", retry: "relay" }

async function start() {
  let reads = 0
  /** Counts the reads that are about agents. */
  const wrapStore = (store: Store): Store => ({
    ...store,
    getEntries: (...args) => {
      reads++
      return store.getEntries(...args)
    },
  })
  const harness = await Harness.start({ wrapStore })
  const { posthorn, clock } = harness
  const endpointId = await harness.endpoint(RELAY)
  const waits = async (query = {}) => {
    const { data } = await posthorn.deliveries.list({ app: "acme", order: "ascending", ...query })
    return data.map(({ waitReason, nextRetryAt }) => [waitReason, nextRetryAt])
  }
  const health = () => posthorn.endpoints.health("acme", endpointId)
  const lanes = async () => (await posthorn.lanes.list()).data
  const readsOf = async (read: () => Promise<unknown>) => {
    const before = reads
    await read()
    return reads - before
  }
  return { harness, posthorn, clock, endpointId, waits, lanes, health, readsOf }
}

test("without its agent every delivery of an endpoint waits for it, until it is given up", async () => {
  const { harness, clock, waits, lanes } = await start()
  const first = clock.now()
  await harness.send({ n: 1 })
  clock.advance(60_000)
  await harness.send({ n: 2 })
  await harness.send({ n: 3 }, { delaySeconds: 600 })
  await harness.quiet()
  const scheduledAt = clock.now() + 600_000
  expect(await waits()).toEqual([
    ["agent", new Date(first + 7 * DAY_MS)],
    ["agent", new Date(first + 60_000 + 7 * DAY_MS)],
    ["scheduled", new Date(scheduledAt)],
  ])
  expect(await lanes()).toMatchObject([
    { reason: "agent", nextDueAt: new Date(first + 7 * DAY_MS), waiting: 3 },
  ])
})

test("a delivery that failed waits for its delay while the agent is connected, and for the agent when it is gone", async () => {
  const { harness, clock, waits, lanes } = await start()
  const agent = await TestAgent.join(harness)
  const sentAt = clock.now()
  await harness.send()
  agent.answer(await agent.event(1), 503)
  await harness.published("delivery.attempt", 1)
  await harness.quiet()
  expect(await waits()).toEqual([["retry", new Date(sentAt + 1000)]])
  expect(await lanes()).toMatchObject([{ reason: "retry" }])
  agent.cut()
  expect(await waits()).toEqual([["agent", new Date(sentAt + 7 * DAY_MS)]])
  expect(await lanes()).toMatchObject([{ reason: "agent", nextDueAt: new Date(sentAt + 7 * DAY_MS) }])
})

test("an agent that is connected to another process counts", async () => {
  const { harness, posthorn, clock, waits } = await start()
  const { id: appId } = await posthorn.applications.get("acme")
  const other = new Presence(posthorn.context.store, clock, "another-process")
  await harness.send()
  await harness.quiet()
  await other.renew({})
  await other.connected({ appId, orgId: posthorn.context.orgId }, "hub", "1")
  expect(await waits()).toMatchObject([["due", new Date(clock.now())]])
  clock.advance(LEASE_MS)
  expect(await waits()).toMatchObject([["agent", expect.any(Date)]])
})

test("a delivery whose age has ended is left to the process that has its agent, while that lives", async () => {
  const { harness, posthorn, clock } = await start()
  const { id: appId } = await posthorn.applications.get("acme")
  // Its lease is alive in a week.
  const ahead = new TestClock()
  ahead.advance(7 * DAY_MS)
  const other = new Presence(posthorn.context.store, ahead, "another-process")
  await other.renew({})
  await other.connected({ appId, orgId: posthorn.context.orgId }, "hub", "1")
  await harness.send()
  await harness.quiet()
  clock.advance(7 * DAY_MS)
  await posthorn.engine!.expireOnce()
  expect(await harness.rows()).toMatchObject([{ status: "pending" }])
  await other.endLease()
  await posthorn.engine!.expireOnce()
  expect(await harness.rows()).toMatchObject([{ status: "dead", dead_reason: "expired" }])
})

test("a paused endpoint's deliveries wait for the operator, and after that for the agent", async () => {
  const { harness, posthorn, clock, endpointId, waits } = await start()
  await harness.send()
  await posthorn.endpoints.pause("acme", endpointId)
  expect(await waits()).toEqual([["paused", null]])
  clock.advance(8 * DAY_MS)
  await posthorn.endpoints.resume("acme", endpointId)
  // It has an hour to connect, since the age ended during the pause.
  expect(await waits()).toEqual([["agent", new Date(clock.now() + 3_600_000)]])
})

test("without a limit of age nobody knows when a delivery is given up", async () => {
  const { harness, posthorn, endpointId, waits } = await start()
  await posthorn.endpoints.update("acme", endpointId, { retry: { delays: [60], maxAttempts: 3 } })
  await harness.send()
  await harness.quiet()
  expect(await waits()).toEqual([["agent", null]])
})

test("the agents of a page are read once, and only if a delivery waits for one", async () => {
  const { harness, posthorn, waits, lanes, readsOf } = await start()
  await harness.endpoint({ uid: "held", eventTypes: ["invoice.held"] })
  await posthorn.endpoints.pause("acme", "held")
  for (let n = 0; n < 3; n++) await posthorn.send("acme", { eventType: "invoice.held", payload: {} })
  await posthorn.endpoints.create("acme", { url: "relay://second", eventTypes: ["invoice.paid"] })
  await harness.send()
  await harness.send()
  await harness.quiet()
  expect(await readsOf(() => waits({ endpoint: "held" }))).toBe(0)
  expect(await readsOf(() => waits())).toBe(1)
  expect(await readsOf(() => lanes())).toBe(1)
})

test("an endpoint is offline until its agent connects, and again when it leaves", async () => {
  const { harness, clock, health } = await start()
  const createdAt = new Date(clock.now())
  expect(await health()).toMatchObject({
    health: "offline",
    since: createdAt,
    why: "its agent hub was never connected",
  })
  clock.advance(60_000)
  const agent = await TestAgent.join(harness)
  expect(await health()).toMatchObject({ health: "healthy", since: null })
  clock.advance(60_000)
  agent.cut()
  const leftAt = clock.now()
  await expect.poll(async () => (await health()).since).toEqual(new Date(leftAt))
  const sentAt = clock.now()
  for (let n = 0; n < 3; n++) await harness.send()
  await harness.quiet()
  const iso = (ms: number) => new Date(ms).toISOString().replace(".000Z", "Z")
  expect(await health()).toMatchObject({
    health: "offline",
    why: `its agent hub has not been connected since ${iso(leftAt)}; 3 deliveries wait; the oldest delivery is given up at ${iso(sentAt + 7 * DAY_MS)}`,
    oldestWaitingAt: new Date(sentAt),
  })
})

test("endpoints are listed by this state, also one without any attempt; a paused one is paused", async () => {
  const { harness, posthorn, endpointId } = await start()
  await harness.endpoint({ uid: "fine" })
  const { id: second } = await posthorn.endpoints.create("acme", { url: "relay://second" })
  const { id: paused } = await posthorn.endpoints.create("acme", { url: "relay://third" })
  await posthorn.endpoints.pause("acme", paused)
  const offline = async () =>
    (await posthorn.endpoints.listHealth({ health: "offline" })).data.map((one) => one.endpointId)
  expect(await offline()).toEqual([endpointId, second])
  await TestAgent.join(harness)
  expect(await offline()).toEqual([second])
  expect((await posthorn.endpoints.listHealth({ health: "paused" })).data).toMatchObject([
    { endpointId: paused },
  ])
})

test("the monitor counts endpoints by this state, and deliveries that wait for an agent are not late", async () => {
  const { harness, posthorn, clock } = await start()
  const { context } = posthorn
  await harness.send()
  await harness.quiet()
  clock.advance(3_600_000)
  const absent = await takeSnapshot(context)
  expect(absent).toMatchObject({
    endpoints: { offline: 1, healthy: 0 },
    deliveries: { due: 0, held: 1 },
    oldestDue: null,
    troubled: [{ health: "offline", agent: "hub", url: "relay://hub" }],
  })
  const agent = await TestAgent.join(harness, { credit: 0 })
  const present = await takeSnapshot(context)
  expect(present).toMatchObject({
    endpoints: { offline: 0, healthy: 1 },
    deliveries: { due: 1, held: 0 },
    oldestDue: { at: clock.now() },
    troubled: [],
  })
  agent.cut()
})

test("an endpoint that the key of its agent does not reach is without an agent", async () => {
  const { harness, posthorn, clock, endpointId, waits, health } = await start()
  const { id: second } = await posthorn.endpoints.create("acme", RELAY)
  clock.advance(60_000)
  await TestAgent.join(harness, { credit: 0 }, { endpointIds: [second] })
  await harness.send()
  expect((await waits({ endpoint: endpointId })).map(([reason]) => reason)).toEqual(["agent"])
  expect((await waits({ endpoint: second })).map(([reason]) => reason)).toEqual(["due"])
  expect(await health()).toMatchObject({
    health: "offline",
    since: new Date(clock.now()),
    why: expect.stringMatching(
      /^its agent hub is connected with a key for other endpoints; 1 delivery waits; /,
    ),
  })
  expect(await takeSnapshot(posthorn.context)).toMatchObject({
    endpoints: { offline: 1, healthy: 1 },
    deliveries: { due: 1, held: 1 },
  })
})
