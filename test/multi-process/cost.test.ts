/** The cost of a worker and of a message for the database, in statements that leave the processes. */
import pg from "pg"
import { describe, expect, onTestFinished, test, vi } from "vitest"
import { ON_SHARED_SERVERS, Site } from "./site.ts"

/** A process that has just started looks through everything, and tells events to whoever may listen. */
const START_MS = 4500
const IDLE_MS = 10_000
const DELIVERIES = 5000
const ENDPOINTS = 50
const SENDERS = 500

/** Nothing waits, and no lane is in anybody's hands. */
const IS_DONE = `
  SELECT NOT EXISTS (SELECT FROM webhook_deliveries_live) AND NOT EXISTS (SELECT FROM lanes WHERE owner <> 0) AS done`

/** Time itself is the subject: what a worker does by itself, and that it no longer does what it does at first. */
const pass = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

describe.each(ON_SHARED_SERVERS)("on %s", (_, place) => {
  test("idle two statements a second, a message alone six, at full load 0.2 each", async () => {
    const site = await Site.open(await place())
    const uids = Array.from({ length: ENDPOINTS }, (_, i) => `endpoint-${i}`)
    for (const uid of uids) await site.endpoint(uid)
    const worker = await site.worker()
    const observer = await site.client()
    const spy = vi.spyOn(pg.Client.prototype, "query")
    onTestFinished(() => spy.mockRestore())
    /** The worker's and the sender's. */
    const statements = async () =>
      (await worker.statements()) + spy.mock.contexts.filter((client) => client !== observer).length
    const done = () =>
      expect
        .poll(async () => (await observer.query(IS_DONE)).rows, { interval: 5, timeout: 20_000 })
        .toEqual([{ done: true }])

    await pass(START_MS)
    const atFirst = await worker.statements()
    await pass(IDLE_MS)
    const idle = ((await worker.statements()) - atFirst) / (IDLE_MS / 1000)

    const costs: number[] = []
    for (let n = 0; n < 21; n++) {
      const before = await statements()
      await site.send(uids[0]!)
      await done()
      costs.push((await statements()) - before)
    }
    // The one in the middle: a poll or a renewal that falls in between is not the message's.
    const alone = costs.sort((a, b) => a - b)[10]

    const before = await statements()
    let next = 0
    const sendOn = async () => {
      while (next < DELIVERIES) await site.send(uids[next++ % ENDPOINTS]!)
    }
    await Promise.all(Array.from({ length: SENDERS }, sendOn))
    await done()
    const busy = ((await statements()) - before) / DELIVERIES

    // Not nothing: what is counted is what is sent.
    expect(idle).toBeGreaterThan(0.5)
    expect(idle).toBeLessThanOrEqual(2)
    expect(alone).toBeGreaterThan(3)
    expect(alone).toBeLessThanOrEqual(6)
    expect(busy).toBeGreaterThan(0.001)
    expect(busy).toBeLessThanOrEqual(0.2)
  }, 60_000)
})
