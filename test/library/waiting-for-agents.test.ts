/** Deliveries that wait for an agent say so. */
import { expect, test } from "vitest"
import { LEASE_MS, Presence } from "../../src/relay/presence.ts"
import type { Store } from "../../src/store/store.ts"
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
  const lanes = async () => (await posthorn.lanes.list()).data
  const readsOf = async (read: () => Promise<unknown>) => {
    const before = reads
    await read()
    return reads - before
  }
  return { harness, posthorn, clock, endpointId, waits, lanes, readsOf }
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
