/** The list of agents: who is connected, since when, and for which endpoints. */
import { expect, test } from "vitest"
import { agentRecordOf, entryNameOf } from "../../src/relay/agent-record.ts"
import { LEASE_MS, MOST_UNNAMED, Presence } from "../../src/relay/presence.ts"
import { FailingStore } from "../support/failing-store.ts"
import { Harness } from "../support/harness.ts"
import { TestAgent } from "../support/test-agent.ts"

const DAY_MS = 86_400_000
const RELAY = { url: "relay://hub", retry: "relay" }

async function start() {
  const failing = new FailingStore()
  const harness = await Harness.start({ wrapStore: (store) => failing.wrap(store) })
  const endpointId = await harness.endpoint(RELAY)
  const { posthorn, clock } = harness
  const { id: appId } = await posthorn.applications.get("acme")
  const owner = { appId, orgId: posthorn.context.orgId }
  const hub = () => posthorn.agents.get("acme", "hub")
  const names = async () => (await posthorn.agents.list()).data.map(({ name }) => name)
  /** Another process on the same store, as far as its agents are concerned. */
  const other = new Presence(posthorn.context.store, clock, "another-process")
  const until = (condition: () => Promise<boolean>) => expect.poll(condition, { timeout: 20_000 }).toBe(true)
  return { harness, failing, posthorn, clock, endpointId, appId, owner, hub, names, other, until }
}

test("an agent is listed as soon as an endpoint names it, and connected while it is", async () => {
  const { harness, hub, clock, posthorn, appId, endpointId, until } = await start()
  const agent = { name: "hub", appId, endpoints: [endpointId] }
  const absent = { ...agent, connected: false, connectedSince: null, inFlight: 0 }
  expect(await hub()).toEqual({ ...absent, version: null, lastSeenAt: null })
  const connection = await TestAgent.join(harness, { version: "my-agent/7" })
  const connectedSince = new Date(clock.now())
  await harness.send()
  const event = await connection.event(1)
  clock.advance(5000)
  const present = { ...agent, connected: true, version: "my-agent/7", connectedSince, inFlight: 1 }
  expect(await hub()).toEqual({ ...present, lastSeenAt: new Date(clock.now()) })
  expect((await posthorn.agents.list({ app: "acme" })).data).toEqual([await hub()])
  connection.answer(event, 200)
  expect(await hub()).toMatchObject({ connected: true, inFlight: 0 })
  const lastSeenAt = new Date(clock.now())
  connection.cut()
  // Its end is written in the background.
  await until(async () => (await hub()).lastSeenAt?.getTime() === lastSeenAt.getTime())
  clock.advance(60_000)
  expect(await hub()).toEqual({ ...absent, version: "my-agent/7", lastSeenAt })
})

test("an agent of another process counts while that process renews its lease", async () => {
  const { clock, hub, other, owner, appId } = await start()
  await other.renew({})
  const connectedSince = new Date(clock.now())
  await other.connected(owner, "hub", "remote/1")
  clock.advance(15_000)
  await other.renew({ [entryNameOf(appId, "hub")]: 3 })
  const lastSeenAt = new Date(clock.now())
  clock.advance(LEASE_MS - 1)
  expect(await hub()).toMatchObject({ connected: true, connectedSince, inFlight: 3 })
  clock.advance(1)
  // Nobody wrote the end of the connection: the process was killed.
  expect(await hub()).toMatchObject({ connected: false, connectedSince: null, lastSeenAt, inFlight: 0 })
  clock.advance(31 * DAY_MS)
  expect(await hub()).toMatchObject({ connected: false, lastSeenAt: connectedSince })
})

test("the end of a connection that the store did not take is written when the store works again", async () => {
  const { harness, failing, clock, other, appId, hub, until } = await start()
  const agent = await TestAgent.join(harness)
  const lastSeenAt = new Date(clock.now())
  failing.isBroken = true
  agent.cut()
  await harness.quiet()
  failing.isBroken = false
  // For another process the lease of this one is good.
  expect(await other.isAbsent({ appId, url: RELAY.url })).toBe(false)
  clock.advance(LEASE_MS / 4)
  await until(() => other.isAbsent({ appId, url: RELAY.url }))
  expect(await hub()).toMatchObject({ connected: false, lastSeenAt })
})

test("a later connection that has ended takes nothing from the one that stands", async () => {
  const { harness, posthorn, other, owner, appId, hub } = await start()
  const agent = await TestAgent.join(harness)
  await other.renew({})
  // It was cut off before its welcome, and the agent connected here before its number was written.
  const epoch = await other.connected(owner, "hub", "1")
  await other.disconnected(owner, "hub", epoch!)
  await posthorn.agentHub!.checkOnce()
  expect(agent.socket.closedWith).toBeNull()
  expect(await hub()).toMatchObject({ connected: true, version: "test 1" })
  expect(await other.isAbsent({ appId, url: RELAY.url })).toBe(false)
  agent.cut()
  await harness.quiet()
  expect(await other.isAbsent({ appId, url: RELAY.url })).toBe(true)
})

test("a later connection of the same process keeps its number until it is welcomed", async () => {
  const { harness, posthorn, owner, appId } = await start()
  const { store, presence, clock } = posthorn.context
  const agent = await TestAgent.join(harness)
  // As between the hello and the welcome of the agent's next connection, while this one is half open.
  const epoch = await presence.connected(owner, "hub", "test 2")
  await posthorn.agentHub!.checkOnce()
  const entry = await store.getEntry("agent", owner.orgId, entryNameOf(appId, "hub"), clock.now())
  expect(agentRecordOf(entry!)).toMatchObject({ epoch, version: "test 2" })
  expect(agent.socket.closedWith).toBeNull()
})

test("a later connection that stands in another process replaces the one of this process", async () => {
  const { harness, posthorn, other, owner } = await start()
  const agent = await TestAgent.join(harness)
  await other.renew({})
  await other.connected(owner, "hub", "1")
  await posthorn.agentHub!.checkOnce()
  expect(agent.socket.closedWith).toMatchObject({ code: 4409 })
})

test("agents are listed in pages by application, and every tenant has its own", async () => {
  const { posthorn, names } = await start()
  for (const name of ["b", "-a", "c", "b"])
    await posthorn.endpoints.create("acme", { url: `relay://${name}` })
  await posthorn.applications.create({ uid: "second", name: "Second" })
  await posthorn.endpoints.create("second", { url: "relay://hub" })
  const tenant = posthorn.tenant("org_other")
  await tenant.applications.create({ uid: "acme", name: "Acme" })
  await tenant.endpoints.create("acme", { url: "relay://theirs" })
  expect(await names()).toEqual(["-a", "b", "c", "hub", "hub"])
  const first = await posthorn.agents.list({ app: "acme", limit: 2 })
  expect(first.data).toMatchObject([{ name: "-a" }, { name: "b", endpoints: { length: 2 } }])
  const rest = await posthorn.agents.list({ app: "acme", limit: 2, cursor: first.cursor })
  expect(rest).toMatchObject({ data: [{ name: "c" }, { name: "hub" }], done: true })
  expect((await tenant.agents.list()).data).toMatchObject([{ name: "theirs" }])
  for (const name of ["theirs", "nobody", "", "a.b", "HUB"])
    await expect(posthorn.agents.get("acme", name)).rejects.toMatchObject({ code: "not_found" })
})

test("an agent that no endpoint names is listed for 30 days after its connection, or not at all if it had none", async () => {
  const { harness, posthorn, endpointId, clock, names, hub, until } = await start()
  const agent = await TestAgent.join(harness)
  await posthorn.endpoints.create("acme", { url: "relay://typo", uid: "typo" })
  await posthorn.endpoints.update("acme", "typo", { url: "relay://typos" })
  expect(await names()).toEqual(["hub", "typos"])
  await posthorn.endpoints.delete("acme", "typo")
  await posthorn.endpoints.delete("acme", endpointId)
  expect(await names()).toEqual(["hub"])
  clock.advance(DAY_MS)
  agent.cut()
  const cutAt = clock.now()
  // Its end is written in the background.
  await until(async () => (await hub()).lastSeenAt?.getTime() === cutAt)
  clock.advance(30 * DAY_MS - 1)
  expect(await names()).toEqual(["hub"])
  clock.advance(1)
  expect(await names()).toEqual([])
})

test("an agent that an endpoint names is listed for ever, also if it named it for a while only", async () => {
  const { posthorn, endpointId, clock, names, other, owner } = await start()
  const epoch = await other.connected(owner, "hub", "1")
  await other.disconnected(owner, "hub", epoch!)
  await posthorn.endpoints.delete("acme", endpointId)
  clock.advance(29 * DAY_MS)
  await posthorn.endpoints.create("acme", RELAY)
  clock.advance(31 * DAY_MS)
  expect(await names()).toEqual(["hub"])
})

test("an application with a thousand agents takes no further one, unless an endpoint names it", {
  timeout: 120_000,
}, async () => {
  const { harness, posthorn, other, owner } = await start()
  // One is "hub", which an endpoint names.
  const names = Array.from({ length: MOST_UNNAMED - 1 }, (_, n) => `agent-${n}`)
  await Promise.all(names.map((name) => other.expected(owner, name)))
  await expect(TestAgent.join(harness, { agent: "ghost" })).rejects.toThrow("1013")
  await expect(posthorn.agents.get("acme", "ghost")).rejects.toMatchObject({ code: "not_found" })
  await TestAgent.join(harness, { agent: "hub" })
  await TestAgent.join(harness, { agent: "agent-7" })
  await posthorn.endpoints.create("acme", { url: "relay://ghost" })
  await TestAgent.join(harness, { agent: "ghost" })
})

test("the agents of a deleted application are listed no more, also if one was connected", async () => {
  const { harness, posthorn, names, owner } = await start()
  const agent = await TestAgent.join(harness)
  await posthorn.applications.delete("acme")
  expect(await names()).toEqual([])
  agent.cut()
  await posthorn.context.presence.disconnected(owner, "hub", 1)
  expect(await names()).toEqual([])
})
