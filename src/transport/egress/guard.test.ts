/** The guard's own decisions. Its parts have tests of their own, and test/egress tests the whole. */
import { expect, onTestFinished, test } from "vitest"
import { TestClock } from "../../../test/support/clock.ts"
import { DnsServer } from "../../../test/support/dns-server.ts"
import { Guard } from "./guard.ts"
import { type EgressInput, parseEgress } from "./settings.ts"

async function setUp(input: EgressInput = {}, random?: () => number) {
  const dns = await DnsServer.start()
  const clock = new TestClock()
  const guard = new Guard(parseEgress({ dns: [dns.address], ...input }), clock, random)
  onTestFinished(async () => {
    guard.close()
    await dns.close()
  })
  return { dns, clock, guard }
}

test.each([
  [0, ["8.8.8.8", "2606:4700::1111", "8.8.4.4", "1.1.1.1"]],
  [0.5, ["8.8.4.4", "2606:4700::1111", "1.1.1.1", "8.8.8.8"]],
  [0.999, ["1.1.1.1", "2606:4700::1111", "8.8.8.8", "8.8.4.4"]],
])("addresses alternate between IPv4 and IPv6, IPv4 first, from a random start (%d)", async (chance, order) => {
  const { dns, guard } = await setUp({}, () => chance)
  dns.answer("both.example", { a: ["8.8.8.8", "8.8.4.4", "1.1.1.1"], aaaa: ["2606:4700::1111"] })
  expect(await guard.vet(new URL("https://both.example/"), "ep_1")).toEqual(order)
})

test.each([
  [
    ["127.0.0.0/8", "::1/128"],
    ["127.0.0.1", "::1"],
  ],
  [["::1/128"], ["::1"]],
])("localhost has the loopback addresses that are open: %j", async (allow, addresses) => {
  const { guard } = await setUp({ allow, ports: "any" })
  expect(await guard.vet(new URL("http://localhost/"), "ep_1")).toEqual(addresses)
})

test("a URL that is too long for the cache is checked like a short one", async () => {
  const { guard } = await setUp()
  const path = `/${"x".repeat(2000)}`
  for (let again = 0; again < 2; again++) {
    expect(guard.target(`https://hooks.example${path}`)).toEqual({
      origin: "https://hooks.example",
      host: "hooks.example",
      path,
    })
    expect(guard.target(`https://127.0.0.1${path}`)).toBeNull()
  }
})

test("checks of URLs share 64 lookups, and do not delay lookups for deliveries", async () => {
  const { dns, clock, guard } = await setUp()
  dns.answer("healthy.example", { a: ["8.8.8.8"] })
  const names = Array.from({ length: 64 }, (_, i) => `t${i}.tarpit.example`)
  for (const name of [...names, "last.example"]) dns.answer(name, "tarpit")
  const judged = names.map((name) => guard.urlProblem(`https://${name}/`))
  for (const name of names) await dns.asked(name, 2)
  const last = guard.urlProblem("https://last.example/")
  expect(await guard.vet(new URL("https://healthy.example/"), "ep_1")).toEqual(["8.8.8.8"])
  expect(dns.about("last.example")).toEqual([])
  // The creation of an endpoint waits one second; the name is checked again before every connection.
  clock.advance(1000)
  expect(await Promise.all([...judged, last])).toEqual(Array(65).fill(null))
})
