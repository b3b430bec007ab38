/**
 * Fault 24: one tenant sends very much at once. The others' p99 stays within 1.5 times, and memory is bounded. The table's million is
 * scaled to what is delivered here in some seconds; what matters is that it is far more than can be worked off while the others send.
 */
import { readFileSync } from "node:fs"
import { describe, expect, test } from "vitest"
import type { Endpoint } from "../../src/index.ts"
import { ON_SHARED_SERVERS, Site } from "../many/site.ts"

const FLOOD = 20_000
const BATCH = 1000
const OTHERS = 10
const ROUNDS = 30
const TURNS = 7
/** How long the flooded receiver takes: it is what limits the flood, not this machine. */
const ANSWER_MS = 200
const MEMORY_BYTES = 200 * 1024 * 1024

describe.each(ON_SHARED_SERVERS)("on %s", (_, place) => {
  test("the other tenants do not notice", async () => {
    const site = await Site.open(await place())
    const tenants = Array.from({ length: OTHERS }, (_, i) => `other-${i}`)
    for (const uid of [...tenants, "flooder"]) {
      await site.sender.applications.create({ uid, name: uid })
      await site.sender.endpoints.create(uid, { url: site.receiver.url(`/${uid}`) })
    }
    site.receiver.always("/flooder", (_request, response) => void setTimeout(() => response.end(), ANSWER_MS))
    const worker = await site.worker()

    let rounds = 0
    /** From before the send until the request arrives, over some rounds in which every other tenant sends one. */
    const p99OfOthers = async (): Promise<number> => {
      const latencies: number[] = []
      for (let round = 0; round < ROUNDS; round++) {
        rounds++
        await Promise.all(
          tenants.map(async (uid) => {
            const sentAt = performance.now()
            await site.sender.send(uid, { eventType: "a", payload: {} })
            latencies.push((await site.receiver.arrived(`/${uid}`, rounds)).at(-1)!.at - sentAt)
          }),
        )
      }
      return latencies.sort((a, b) => a - b)[Math.floor(latencies.length * 0.99)]!
    }

    await p99OfOthers()
    const before = residentBytes(worker.pid)
    const batch = new Array(BATCH).fill({ eventType: "a", payload: "x".repeat(1000) })
    for (let n = 0; n < FLOOD; n += BATCH) await site.sender.sendBatch("flooder", batch)
    const [{ id }] = (await site.sender.endpoints.list("flooder")).data as [Endpoint]
    await p99OfOthers()
    const ratios: number[] = []
    for (let turn = 0; turn < TURNS; turn++) {
      // By turns, so that both see the same machine; the ratio in the middle is the one that no disturbance made.
      const beside = await p99OfOthers()
      await site.sender.endpoints.pause("flooder", id)
      ratios.push(beside / (await p99OfOthers()))
      await site.sender.endpoints.resume("flooder", id)
    }
    // The flood was there all the while.
    const { pending } = await site.sender.stats("flooder")
    const grown = residentBytes(worker.pid) - before
    expect(pending).toBeGreaterThan(0)
    expect(ratios.sort((a, b) => a - b)[(TURNS - 1) / 2]).toBeLessThan(1.5)
    expect(grown).toBeLessThan(MEMORY_BYTES)
  }, 120_000)
})

function residentBytes(pid: number): number {
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))!
  return Number(kilobytes) * 1024
}
