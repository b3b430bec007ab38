/** How long a healthy name takes beside tarpits, against how long it takes alone. */
import { expect, onTestFinished, test } from "vitest"
import { TestClock } from "../../../test/support/clock.ts"
import { DnsServer } from "../../../test/support/dns-server.ts"
import { NameResolver } from "./resolver.ts"

const ROUNDS = 50
/** The delay that one turn of a busy event loop may add. */
const SLACK_MS = 5

test("200 tarpits do not delay a healthy name", async () => {
  const server = await DnsServer.start()
  const clock = new TestClock()
  const resolver = new NameResolver({ servers: [server.address], timeoutMs: 20_000, clock })
  onTestFinished(async () => {
    resolver.close()
    await server.close()
  })
  const medianMs = async (prefix: string) => {
    const taken: number[] = []
    for (let i = 0; i < ROUNDS; i++) {
      const name = `${prefix}${i}.example`
      server.answer(name, { a: ["93.184.216.34"], aaaa: ["2606:2800:220:1::1"] })
      const startedAt = performance.now()
      await resolver.resolve(name, "ep_healthy")
      taken.push(performance.now() - startedAt)
    }
    return taken.sort((a, b) => a - b)[ROUNDS >> 1]!
  }
  await medianMs("warm")
  const alone = await medianMs("alone")
  for (let i = 0; i < 200; i++) {
    server.answer(`t${i}.tarpit.example`, "tarpit")
    void resolver.resolve(`t${i}.tarpit.example`, `ep_${i >> 1}`)
    await server.asked(`t${i}.tarpit.example`, 2)
  }
  expect(await medianMs("beside")).toBeLessThan(2 * alone + SLACK_MS)
})
