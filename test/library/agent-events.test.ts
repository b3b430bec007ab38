/** What is told of agents: events, log lines and metrics. */
import { expect, test } from "vitest"
import { CLOSE } from "../../src/core/relay-protocol.ts"
import type { PublicEvent } from "../../src/observe/public-events.ts"
import { AGENT_KIND, agentRecordOf } from "../../src/relay/agent-record.ts"
import type { Store } from "../../src/store/store.ts"
import { Harness, type HarnessOptions } from "../support/harness.ts"
import { LogLines } from "../support/log-lines.ts"
import { TestAgent } from "../support/test-agent.ts"

async function start(options: HarnessOptions = {}) {
  const harness = await Harness.start(options)
  await harness.endpoint({ url: "relay://hub", retry: "relay" })
  const events: PublicEvent[] = []
  for (const name of ["agent.connected", "agent.disconnected"] as const)
    harness.posthorn.on(name, (event) => events.push(event))
  const { id: app_id } = await harness.posthorn.applications.get("acme")
  const common = { agent: "hub", app_id, org_id: harness.posthorn.context.orgId }
  return { harness, events, common }
}

test("an agent that connects and leaves is two events, with the reason", async () => {
  const { harness, events, common } = await start()
  const agent = await TestAgent.join(harness, { version: "my-agent/7" })
  const connectedAt = harness.clock.now()
  harness.clock.advance(5000)
  agent.cut()
  const detail = "the agent closed the connection with 1006"
  expect(events).toEqual([
    {
      type: "agent.connected",
      ...common,
      version: "my-agent/7",
      reason: null,
      detail: null,
      at: connectedAt,
    },
    {
      ...{ type: "agent.disconnected", ...common, version: "my-agent/7", reason: "lost" },
      ...{ detail, at: connectedAt + 5000 },
    },
  ])
})

test("a connection that is replaced has ended before the newer one is told, and a stop ends that", async () => {
  const { harness, events } = await start()
  await TestAgent.join(harness, { version: "old" })
  await TestAgent.join(harness, { version: "new" })
  await harness.close()
  expect(
    events.map((event) => [
      event.type,
      "version" in event && event.version,
      "reason" in event && event.reason,
    ]),
  ).toEqual([
    ["agent.connected", "old", null],
    ["agent.disconnected", "old", "replaced"],
    ["agent.connected", "new", null],
    ["agent.disconnected", "new", "done"],
  ])
})

test("a connection that is not accepted is no event", async () => {
  const { harness, events, common } = await start()
  const owner = {
    appId: common.app_id,
    orgId: common.org_id,
    endpointIds: null,
    isStillValid: async () => true,
  }
  const agent = new TestAgent((socket) => harness.posthorn.agentHub!.connect(socket, owner), { agent: "HUB" })
  expect(agent.socket.closedWith).toMatchObject({ code: CLOSE.badFrame })
  expect(events).toEqual([])
})

test("a connection that was replaced before it was welcomed is no event", async () => {
  const { promise: answered, resolve: answer } = Promise.withResolvers<void>()
  const stored = Promise.withResolvers<void>()
  /** The first connection is stored, and its process hears of that late. */
  const wrapStore = (store: Store): Store => ({
    ...store,
    async saveEntryIfUnchanged(entry) {
      await store.saveEntryIfUnchanged(entry)
      if (entry.kind !== AGENT_KIND || agentRecordOf(entry).epoch !== 1) return
      stored.resolve()
      await answered
    },
  })
  const { harness, events, common } = await start({ wrapStore })
  const owner = {
    appId: common.app_id,
    orgId: common.org_id,
    endpointIds: null,
    isStillValid: async () => true,
  }
  const late = new TestAgent((socket) => harness.posthorn.agentHub!.connect(socket, owner))
  await stored.promise
  await TestAgent.join(harness, { version: "newer" })
  answer()
  await late.socket.until(() => late.socket.closedWith !== null)
  expect(late.socket.closedWith).toMatchObject({ code: CLOSE.replaced })
  expect(events).toMatchObject([{ type: "agent.connected", version: "newer" }])
})

test("the log has a line for each, with the reason", async () => {
  const lines = new LogLines()
  const { harness, common } = await start({ logger: lines.logger })
  const agent = await TestAgent.join(harness, { version: "my-agent/7" })
  agent.session.read("nonsense")
  expect(lines.about("An agent is")).toMatchObject([
    {
      msg: "An agent is connected",
      level: 30,
      agent: "hub",
      app_id: common.app_id,
      epoch: 1,
      version: "my-agent/7",
    },
    { msg: "An agent is disconnected", level: 30, reason: "bad_frame", detail: "a frame must be JSON" },
  ])
})

/** The relay's series of a scrape that are not 0. */
async function scraped(harness: Harness): Promise<readonly string[]> {
  const text = await harness.posthorn.registry!.metrics()
  return text.split("\n").filter((line) => line.startsWith("posthorn_relay_") && !line.endsWith(" 0"))
}

test("agents, their events and their ends are counted, and no series has a name of anybody", async () => {
  const { harness } = await start({ metrics: true })
  expect(await scraped(harness)).toEqual([])
  const all = (await harness.posthorn.registry!.metrics()).split("\n")
  const zeros = all.filter((line) => line.startsWith("posthorn_relay_") && line.endsWith(" 0"))
  expect(zeros.length).toBe(2 + 1 + 4 + 12 + 4)
  const agent = await TestAgent.join(harness)
  await harness.send()
  const event = await agent.event(1)
  expect(await scraped(harness)).toEqual([
    "posthorn_relay_agents 1",
    "posthorn_relay_events_in_flight 1",
    'posthorn_relay_connections_total{result="accepted"} 1',
  ])
  agent.answer(event, 200)
  agent.answer(event, 200)
  await harness.published("delivery.delivered", 1)
  agent.cut()
  expect(await scraped(harness)).toEqual([
    'posthorn_relay_connections_total{result="accepted"} 1',
    'posthorn_relay_connections_total{result="closed_lost"} 1',
    'posthorn_relay_acknowledgements_total{result="success"} 1',
    'posthorn_relay_acknowledgements_total{result="late"} 1',
  ])
  const text = await harness.posthorn.registry!.metrics()
  expect(text).toContain('posthorn_attempt_duration_seconds_count{result="succeeded"} 1')
  expect(text).not.toContain("hub")
})
