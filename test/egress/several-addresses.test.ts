/** Names with several addresses, some of them dead: the request reaches one that lives, and never one that is closed. */
import { describe, expect, onTestFinished, test } from "vitest"
import { systemClock } from "../../src/core/clock.ts"
import { Guard } from "../../src/transport/egress/guard.ts"
import { parseEgress } from "../../src/transport/egress/settings.ts"
import { HttpTransport } from "../../src/transport/http.ts"
import { blackHole } from "../support/black-hole.ts"
import { type Answer, DnsServer } from "../support/dns-server.ts"
import { Authority } from "./certificates.ts"
import { type Site, siteBesideCanary } from "./site.ts"

const NAME = "hooks.example.com"
/** Nothing listens there unless a test says so. */
const DEAD = "127.0.0.3"
const LIVE = "127.0.0.2"

async function sendTo(site: Site, answer: Answer, { random = 0, connectTimeoutMs = 10_000, ca = "" } = {}) {
  const dns = await DnsServer.start()
  dns.answer(NAME, answer)
  const clock = systemClock()
  const allow = [`${LIVE}/32`, `${DEAD}/32`, "127.0.0.4/32", "::1/128"]
  const guard = new Guard(parseEgress({ allow, dns: [dns.address], ports: "any" }), clock, () => random)
  const transport = new HttpTransport(clock, guard)
  onTestFinished(async () => {
    await transport.close()
    guard.close()
    await dns.close()
  })
  const { outcome } = await transport.send({
    endpointId: "ep_1",
    version: 1,
    url: site.url("/", NAME),
    headers: {},
    body: Buffer.from("hello"),
    timeoutMs: 30_000,
    connectTimeoutMs,
    tls: ca === "" ? {} : { ca },
  })
  return outcome
}

const DELIVERED = { kind: "response", status: 200 }
const failure = (cause: string) => ({ kind: "failure", cause })

describe.each(["http", "https"])("over %s", (scheme) => {
  async function live(host: string): Promise<{ site: Site; ca: string }> {
    if (scheme === "http") return { site: await siteBesideCanary({ host }), ca: "" }
    const authority = new Authority()
    const tls = authority.certificate("x", { names: `DNS:${NAME}` })
    return { site: await siteBesideCanary({ host, tls }), ca: authority.cert }
  }

  describe.each<[string, (site: Site) => Promise<void>]>([
    ["refuses", async () => {}],
    ["is a black hole", (site) => blackHole(DEAD, site.port)],
  ])("an address that %s", (_what, die) => {
    test("does not keep a request from the name's IPv6 address", async () => {
      const { site, ca } = await live("::1")
      await die(site)
      expect(await sendTo(site, { a: [DEAD], aaaa: ["::1"] }, { ca })).toMatchObject(DELIVERED)
      expect(site.visits).toMatchObject([{ headers: { host: `${NAME}:${site.port}` } }])
    })

    test.each([
      0, 0.999,
    ])("does not keep a request from the other one, wherever it begins (%d)", async (random) => {
      const { site, ca } = await live(LIVE)
      await die(site)
      expect(await sendTo(site, { a: [DEAD, LIVE] }, { random, ca })).toMatchObject(DELIVERED)
      expect(site.visits).toHaveLength(1)
    })
  })
})

test("where no address lives the request has the first one's cause", async () => {
  const site = await siteBesideCanary()
  const dead = { a: [DEAD, "127.0.0.4"], aaaa: ["::1"] }
  expect(await sendTo(site, dead)).toEqual(failure("connection_refused"))
})

test("all addresses together have the connect timeout", async () => {
  const site = await siteBesideCanary()
  await blackHole(DEAD, site.port)
  await blackHole("127.0.0.4", site.port)
  const dead = { a: [DEAD, "127.0.0.4"] }
  expect(await sendTo(site, dead, { connectTimeoutMs: 300 })).toEqual(failure("timeout"))
})

test.each<[string, Answer]>([
  ["behind a dead one", { a: [DEAD, "127.0.0.1"] }],
  ["behind a live one", { a: [LIVE, "127.0.0.1"] }],
  ["of IPv6, hidden", { a: [LIVE], aaaa: ["::ffff:7f00:1"] }],
])("a closed address %s refuses all of them", async (_what, answer) => {
  const site = await siteBesideCanary()
  for (const random of [0, 0.999])
    expect(await sendTo(site, answer, { random })).toEqual(failure("target_forbidden"))
  expect(site.connections).toBe(0)
})
