/** What a worker and a message cost the database, counted in statements as they leave this process. */
import pg from "pg"
import { describe, expect, onTestFinished, test, vi } from "vitest"
import { ON_SHARED_SERVERS, open, type Place, Site } from "./site.ts"

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

async function openWithWorker(place: Place) {
  const site = await Site.open(place)
  const worker = await open(place)
  const settled = (count: number) =>
    new Promise<void>((resolve) => {
      let left = count
      worker.on("delivery.delivered", () => --left === 0 && resolve())
    })
  return { site, worker, settled }
}

describe.each(ON_SHARED_SERVERS)("on %s", (_, place) => {
  test("an idle worker makes at most two statements a second", async () => {
    const { worker } = await openWithWorker(await place())
    await worker.engine!.whenIdle()
    const statements = watchStatements()
    // Time itself is the subject.
    await new Promise((resolve) => setTimeout(resolve, IDLE_MS))
    expect(statements()).toBeGreaterThan(0)
    expect(statements() / (IDLE_MS / 1000)).toBeLessThanOrEqual(2)
  })

  test("one message alone costs at most six statements from send to settled", async () => {
    const { site, worker, settled } = await openWithWorker(await place())
    await site.endpoint("one")
    const first = settled(1)
    await site.send("one")
    await first
    await worker.engine!.whenIdle()
    const statements = watchStatements()
    const costs: number[] = []
    for (let n = 0; n < 20; n++) {
      const before = statements()
      const done = settled(1)
      await site.send("one")
      await done
      await worker.engine!.whenIdle()
      costs.push(statements() - before)
    }
    // The least: a poll or a renewal that falls in between is not the message's.
    expect(Math.min(...costs)).toBeGreaterThan(2)
    expect(costs.sort((a, b) => a - b)[10]).toBeLessThanOrEqual(6)
  })

  test("at full load a message costs at most 0.2 statements", async () => {
    const { site, settled } = await openWithWorker(await place())
    const uids = Array.from({ length: ENDPOINTS }, (_, i) => `endpoint-${i}`)
    for (const uid of uids) await site.endpoint(uid)
    const warm = settled(ENDPOINTS)
    await Promise.all(uids.map((uid) => site.send(uid)))
    await warm
    const statements = watchStatements()
    const all = settled(DELIVERIES)
    let next = 0
    const sendOn = async () => {
      while (next < DELIVERIES) await site.send(uids[next++ % ENDPOINTS]!)
    }
    await Promise.all(Array.from({ length: SENDERS }, sendOn))
    await all
    expect(statements() / DELIVERIES).toBeLessThanOrEqual(0.2)
  })
})
