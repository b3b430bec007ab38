/** Fault 21 and the names of the egress list, with a DNS server that answers as an attacker's would. */
import { describe, expect, onTestFinished, test } from "vitest"
import { type Answer, DnsServer } from "../support/dns-server.ts"
import { Harness } from "../support/harness.ts"
import { OPEN } from "./canary.ts"
import { plant } from "./planted.ts"
import { siteBesideCanary } from "./site.ts"

const NAME = "hooks.example.com"
/** The longest that an answer is kept, and a moment. */
const CACHE_MS = 31_000
const LOOKUP_MS = 5000
const PATIENCE_MS = 1000
const POOL_AGE_MS = 300_000

async function world() {
  const dns = await DnsServer.start()
  onTestFinished(() => dns.close())
  dns.answer(NAME, { a: [OPEN] })
  dns.answer("inside.corp.example", { a: ["127.0.0.1"] })
  const site = await siteBesideCanary()
  const egress = { allow: [`${OPEN}/32`], dns: [dns.address], ports: "any" } as const
  return { dns, site, harness: await Harness.start({ egress }) }
}

const ANSWERS: { readonly [what: string]: [answer: Answer, cause: string] } = {
  "a closed address": [{ a: ["127.0.0.1"] }, "target_forbidden"],
  "an open and a closed address": [{ a: [OPEN, "127.0.0.1"] }, "target_forbidden"],
  "a closed and an open address": [{ a: ["127.0.0.1", OPEN] }, "target_forbidden"],
  "an open address, and a closed one in IPv6": [{ a: [OPEN], aaaa: ["::1"] }, "target_forbidden"],
  "an open address, and a closed one hidden in IPv6": [
    { a: [OPEN], aaaa: ["::ffff:7f00:1"] },
    "target_forbidden",
  ],
  "NAT64 of a closed address": [{ aaaa: ["64:ff9b::7f00:1"] }, "target_forbidden"],
  "a metadata address": [{ a: ["169.254.169.254"] }, "target_forbidden"],
  "the address of everywhere": [{ a: ["0.0.0.0"] }, "target_forbidden"],
  "a CNAME to a name inside": [{ cname: "inside.corp.example" }, "target_forbidden"],
  "no such name": ["nxdomain", "dns_error"],
  "a server's failure": ["servfail", "dns_error"],
  "a refusal": ["refused", "dns_error"],
  "a name without an address": ["empty", "dns_error"],
}

describe("a name that comes to lead elsewhere is refused at its next connection", () => {
  test.each(Object.keys(ANSWERS))("%s", async (what) => {
    const [answer, cause] = ANSWERS[what]!
    const { dns, site, harness } = await world()
    await harness.endpoint({ url: site.url("/", NAME) })
    await harness.send()
    await harness.published("delivery.delivered", 1)
    dns.answer(NAME, answer)
    harness.clock.advance(CACHE_MS)
    await harness.send()
    expect((await harness.published("delivery.attempt", 2))[1]).toMatchObject({
      success: false,
      error: cause,
    })
    expect(site.visits).toHaveLength(1)
  })
})

describe("when an endpoint is created or changed", () => {
  const named = (dns: DnsServer, cause: string) =>
    Object.entries(ANSWERS)
      .filter(([, [, expected]]) => expected === cause)
      .map(([, [answer]], index) => {
        dns.answer(`${cause.replace("_", "-")}-${index}.example.net`, answer)
        return `${cause.replace("_", "-")}-${index}.example.net`
      })

  test("a name that leads inside is refused with the sentence that its address would get", async () => {
    const { dns, site, harness } = await world()
    const id = await harness.endpoint({ url: site.url("/", NAME) })
    const before = await harness.sql("SELECT url, version FROM endpoints")
    const { endpoints } = harness.posthorn
    for (const host of ["127.0.0.1", ...named(dns, "target_forbidden")]) {
      const url = site.url("/", host)
      for (const call of [endpoints.create("acme", { url }), endpoints.update("acme", id, { url })]) {
        const refused = await call.catch((error) => error)
        expect(refused, host).toMatchObject({ code: "invalid_input", field: "url" })
        expect(refused.message).toBe(
          "url must not lead to an address that is not public, unless egress.allow or POSTHORN_EGRESS_ALLOW opens it",
        )
      }
    }
    expect(await harness.sql("SELECT url, version FROM endpoints")).toEqual(before)
  })

  test("a name that does not resolve yet is taken, and judged when it is used", async () => {
    const { dns, site, harness } = await world()
    const names = named(dns, "dns_error")
    for (const name of names) await harness.endpoint({ url: site.url("/", name) })
    for (const name of names) dns.answer(name, { a: ["127.0.0.1"] })
    harness.clock.advance(CACHE_MS)
    await harness.send()
    const attempts = await harness.published("delivery.attempt", names.length)
    for (const { error } of attempts) expect(error).toBe("target_forbidden")
  })

  test("no delivery waits long for a name whose lookup hangs", async () => {
    const { dns, site, harness } = await world()
    dns.answer("tarpit.example.net", "tarpit")
    const created = harness.endpoint({ url: site.url("/", "tarpit.example.net") })
    await dns.asked("tarpit.example.net", 2)
    harness.clock.advance(PATIENCE_MS)
    expect(await created).toMatch(/^ep_/)
  })
})

describe("rebinding", () => {
  test("an answer is asked for once for a check and a connection, and not again while it is kept", async () => {
    const { dns, site, harness } = await world()
    dns.answer(NAME, { a: [OPEN], ttlSeconds: 20 }, { a: ["127.0.0.1"], ttlSeconds: 0 })
    await harness.endpoint({ url: site.url("/", NAME) })
    await harness.send()
    await harness.published("delivery.delivered", 1)
    expect(
      dns
        .about(NAME)
        .map(({ type }) => type)
        .sort(),
    ).toEqual(["A", "AAAA"])
    expect(site.visits).toMatchObject([{ localAddress: OPEN, headers: { host: `${NAME}:${site.port}` } }])
  })

  test("a connection that is kept stays where it was vetted, and is given up at the pool's age", async () => {
    const { dns, site, harness } = await world()
    await harness.endpoint({ url: site.url("/", NAME) })
    // Less than an idle connection is kept: the receiver closes it after five seconds, and says so.
    const stepMs = 3000
    for (let at = 0; at < POOL_AGE_MS; at += stepMs) {
      await harness.send()
      await harness.published("delivery.delivered", at / stepMs + 1)
      dns.answer(NAME, { a: ["127.0.0.1"], ttlSeconds: 0 })
      await harness.quiet()
      harness.clock.advance(stepMs)
    }
    const before = site.visits.length
    expect(before).toBe(POOL_AGE_MS / stepMs)
    expect(site.connections).toBe(1)
    await harness.send()
    const attempts = await harness.published("delivery.attempt", before + 1)
    expect(attempts.at(-1)).toMatchObject({ error: "target_forbidden" })
    expect(site.visits).toHaveLength(before)
  })

  test("a connection that lay idle is not used again: the name is asked for anew", async () => {
    const { dns, site, harness } = await world()
    await harness.endpoint({ url: site.url("/", NAME) })
    await harness.send()
    await harness.published("delivery.delivered", 1)
    await harness.quiet()
    dns.answer(NAME, { a: ["127.0.0.1"] })
    harness.clock.advance(CACHE_MS)
    await harness.send()
    const attempts = await harness.published("delivery.attempt", 2)
    expect(attempts[1]).toMatchObject({ error: "target_forbidden" })
    expect(site.connections).toBe(1)
  })

  test("a change of the endpoint ends its connections, whoever made it", async () => {
    const { site, harness } = await world()
    const id = await harness.endpoint({ url: site.url("/", NAME) })
    await harness.send()
    await harness.published("delivery.delivered", 1)
    await harness.posthorn.endpoints.update("acme", id, { description: "changed" })
    await harness.send()
    await harness.published("delivery.delivered", 2)
    expect(site.connections).toBe(2)
    await plant(harness, id, site.url("/other", NAME))
    await harness.send()
    await harness.published("delivery.delivered", 3)
    expect(site.connections).toBe(3)
  })
})

describe("names that hang", () => {
  async function withTarpits(count: number) {
    const made = await world()
    const { dns, site, harness } = made
    const names = Array.from({ length: count }, (_, index) => `n${index}.tarpit.example`)
    for (const name of names) {
      dns.answer(name, { a: [OPEN] })
      await harness.endpoint({ url: site.url("/hung", name), channels: ["slow"] })
    }
    harness.clock.advance(CACHE_MS)
    for (const name of names) dns.answer(name, "tarpit")
    return made
  }

  test.each([2, 20])("%i of them do not delay a healthy name", async (count) => {
    const { dns, site, harness } = await withTarpits(count)
    await harness.endpoint({ url: site.url("/healthy", NAME), channels: ["quick"] })
    harness.clock.advance(CACHE_MS)
    const before = dns.queries.length
    await harness.send({}, { channels: ["slow"] })
    await dns.asked(".tarpit.example", 4 * count)
    await harness.send({}, { channels: ["quick"] })
    await harness.published("delivery.delivered", 1)
    expect(site.visits).toMatchObject([{ path: "/healthy" }])
    expect(dns.queries.slice(before).some(({ name }) => name === NAME)).toBe(true)
    expect(harness.events.filter(({ type }) => type === "delivery.attempt")).toHaveLength(1)

    harness.clock.advance(LOOKUP_MS)
    const attempts = await harness.published("delivery.attempt", 1 + count)
    expect(attempts.filter(({ error }) => error === "timeout")).toHaveLength(count)
  })

  test("beside failing ones leave a healthy endpoint as it was", async () => {
    const { dns, site, harness } = await withTarpits(4)
    const failing = {
      "s.example.net": "servfail",
      "n.example.net": "nxdomain",
      "e.example.net": "empty",
    } as const
    for (const [name, answer] of Object.entries(failing)) {
      dns.answer(name, { a: [OPEN], ttlSeconds: 1 }, answer)
      await harness.endpoint({ url: site.url("/failing", name) })
    }
    await harness.endpoint({ url: site.url("/healthy", NAME) })
    harness.clock.advance(CACHE_MS)
    for (let n = 1; n <= 5; n++) await harness.send({ n }, { channels: ["slow"] })
    await harness.published("delivery.delivered", 5)
    expect(site.visits.map(({ path }) => path)).toEqual(new Array(5).fill("/healthy"))
    const errors = (await harness.published("delivery.attempt", 5 + 3)).map(({ error }) => error)
    expect(new Set(errors)).toEqual(new Set([null, "dns_error"]))
  })
})
