/**
 * Fault 8: PostgreSQL is restarted again and again, each time as in a crash. No worker ends, nothing is lost, and soon after
 * everything is as fast as before. The table's five to ten seconds between restarts are scaled to about one.
 */
import { describe, expect, onTestFinished, test } from "vitest"
import { PosthornError } from "../../src/index.ts"
import { ON_OWN_SERVERS, Site } from "../multi-process/site.ts"

const ENDPOINTS = 10
const ORDERED = 2
const RESTARTS = 4
const RECOVERED_SECONDS = 5
const AS_FAST_AS_BEFORE = 0.7

describe.each(ON_OWN_SERVERS)("on %s", (_, servers) => {
  test("workers stay, nothing is lost or out of order, and it is as fast as before within five seconds", async () => {
    const { postgres, place } = await servers()
    const site = await Site.open(place)
    const uids = Array.from({ length: ENDPOINTS }, (_, i) => `endpoint-${i}`)
    for (const [i, uid] of uids.entries()) await site.endpoint(uid, { ordered: i < ORDERED })
    const commitsBefore = await commitsPerSecond(site)
    const workers = await Promise.all([site.worker(), site.worker()])

    const accepted = new Map(uids.map((uid) => [uid, [] as string[]]))
    let stopped = false
    onTestFinished(() => {
      stopped = true
    })
    /** One line of messages, each sent again under the same key until it is accepted. */
    const sendOn = async (uid: string) => {
      for (let n = 0; !stopped; n++) {
        const message = { eventType: uid, payload: n, idempotencyKey: `${uid} ${n}` }
        for (;;) {
          try {
            accepted.get(uid)!.push((await site.sender.send("acme", message)).id)
            break
          } catch (error) {
            if (!(error instanceof PosthornError && error.code === "store_unavailable") || stopped)
              throw error
            await pass(20)
          }
        }
        await pass(2)
      }
    }
    const sending = Promise.all(uids.map(sendOn))
    const rate = async () => {
      const before = site.receiver.requests.length
      await pass(1000)
      return site.receiver.requests.length - before
    }
    await site.receiver.arrived("/endpoint-9", 20)
    // The first second is the fastest of all, and one alone is chance: undisturbed, others are between half of it and all of it.
    const healthy = [await rate(), await rate(), await rate()].sort((a, b) => a - b)[1]!
    for (let restart = 0; restart < RESTARTS; restart++) {
      await postgres.restart("immediate")
      await pass(700 + Math.random() * 800)
    }
    let recovered = 0
    for (let second = 0; second < RECOVERED_SECONDS && recovered < healthy * AS_FAST_AS_BEFORE; second++)
      recovered = Math.max(recovered, await rate())
    stopped = true
    await sending

    const total = [...accepted.values()].flat().length
    await expect
      .poll(() => site.sender.stats(), { timeout: 15_000 })
      .toEqual({ pending: 0, failed: 0, delivered: total, dead: 0, calledOff: 0 })
    for (const { hasEnded, program } of workers) expect(hasEnded, program.stderr).toBe(false)
    await Promise.all(workers.map((worker) => worker.kill()))
    // Machines that are shared are half as fast from one minute to the next: what the server by itself commits tells how fast this one is.
    const machine = Math.min(1, Math.max(0.5, (await commitsPerSecond(site)) / commitsBefore))
    expect(recovered).toBeGreaterThanOrEqual(healthy * AS_FAST_AS_BEFORE * machine)
    for (const [i, uid] of uids.entries()) {
      const received = site.receiver.to(`/${uid}`).map(({ id }) => id)
      // A repeat, if there is one, follows what it repeats.
      const once = received.filter((id, n) => received.indexOf(id) === n)
      if (i < ORDERED) expect(once).toEqual(accepted.get(uid))
      else expect(once.sort()).toEqual([...accepted.get(uid)!].sort())
      if (i < ORDERED)
        expect(received.filter((id, n) => n > 0 && id !== received[n - 1])).toEqual(once.slice(1))
    }
  }, 60_000)
})

/** One after the other, while nothing else is done; of three moments the second fastest. */
async function commitsPerSecond(site: Site): Promise<number> {
  const client = await site.client()
  await client.query("CREATE TABLE IF NOT EXISTS commits (n integer)")
  const rates: number[] = []
  while (rates.length < 3) {
    const startedAt = performance.now()
    let commits = 0
    for (; performance.now() - startedAt < 200; commits++)
      await client.query("INSERT INTO commits VALUES (1)")
    rates.push((commits / (performance.now() - startedAt)) * 1000)
  }
  return rates.sort((a, b) => a - b)[1]!
}

/** The pace of the senders, and the time between two restarts: time itself is what passes here. */
function pass(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
