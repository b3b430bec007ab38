/** The relay over several processes on PostgreSQL: which one has an agent, and what is left when one is killed. */
import { describe, expect, onTestFinished, test } from "vitest"
import { addressOf, serve, start } from "../api/support/serving.ts"
import { FaultProxy } from "../support/fault-proxy.ts"
import { counted, Hub } from "../support/hub.ts"
import type { Program } from "../support/process.ts"
import { ON_SHARED_SERVERS, Site } from "./site.ts"

describe.each(ON_SHARED_SERVERS)("on %s", (_, place) => {
  async function begin() {
    const site = await Site.open(await place())
    await site.sender.endpoints.create("acme", { url: "relay://hub", retry: "relay", eventTypes: ["hub"] })
    const { token: key } = await site.sender.keys.create({ name: "hub", scope: "agent", appId: "acme" })
    const { store, schedule } = site.place
    const environment = {
      POSTHORN_STORE: store!,
      ...(schedule === undefined ? {} : { POSTHORN_SCHEDULE: schedule }),
      POSTHORN_METRICS: "off",
      POSTHORN_LOG_LEVEL: "info",
    }
    const server = async (...args: string[]) => {
      const program = serve(args, environment)
      return { program, address: await addressOf(program) }
    }
    const send = (from: number, to: number) =>
      Promise.all(counted(from, to).map((n) => site.send("hub", { n })))
    const delivered = async (count: number) =>
      expect
        .poll(() => site.sender.stats("acme"), { timeout: 25_000 })
        .toMatchObject({ delivered: count, dead: 0 })
    return { site, key, environment, server, send, delivered }
  }

  /** An address whose server can be changed, as that of a load balancer. */
  async function balancer(first: string) {
    const upstream = { host: "127.0.0.1", port: Number(new URL(first).port) }
    const proxy = await FaultProxy.start(upstream)
    onTestFinished(() => proxy.close())
    const to = (address: string) => {
      upstream.port = Number(new URL(address).port)
    }
    return { address: proxy.through(first), to }
  }

  test("a server that only serves the API holds an agent, and the workers leave its lane alone", async () => {
    const { site, key, server, send, delivered } = await begin()
    await site.worker()
    const api = await server("--no-deliver")
    const hub = new Hub({ server: api.address, key })
    await hub.until(() => hub.connections === 1)
    for (const n of counted(1, 20)) await send(n, n)
    await delivered(20)
    expect(hub.numbers).toEqual(counted(1, 20))
    await site.endpoint("hook")
    await site.send("hook")
    await site.receiver.arrived("/hook", 1)
  })

  test("a new connection to another server replaces the old one at once", async () => {
    const { key, server, send, delivered } = await begin()
    const [first, second] = [await server(), await server()]
    const older = new Hub({ server: first.address, key })
    await older.until(() => older.connections === 1)
    await send(1, 1)
    await older.until(() => older.settled.size === 1)
    const newer = new Hub({ server: second.address, key })
    await older.until(() => older.refusal !== null)
    await send(2, 2)
    await delivered(2)
    expect(newer.numbers).toEqual([2])
  })

  test("kill -9 of the server that has the agent: another one goes on where it stopped, in order", async () => {
    const { key, server, send, delivered } = await begin()
    const [first, second] = [await server(), await server()]
    const { address, to } = await balancer(first.address)
    let isKilled = false
    const hub = new Hub({
      server: address,
      key,
      async answer(n) {
        if (n !== 5 || isKilled) return { status: 200 }
        isKilled = true
        to(second.address)
        await first.program.kill()
        return { status: 200 }
      },
    })
    await hub.until(() => hub.connections === 1)
    for (const n of counted(1, 20)) await send(n, n)
    await delivered(20)
    expect(hub.numbers).toEqual(counted(1, 20))
    expect(hub.runAgain).toEqual([])
  })

  test("kill -9 of a worker and of the agent in turn loses nothing and keeps the order", async () => {
    const { site, key, environment, server, send, delivered } = await begin()
    const { address } = await server("--no-deliver")
    const workers = [await site.worker(), await site.worker()]
    // The agent forwards to the test's receiver, in a process of its own.
    const agent = async () => {
      const program: Program = start(
        ["agent", "--server", address, "--name", "hub", "--forward", site.receiver.url("/hub")],
        { ...environment, POSTHORN_API_KEY: key },
      )
      await program.line(/connected/i)
      return program
    }
    let running = await agent()
    await send(1, 5)
    await site.receiver.arrived("/hub", 5)
    await running.kill()
    await workers[0]!.kill()
    await send(6, 10)
    running = await agent()
    await site.receiver.arrived("/hub", 10)
    await workers[1]!.kill()
    await send(11, 15)
    await delivered(15)
    const numbers = site.receiver.to("/hub").map(({ body }) => JSON.parse(String(body)).n)
    const firsts = [...new Set(numbers)]
    expect(firsts.slice().sort((a, b) => a - b)).toEqual(counted(1, 15))
    expect(numbers.length).toBeLessThanOrEqual(16)
    await running.kill()
  })
})
