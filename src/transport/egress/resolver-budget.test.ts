/** The limits of lookups: names that never answer (tarpits) delay only their own endpoint. */
import { promises as dns } from "node:dns"
import { expect, onTestFinished, test } from "vitest"
import { TestClock } from "../../../test/support/clock.ts"
import { DnsServer } from "../../../test/support/dns-server.ts"
import type { Resolution } from "./resolution.ts"
import { NameResolver } from "./resolver.ts"

const TIMEOUT_MS = 20_000
const HEALTHY = { addresses: ["93.184.216.34"] }

async function setUp() {
  const server = await DnsServer.start()
  const clock = new TestClock()
  const resolver = new NameResolver({ servers: [server.address], timeoutMs: TIMEOUT_MS, clock })
  onTestFinished(async () => {
    resolver.close()
    await server.close()
  })
  server.answer("healthy.example", { a: HEALTHY.addresses })
  let tarpits = 0
  /** Starts a lookup that hangs; resolves when the server has its query. */
  const hang = async (endpointId: string): Promise<{ readonly lookup: Promise<Resolution> }> => {
    const name = `t${tarpits++}.tarpit.example`
    server.answer(name, "tarpit")
    const lookup = resolver.resolve(name, endpointId)
    await server.asked(name, 2)
    return { lookup }
  }
  /** Past the resolver: when it ends, what was sent to the server before has arrived there. */
  const roundTrip = async () => {
    const beside = new dns.Resolver()
    beside.setServers([server.address])
    await beside.resolve4("healthy.example")
  }
  return { server, clock, resolver, hang, roundTrip }
}

test("concurrent lookups of one name share one query, also across endpoints", async () => {
  const { server, resolver } = await setUp()
  const release = server.hold("healthy.example")
  const lookups = Array.from({ length: 50 }, (_, i) => resolver.resolve("healthy.example", `ep_${i % 3}`))
  await server.asked("healthy.example", 2)
  release()
  for (const lookup of lookups) expect(await lookup).toEqual(HEALTHY)
  expect(server.about("healthy.example").map(({ type }) => type)).toEqual(["A", "AAAA"])
})

test("a healthy name is resolved while 200 tarpits hang", async () => {
  const { server, clock, resolver, hang } = await setUp()
  const tarpits: Promise<Resolution>[] = []
  let ended = 0
  for (let i = 0; i < 200; i++) tarpits.push((await hang(`ep_${i >> 1}`)).lookup.finally(() => ended++))
  expect(await resolver.resolve("healthy.example", "ep_healthy")).toEqual(HEALTHY)
  expect(ended).toBe(0)
  expect(server.about("healthy.example")).toHaveLength(2)
  clock.advance(TIMEOUT_MS)
  for (const tarpit of tarpits) expect(await tarpit).toMatchObject({ problem: "timeout" })
})

test("a third lookup of an endpoint waits until one of the other two has ended", async () => {
  const { server, clock, resolver, hang } = await setUp()
  await hang("ep_1")
  clock.advance(1)
  await hang("ep_1")
  const third = resolver.resolve("healthy.example", "ep_1")
  await resolver.resolve("other.example", "ep_2")
  expect(server.about("healthy.example")).toEqual([])
  clock.advance(TIMEOUT_MS - 1)
  expect(await third).toEqual(HEALTHY)
})

test("a lookup that waits too long for a place is a timeout, which is not cached", async () => {
  const { server, clock, resolver, hang } = await setUp()
  await hang("ep_1")
  await hang("ep_1")
  const third = resolver.resolve("healthy.example", "ep_1")
  clock.advance(TIMEOUT_MS)
  expect(await third).toMatchObject({
    problem: "timeout",
    detail: expect.stringMatching(/was not looked up/),
  })
  await resolver.resolve("other.example", "ep_1")
  expect(server.about("healthy.example")).toEqual([])
  expect(await resolver.resolve("healthy.example", "ep_1")).toEqual(HEALTHY)
})

test("a name that waits behind one endpoint's tarpits is resolved at once for another endpoint", async () => {
  const { server, clock, resolver, hang } = await setUp()
  await hang("ep_1")
  await hang("ep_1")
  clock.advance(1)
  const waiting = resolver.resolve("healthy.example", "ep_1")
  expect(await resolver.resolve("healthy.example", "ep_2")).toEqual(HEALTHY)
  clock.advance(TIMEOUT_MS - 1)
  expect(await waiting).toEqual(HEALTHY)
  expect(server.about("healthy.example")).toHaveLength(2)
})

test("a name that is cached or in flight takes no place", async () => {
  const { clock, resolver, hang } = await setUp()
  await resolver.resolve("healthy.example", "ep_2")
  await hang("ep_1")
  await hang("ep_1")
  expect(await resolver.resolve("healthy.example", "ep_1")).toEqual(HEALTHY)
  const joined = resolver.resolve("t0.tarpit.example", "ep_3")
  await hang("ep_3")
  await hang("ep_3")
  clock.advance(TIMEOUT_MS)
  expect(await joined).toMatchObject({ problem: "timeout", detail: expect.stringMatching(/ECANCELLED/) })
})

test("at most 2048 lookups are in flight in all; the next begins when one ends", async () => {
  const { server, clock, resolver, hang, roundTrip } = await setUp()
  await hang("ep_first")
  clock.advance(1)
  for (let i = 1; i < 2048; i += 23)
    await Promise.all(Array.from({ length: 23 }, (_, j) => hang(`ep_${i + j}`)))
  server.answer("next.example", { a: HEALTHY.addresses })
  const next = resolver.resolve("next.example", "ep_next")
  await roundTrip()
  expect(server.about("next.example")).toEqual([])
  clock.advance(TIMEOUT_MS - 1)
  expect(await next).toEqual(HEALTHY)
})

test("closing ends lookups in flight and waiting ones, and leaves no timer", async () => {
  const { server, clock, resolver, hang } = await setUp()
  const { lookup } = await hang("ep_1")
  await hang("ep_1")
  const waiting = resolver.resolve("healthy.example", "ep_1")
  resolver.close()
  expect(await lookup).toMatchObject({ problem: "timeout" })
  expect(await waiting).toMatchObject({ problem: "dns_error", detail: expect.stringMatching(/closed/) })
  expect(await resolver.resolve("other.example", "ep_2")).toMatchObject({ problem: "dns_error" })
  expect(server.about("healthy.example")).toEqual([])
  expect(clock.timers).toBe(0)
})
