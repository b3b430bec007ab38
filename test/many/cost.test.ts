/** What a worker and a message cost the database, counted in statements as they leave this process. */
import pg from "pg"
import { describe, expect, onTestFinished, test, vi } from "vitest"
import { ON_SHARED_SERVERS, open, Site } from "./site.ts"

/** A process that has just started looks through everything, and tells events to whoever may listen. */
const START_MS = 4500
const IDLE_MS = 10_000
const DELIVERIES = 5000
const ENDPOINTS = 50
const SENDERS = 500

/** Every statement of this process goes through this method, those of pools and of transactions too. */
function watchStatements() {
  const spy = vi.spyOn(pg.Client.prototype, "query")
  onTestFinished(() => spy.mockRestore())
  return () => spy.mock.calls.length
}

/** Time itself is the subject: what a worker does by itself, and that it no longer does what it does at first. */
const pass = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

describe.each(ON_SHARED_SERVERS)("on %s", (_, place) => {
  test("idle two statements a second, a message alone six, at full load 0.2 each", async () => {
    const there = await place()
    const site = await Site.open(there)
    const worker = await open(there)
    const uids = Array.from({ length: ENDPOINTS }, (_, i) => `endpoint-${i}`)
    for (const uid of uids) await site.endpoint(uid)
    const settled = (count: number) =>
      new Promise<void>((resolve) => {
        let left = count
        const stop = worker.on("delivery.delivered", () => {
          if (--left > 0) return
          stop()
          resolve()
        })
      })

    await pass(START_MS)
    const statements = watchStatements()
    await pass(IDLE_MS)
    const idle = statements() / (IDLE_MS / 1000)

    const costs: number[] = []
    for (let n = 0; n < 21; n++) {
      const before = statements()
      const done = settled(1)
      await site.send(uids[0]!)
      await done
      await worker.engine!.whenIdle()
      costs.push(statements() - before)
    }
    // The one in the middle: a poll or a renewal that falls in between is not the message's.
    const alone = costs.sort((a, b) => a - b)[10]

    const warm = settled(ENDPOINTS)
    await Promise.all(uids.map((uid) => site.send(uid)))
    await warm
    const before = statements()
    const all = settled(DELIVERIES)
    let next = 0
    const sendOn = async () => {
      while (next < DELIVERIES) await site.send(uids[next++ % ENDPOINTS]!)
    }
    await Promise.all(Array.from({ length: SENDERS }, sendOn))
    await all
    const busy = (statements() - before) / DELIVERIES

    // Not nothing: what is counted is what is sent.
    expect(idle).toBeGreaterThan(0.5)
    expect(idle).toBeLessThanOrEqual(2)
    expect(alone).toBeGreaterThan(3)
    expect(alone).toBeLessThanOrEqual(6)
    expect(busy).toBeGreaterThan(0.001)
    expect(busy).toBeLessThanOrEqual(0.2)
  }, 60_000)
})
