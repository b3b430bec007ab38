/** Fault 21: names that hang, fail or do not exist. Each is its own endpoint's problem; healthy endpoints are not delayed. */
import { expect, onTestFinished, test } from "vitest"
import { DnsServer } from "../support/dns-server.ts"
import { Harness, LOOPBACK } from "../support/harness.ts"

const TARPITS = 40

test("tarpits, SERVFAIL and NXDOMAIN leave healthy endpoints alone, and each has its cause", async () => {
  const dns = await DnsServer.start()
  onTestFinished(() => dns.close())
  const harness = await Harness.start({
    egress: { ...LOOPBACK, dns: [dns.address] },
    retry: { delays: [3600], maxAttempts: 5 },
  })
  // Every name is well when its endpoint is made, and goes bad afterwards; a TTL of 0 keeps nothing.
  const names = (kind: string, count: number) =>
    Array.from({ length: count }, (_, i) => `${kind}-${i}.example.com`)
  const bad = {
    tarpit: names("tarpit", TARPITS),
    servfail: names("servfail", 3),
    nxdomain: names("nxdomain", 3),
  }
  const healthy = names("healthy", 20)
  const endpoint = (name: string, eventType: string) => {
    dns.answer(name, { a: ["127.0.0.1"], ttlSeconds: 0 })
    const url = harness.receiver.url(`/${name}`).replace("127.0.0.1", name)
    return harness.endpoint({ url, eventTypes: [eventType] })
  }
  for (const name of Object.values(bad).flat()) await endpoint(name, "bad")
  for (const name of healthy) await endpoint(name, "healthy")
  for (const kind of ["tarpit", "servfail", "nxdomain"] as const)
    for (const name of bad[kind]) dns.answer(name, kind)
  // Lookups from when the endpoints were made are forgotten.
  harness.clock.advance(3_600_000)

  const asked = dns.asked(".example.com", dns.queries.length + 2 * TARPITS)
  await harness.posthorn.send("acme", { eventType: "bad", payload: {} })
  await asked
  await harness.published("delivery.attempt", bad.servfail.length + bad.nxdomain.length)

  // The clock stands still, so no tarpit can have ended: the healthy ones arrive while all of them hang.
  await harness.posthorn.send("acme", { eventType: "healthy", payload: {} })
  await harness.published("delivery.delivered", healthy.length)
  for (const name of healthy) expect(harness.receiver.to(`/${name}`)).toHaveLength(1)
  const failed = () => harness.sql("SELECT error_detail FROM webhook_deliveries WHERE status = 'failed'")
  expect(await failed()).toEqual(Array(6).fill({ error_detail: "dns_error" }))

  harness.clock.advance(30_000)
  await harness.published("delivery.attempt", healthy.length + 6 + TARPITS)
  expect((await failed()).filter(({ error_detail }) => error_detail === "timeout")).toHaveLength(TARPITS)
  expect(harness.receiver.requests).toHaveLength(healthy.length)
})
