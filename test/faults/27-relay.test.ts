/** Fault 27: an agent's connection is cut, half open, taken over by another agent of its name. */
import { expect, onTestFinished, test } from "vitest"
import type { EndpointInput } from "../../src/resources/endpoints.ts"
import { ApiServer } from "../api/support/server.ts"
import { FaultProxy } from "../support/fault-proxy.ts"
import { counted, Hub } from "../support/hub.ts"
import { rounds } from "../support/length.ts"

const CUTS = rounds(100, 1000)
const PATIENCE = { timeout: rounds(120_000, 900_000) }
/** Messages that the hub has not seen yet. */
const MOST_WAITING = 30

async function start(endpoint: Partial<EndpointInput>) {
  const server = await ApiServer.start()
  const { posthorn } = server
  await posthorn.applications.create({ uid: "acme", name: "Acme" })
  await posthorn.endpoints.create("acme", { url: "relay://hub", retry: "relay", ...endpoint })
  const { token: key } = await posthorn.keys.create({ name: "hub", scope: "agent", appId: "acme" })
  /** Another way to the server. */
  const newPath = async () => {
    const proxy = await FaultProxy.start({ port: Number(new URL(server.url).port), host: "127.0.0.1" })
    onTestFinished(() => proxy.close())
    return { proxy, options: { server: proxy.through(server.url), key } }
  }
  const send = async (n: number) =>
    (await posthorn.send("acme", { eventType: "door.opened", payload: { n } })).id
  return { posthorn, send, newPath, ...(await newPath()) }
}

test.each([
  ["in order", { ordered: true }],
  ["sixteen at once", { ordered: false }],
])(
  `${CUTS} cuts at random moments lose nothing and repeat nothing that is settled, %s`,
  PATIENCE,
  async (_how, endpoint) => {
    const { posthorn, proxy, send, options } = await start(endpoint)
    const hub = new Hub({ ...options, patience: 0 })
    const ids = new Map<number, string>()
    let cuts = 0
    const sending = (async () => {
      for (let n = 1; cuts < CUTS; n++) {
        ids.set(n, await send(n))
        await hub.until(() => n - hub.numbers.length < MOST_WAITING)
      }
    })()
    const cutting = (async () => {
      for (let connections = 0; cuts < CUTS; cuts++) {
        await hub.until(() => hub.connections > connections)
        connections = hub.connections
        const seen = hub.runs.length
        // Most connections see an event, some are cut before.
        if (Math.random() < 0.8) await hub.until(() => hub.runs.length > seen)
        // A random number of turns of the event loop: in the middle of a handler, of an acknowledgement, of a settle.
        for (let turns = Math.floor(Math.random() * 8); turns > 0; turns--) await new Promise(setImmediate)
        proxy.reset()
      }
    })()
    await Promise.all([sending, cutting])
    const sent = counted(1, ids.size)
    await expect
      .poll(() => posthorn.stats("acme"), { timeout: 20_000 })
      .toMatchObject({ delivered: ids.size, dead: 0 })
    expect(new Set(hub.numbers)).toEqual(new Set(sent))
    if (endpoint.ordered) expect(hub.numbers).toEqual(sent)
    expect(hub.runAgain).toEqual([])
    // A duplicate carries the id of the first.
    for (const { n, messageId } of hub.runs) expect(messageId).toBe(ids.get(n))
    const { data } = await posthorn.deliveries.list({ app: "acme", limit: 250 })
    for (const { attemptCount } of data) expect(attemptCount).toBe(1)
  },
)

test("on a half-open connection the next one takes over at once, and what was in flight goes again", async () => {
  const { posthorn, proxy, send, newPath, options } = await start({})
  const first = new Hub(options)
  await first.until(() => first.connections === 1)
  proxy.blackHole()
  const ids = [await send(1), await send(2)]
  await expect.poll(() => posthorn.agentHub!.counts, { timeout: 20_000 }).toEqual({ agents: 1, inFlight: 1 })
  // The hub's old connection is half open, and neither side knows.
  const second = new Hub((await newPath()).options)
  await second.until(() => second.settled.size === 2)
  expect(second.runs.map(({ messageId }) => messageId)).toEqual(ids)
  expect(first.runs).toEqual([])
  expect(await posthorn.stats("acme")).toMatchObject({ delivered: 2 })
})

test("of two agents of one name the newer one gets the events, and the older one ends with a sentence", async () => {
  const { posthorn, send, options } = await start({})
  const older = new Hub(options)
  await older.until(() => older.connections === 1)
  const newer = new Hub(options)
  await older.until(() => older.refusal !== null)
  for (const n of counted(1, 20)) await send(n)
  await newer.until(() => newer.settled.size === 20)
  expect(newer.numbers).toEqual(counted(1, 20))
  expect(older.runs).toEqual([])
  expect(older.refusal).toMatch(/another agent/i)
  expect(await posthorn.stats("acme")).toMatchObject({ delivered: 20 })
})
