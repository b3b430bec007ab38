/** Lookups with a real DNS server that answers correctly, wrongly or not at all. */
import { expect, onTestFinished, test, vi } from "vitest"
import { TestClock } from "../../../test/support/clock.ts"
import { type Answer, DnsServer } from "../../../test/support/dns-server.ts"
import { NameResolver } from "./resolver.ts"

const PUBLIC = "93.184.216.34"
const PUBLIC_V6 = "2606:2800:220:1::1"
const PRIVATE = "10.0.0.1"

async function startServer(): Promise<DnsServer> {
  const server = await DnsServer.start()
  onTestFinished(() => server.close())
  return server
}

async function setUp(timeoutMs = 20_000) {
  const server = await startServer()
  const clock = new TestClock()
  const resolver = open([server], clock, timeoutMs)
  return { server, clock, ask: (name: string, endpointId = "ep_1") => resolver.resolve(name, endpointId) }
}

function open(servers: DnsServer[], clock: TestClock, timeoutMs: number): NameResolver {
  const resolver = new NameResolver({ servers: servers.map(({ address }) => address), timeoutMs, clock })
  onTestFinished(() => resolver.close())
  return resolver
}

test.each<[string, Answer, string[]]>([
  ["an A record", { a: [PUBLIC] }, [PUBLIC]],
  ["an AAAA record", { aaaa: [PUBLIC_V6] }, [PUBLIC_V6]],
  ["both", { a: [PUBLIC], aaaa: [PUBLIC_V6] }, [PUBLIC, PUBLIC_V6]],
  ["a public and a private address", { a: [PUBLIC, PRIVATE] }, [PUBLIC, PRIVATE]],
  ["a private address in the other family", { a: [PUBLIC], aaaa: ["::1"] }, [PUBLIC, "::1"]],
  ["IPv4 inside IPv6", { aaaa: ["::ffff:127.0.0.1"] }, ["::ffff:127.0.0.1"]],
  ["A, and AAAA refused", { a: [PUBLIC], aaaa: "refused" }, [PUBLIC]],
  ["AAAA, and A failing", { a: "servfail", aaaa: [PUBLIC_V6] }, [PUBLIC_V6]],
  ["A, and AAAA of an unknown name", { a: [PUBLIC], aaaa: "nxdomain" }, [PUBLIC]],
  ["A, and garbage for AAAA", { a: [PUBLIC], aaaa: "garbage" }, [PUBLIC]],
])("a name with %s resolves to all its addresses", async (_what, answer, addresses) => {
  const { server, ask } = await setUp()
  server.answer("hooks.example", answer)
  expect(await ask("hooks.example")).toEqual({ addresses })
})

test.each<[string, Answer]>([
  ["is unknown", "nxdomain"],
  ["has a failing server", "servfail"],
  ["is refused", "refused"],
  ["has no address", "empty"],
  ["is answered with garbage", "garbage"],
  ["leads to an unknown name", { cname: "unknown.example" }],
  ["leads to a name without address", { cname: "empty.example" }],
  ["leads to itself", { cname: "hooks.example" }],
])("a name that %s is a dns_error", async (_what, answer) => {
  const { server, ask } = await setUp()
  server.answer("hooks.example", answer)
  server.answer("empty.example", "empty")
  expect(await ask("hooks.example")).toMatchObject({
    problem: "dns_error",
    detail: expect.stringMatching(/^hooks\.example: A E/),
  })
})

test("a chain of CNAMEs gives the addresses at its end, also private ones, cached for the shortest TTL of the chain", async () => {
  const { server, clock, ask } = await setUp()
  server.answer("hooks.example", { cname: "cdn.example", ttlSeconds: 300 })
  server.answer("cdn.example", { cname: "db.corp.internal", ttlSeconds: 7 })
  server.answer("db.corp.internal", { a: [PRIVATE], ttlSeconds: 300 })
  expect(await ask("hooks.example")).toEqual({ addresses: [PRIVATE] })
  clock.advance(6999)
  await ask("hooks.example")
  expect(server.about("hooks.example")).toHaveLength(2)
  clock.advance(1)
  await ask("hooks.example")
  expect(server.about("hooks.example")).toHaveLength(4)
})

test("an answer too long for a datagram is fetched over TCP", async () => {
  const { server, ask } = await setUp()
  server.answer("hooks.example", { a: [PUBLIC], aaaa: [PUBLIC_V6], truncated: true })
  expect(await ask("hooks.example")).toEqual({ addresses: [PUBLIC, PUBLIC_V6] })
  const ways = server.about("hooks.example").map(({ type, over }) => `${type} ${over}`)
  expect(ways.sort()).toEqual(["A tcp", "A udp", "AAAA tcp", "AAAA udp"])
})

test("hundreds of addresses are a dns_error", async () => {
  const { server, ask } = await setUp()
  server.answer("hooks.example", { a: Array.from({ length: 400 }, (_, i) => `93.184.${i >> 8}.${i & 255}`) })
  expect(await ask("hooks.example")).toEqual({
    problem: "dns_error",
    detail: "hooks.example has 400 addresses",
  })
})

test("a name that is never answered is a timeout, at the deadline and not before", async () => {
  const { server, clock, ask } = await setUp(20_000)
  server.answer("tarpit.example", "tarpit")
  let ended = false
  const lookup = ask("tarpit.example").finally(() => {
    ended = true
  })
  await server.asked("tarpit.example", 2)
  clock.advance(19_999)
  await ask("other.example")
  expect(ended).toBe(false)
  clock.advance(1)
  expect(await lookup).toEqual({
    problem: "timeout",
    detail: "tarpit.example: A ECANCELLED, AAAA ECANCELLED",
  })
  expect(clock.timers).toBe(0)
})

test("when only one family is answered, its addresses are the result at the deadline", async () => {
  const { server, clock, ask } = await setUp(20_000)
  server.answer("hooks.example", { a: [PUBLIC], aaaa: "tarpit" })
  const lookup = ask("hooks.example")
  await server.asked("hooks.example", 2)
  // A round trip that starts after the answer was sent ends after it has come.
  await ask("other.example")
  clock.advance(20_000)
  expect(await lookup).toEqual({ addresses: [PUBLIC] })
})

test("a query that was lost is sent again, and to the next server when the first is silent", async () => {
  const { server, ask } = await setUp(2000)
  server.answer("lossy.example", "tarpit", { a: [PUBLIC] })
  expect(await ask("lossy.example")).toEqual({ addresses: [PUBLIC] })
  const second = await startServer()
  server.answer("hooks.example", "tarpit")
  second.answer("hooks.example", { a: [PUBLIC] })
  const both = open([server, second], new TestClock(), 2000)
  expect(await both.resolve("hooks.example", "ep_1")).toEqual({ addresses: [PUBLIC] })
})

test("a DNS server that is down is a dns_error, and an invalid server address is refused at the start", async () => {
  const { server, ask } = await setUp()
  await server.close()
  expect(await ask("hooks.example")).toMatchObject({
    problem: "dns_error",
    detail: expect.stringMatching(/ECONNREFUSED/),
  })
  const make = () => new NameResolver({ servers: ["dns.example"], timeoutMs: 1, clock: new TestClock() })
  expect(make).toThrow("dns.example")
})

test("a cached name is not asked for again, in any spelling", async () => {
  const { server, clock, ask } = await setUp()
  server.answer("hooks.example", { a: [PUBLIC], ttlSeconds: 10 })
  for (const name of ["hooks.example", "Hooks.Example", "hooks.example."])
    expect(await ask(name)).toEqual({ addresses: [PUBLIC] })
  clock.advance(9999)
  await ask("hooks.example")
  expect(server.about("hooks.example")).toHaveLength(2)
})

test("a name that changes its address gives the new one as soon as the old one has expired", async () => {
  const { server, clock, ask } = await setUp()
  server.answer("rebind.example", { a: [PUBLIC], ttlSeconds: 0 }, { a: [PRIVATE], ttlSeconds: 0 })
  expect(await ask("rebind.example")).toEqual({ addresses: [PUBLIC] })
  clock.advance(999)
  expect(await ask("rebind.example")).toEqual({ addresses: [PUBLIC] })
  clock.advance(1)
  expect(await ask("rebind.example")).toEqual({ addresses: [PRIVATE] })
})

test.each<[string, Answer]>([
  ["an error", "servfail"],
  ["an unknown name", "nxdomain"],
])("%s is kept for three seconds", async (_what, answer) => {
  const { server, clock, ask } = await setUp()
  server.answer("hooks.example", answer, { a: [PUBLIC] })
  await ask("hooks.example")
  clock.advance(2999)
  expect(await ask("hooks.example")).toMatchObject({ problem: "dns_error" })
  clock.advance(1)
  expect(await ask("hooks.example")).toEqual({ addresses: [PUBLIC] })
})

test("at most 2048 names are cached; the oldest entry is dropped first", async () => {
  const { server, ask } = await setUp()
  await ask("first.example")
  for (let i = 0; i < 2048; i += 32)
    await Promise.all(Array.from({ length: 32 }, (_, j) => ask(`n${i + j}.example`, `ep_${j}`)))
  for (let i = 0; i < 2048; i++) await ask(`n${i}.example`)
  expect(server.queries).toHaveLength(2 * 2049)
  await ask("first.example")
  expect(server.about("first.example")).toHaveLength(4)
})

test("neither the hosts file nor a search domain is used", async () => {
  vi.stubEnv("LOCALDOMAIN", "corp.internal")
  onTestFinished(() => void vi.unstubAllEnvs())
  const { server, ask } = await setUp()
  for (const name of ["localhost", "intranet", "hooks.example"])
    expect(await ask(name)).toMatchObject({ problem: "dns_error" })
  const asked = new Set(server.queries.map(({ name }) => name))
  expect([...asked]).toEqual(["localhost", "intranet", "hooks.example"])
})

test.each([
  "",
  ".",
  "a..example",
  ".example",
  "a b.example",
  "a\0.example",
  "a\\.example",
  "a%2e.example",
  "ä.example",
  "a.example..",
  "[::1]",
])("%j is no host name: no query is sent", async (name) => {
  const { server, ask } = await setUp()
  expect(await ask(name)).toMatchObject({
    problem: "dns_error",
    detail: expect.stringMatching(/is not a host name$/),
  })
  expect(server.queries).toEqual([])
})

test("names and labels that are too long are dns_errors", async () => {
  const { ask } = await setUp()
  const tooLong = [`${"x".repeat(64)}.example`, `${"long.".repeat(60)}example`]
  for (const name of tooLong)
    expect(await ask(name)).toMatchObject({ problem: "dns_error", detail: expect.stringMatching(/EBADNAME/) })
})
