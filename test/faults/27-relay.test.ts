/** Fault 27: an agent's connection is cut, half open, taken over by another agent of its name. */
import { expect, onTestFinished, test } from "vitest"
import { connectAgent } from "../../src/agent/agent.ts"
import type { AgentEvent } from "../../src/agent/event.ts"
import type { AgentOptions } from "../../src/agent/options.ts"
import type { EndpointInput } from "../../src/resources/endpoints.ts"
import { ApiServer } from "../api/support/server.ts"
import { FaultProxy } from "../support/fault-proxy.ts"
import { rounds } from "../support/length.ts"
import { Watchers } from "../support/watchers.ts"

const CUTS = rounds(100, 1000)
const MESSAGES = 3 * CUTS

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

/** A hub that logs each run of its handler, and each outcome that the server confirmed. */
class Hub {
  readonly runs: { readonly n: number; readonly messageId: string; readonly deliveryId: string }[] = []
  readonly settled = new Set<string>()
  readonly runAgain: string[] = []
  readonly watchers = new Watchers()
  connections = 0
  replaced = false

  constructor(options: Pick<AgentOptions, "server" | "key">) {
    const agent = connectAgent(
      {
        ...options,
        name: "hub",
        logger: "silent",
        closeTimeoutMs: 0,
        handle: (event) => this.#handle(event),
        onConnected: () => {
          this.connections++
          this.watchers.changed()
        },
        onSettled: ({ deliveryId }) => {
          this.settled.add(deliveryId)
          this.watchers.changed()
        },
      },
      // Connects again at once.
      { random: () => 0 },
    )
    void agent.closed.then((error) => {
      this.replaced = error !== null
      this.watchers.changed()
    })
    onTestFinished(() => agent.close())
  }

  #handle({ messageId, deliveryId, body }: AgentEvent) {
    if (this.settled.has(deliveryId)) this.runAgain.push(deliveryId)
    this.runs.push({ n: JSON.parse(Buffer.from(body).toString()).n, messageId, deliveryId })
    this.watchers.changed()
    return { status: 200 }
  }

  /** The numbers in the order of their first run. */
  get numbers(): number[] {
    return [...new Set(this.runs.map(({ n }) => n))]
  }
}

const counted = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i)

test.each([
  ["in order", { ordered: true }],
  ["sixteen at once", { ordered: false }],
])(`${CUTS} cuts at random moments lose nothing and repeat nothing that is settled, %s`, async (_how, endpoint) => {
  const { posthorn, proxy, send, options } = await start(endpoint)
  const hub = new Hub(options)
  const ids = new Map<number, string>()
  let cuts = 0
  const sending = (async () => {
    for (const n of counted(1, MESSAGES)) ids.set(n, await send(n))
  })()
  while (cuts < CUTS) {
    const seen = hub.runs.length
    const connections = hub.connections
    await hub.watchers.until(
      () =>
        hub.connections >= Math.max(1, connections) &&
        (hub.runs.length > seen || hub.runs.length >= MESSAGES),
    )
    // A random number of turns of the event loop: in the middle of a handler, of an acknowledgement, of a settle.
    for (let turns = Math.floor(Math.random() * 8); turns > 0; turns--) await new Promise(setImmediate)
    proxy.reset()
    cuts++
    if (hub.numbers.length === MESSAGES) break
  }
  await sending
  await expect
    .poll(() => posthorn.stats("acme"), { timeout: 20_000 })
    .toMatchObject({ delivered: MESSAGES, dead: 0 })
  expect(cuts).toBeGreaterThan(CUTS / 4)
  expect(new Set(hub.numbers)).toEqual(new Set(counted(1, MESSAGES)))
  if (endpoint.ordered) expect(hub.numbers).toEqual(counted(1, MESSAGES))
  expect(hub.runAgain).toEqual([])
  // A duplicate carries the id of the first.
  for (const { n, messageId } of hub.runs) expect(messageId).toBe(ids.get(n))
  const { data } = await posthorn.deliveries.list({ app: "acme", limit: 250 })
  for (const { attemptCount } of data) expect(attemptCount).toBe(1)
})

test("on a half-open connection the next one takes over at once, and what was in flight goes again", async () => {
  const { posthorn, proxy, send, newPath, options } = await start({})
  const first = new Hub(options)
  await first.watchers.until(() => first.connections === 1)
  proxy.blackHole()
  const ids = [await send(1), await send(2)]
  await expect.poll(() => posthorn.agentHub!.counts).toEqual({ agents: 1, inFlight: 1 })
  // The hub's old connection is half open, and neither side knows.
  const second = new Hub((await newPath()).options)
  await second.watchers.until(() => second.settled.size === 2)
  expect(second.runs.map(({ messageId }) => messageId)).toEqual(ids)
  expect(first.runs).toEqual([])
  expect(await posthorn.stats("acme")).toMatchObject({ delivered: 2 })
})

test("of two agents of one name the newer one gets the events, and the older one ends with a sentence", async () => {
  const { posthorn, send, options } = await start({})
  const older = new Hub(options)
  await older.watchers.until(() => older.connections === 1)
  const newer = new Hub(options)
  await older.watchers.until(() => older.replaced)
  for (const n of counted(1, 20)) await send(n)
  await newer.watchers.until(() => newer.settled.size === 20)
  expect(newer.numbers).toEqual(counted(1, 20))
  expect(older.runs).toEqual([])
  expect(await posthorn.stats("acme")).toMatchObject({ delivered: 20 })
})
