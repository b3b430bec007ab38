import { expect, test } from "vitest"
import { TestClock } from "../../test/support/clock.ts"
import { TestAgent } from "../../test/support/test-agent.ts"
import { agentUrl } from "../core/agent-url.ts"
import { createLogger } from "../observe/log.ts"
import type { Endpoint } from "../store/store.ts"
import { AgentSession } from "../transport/relay/agent-session.ts"
import { RelayTransport } from "../transport/relay/relay.ts"
import { AgentLanes } from "./agent-lanes.ts"

const nextTick = () => new Promise((resolve) => setImmediate(resolve))

function start() {
  const clock = new TestClock()
  const rows: { id: string; appId: string; url: string }[] = []
  let reads = 0
  /** The store answers lists after this. */
  let answered = Promise.resolve()
  const found = (some: typeof rows) => {
    reads++
    return some as unknown as Endpoint[]
  }
  const lanes = new AgentLanes({
    clock,
    logger: createLogger("silent"),
    transport: new RelayTransport(),
    store: {
      listEndpoints: async ({ appId, url }) => {
        const read = found(rows.filter((row) => row.appId === appId && row.url === url))
        await answered
        return read
      },
      getEndpoints: async (ids) => found(rows.filter(({ id }) => ids.includes(id))),
      getEndpoint: async (_appId, id) => found(rows.filter((row) => row.id === id))[0] ?? null,
    },
  })
  const served: (readonly string[])[] = []
  const woken: string[][] = []
  lanes.start({
    serve: (endpoints) => void served.push([...endpoints]),
    wake: (some) => void woken.push(some.map(({ endpointId }) => endpointId)),
    reachChanged() {},
  })
  /** An agent with one endpoint, whose id has the agent's name. */
  const join = (name: string) => {
    rows.push({ id: `ep_${name}`, appId: "app_1", url: agentUrl(name) })
    const listener = {
      greeted: (session: AgentSession) => session.welcome({ session: name, epoch: 1 }),
      reachChanged: (session: AgentSession) => lanes.reachChanged(session),
      acknowledged() {},
      ended: (session: AgentSession) => lanes.release(session),
    }
    const agent = new TestAgent((socket) => new AgentSession(socket, clock, () => "token", listener))
    const isStillValid = async () => true
    const access = { orgId: "org_1", appId: "app_1", endpointIds: null, isStillValid }
    const reading = lanes.serve({ session: agent.session, access, agent: name, version: "1", epoch: 1 })
    return { agent, reading }
  }
  const joined = async (...names: string[]) => {
    await Promise.all(names.map((name) => join(name).reading))
    await nextTick()
    served.length = 0
    reads = 0
  }
  const holdLists = () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    answered = promise
    return resolve
  }
  return { lanes, rows, served, woken, join, joined, holdLists, reads: () => reads }
}

test("the engine is told once of all agents that come in one tick, and once when a network cuts them all off", async () => {
  const { served, woken, join } = start()
  const names = Array.from({ length: 50 }, (_, n) => `hub-${n}`)
  const ids = names.map((name) => `ep_${name}`)
  const joined = names.map(join)
  await Promise.all(joined.map(({ reading }) => reading))
  await nextTick()
  expect([served, woken]).toEqual([[ids], [ids]])
  for (const { agent } of joined.slice(1)) agent.cut()
  await nextTick()
  expect(served.slice(1)).toEqual([["ep_hub-0"]])
  expect(woken.slice(1)).toEqual([[]])
})

test("a changed endpoint is read once, and after that only the endpoints of agents that it concerns", async () => {
  const { lanes, rows, served, joined, reads } = start()
  await joined("a", "b", "c", "d")
  rows.push({ id: "ep_http", appId: "app_1", url: "https://example.com" })
  lanes.endpointChanged("ep_http", "app_1")
  await nextTick()
  expect([reads(), served]).toEqual([1, []])
  // From the agent a to b: one read of the changed endpoint, one for each of the two agents.
  rows[0]!.url = agentUrl("b")
  lanes.endpointChanged("ep_a", "app_1")
  await nextTick()
  expect(reads()).toBe(4)
  lanes.endpointChanged("ep_other", "app_2")
  await nextTick()
  expect(reads()).toBe(4)
})

test("changes that come while changed endpoints are read cost one more read together", async () => {
  const { lanes, joined, reads } = start()
  await joined("a")
  for (let n = 0; n < 100; n++) lanes.endpointChanged(`ep_http_${n}`, "app_1")
  await nextTick()
  expect(reads()).toBe(2)
})

test("an agent whose endpoints are being read when one of them changes is read again", async () => {
  const { lanes, rows, served, join, holdLists } = start()
  const answer = holdLists()
  const { reading } = join("a")
  // The list has the old URL.
  rows[0] = { ...rows[0]!, url: "https://example.com" }
  lanes.endpointChanged("ep_a", "app_1")
  await nextTick()
  answer()
  await reading
  await nextTick()
  expect(served.at(-1)).toEqual([])
})
