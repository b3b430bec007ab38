/** Fault 12: Redis is killed again and again, and comes back with nothing. Nothing is lost, and nobody waits for it. */
import { expect, onTestFinished, test } from "vitest"
import { Site } from "../multi-process/site.ts"
import { rounds } from "../support/length.ts"
import { migratedDatabase } from "../support/migrated-database.ts"
import { ownRedis } from "../support/servers/redis.ts"

const ENDPOINTS = 20
const ORDERED = 4
const KILLS = rounds(4, 40)
/** A delivery that depended on Redis would wait for it, or for the five seconds after which PostgreSQL takes a lane without it. */
const PROMPT_MS = 3000

test(
  "sends are accepted and delivered in order while Redis dies and comes back empty, in a loop",
  async () => {
    const redis = await ownRedis()
    const site = await Site.open({ store: await migratedDatabase(), schedule: redis.url })
    const uids = Array.from({ length: ENDPOINTS }, (_, i) => `endpoint-${i}`)
    for (const [i, uid] of uids.entries()) await site.endpoint(uid, { ordered: i < ORDERED })
    const workers = await Promise.all([site.worker(), site.worker()])
    const accepted = new Map(uids.map((uid) => [uid, [] as { id: string; at: number }[]]))
    let over = false
    onTestFinished(() => {
      over = true
    })
    const sendOn = async () => {
      for (let n = 0; !over; n++) {
        const uid = uids[n % ENDPOINTS]!
        // Redis is no part of accepting: none is refused.
        accepted.get(uid)!.push({ id: await site.send(uid), at: performance.now() })
        await pass(5)
      }
    }
    const sending = sendOn()
    for (let kill = 0; kill < KILLS; kill++) {
      await pass(200 + Math.random() * 500)
      await redis.kill()
      await pass(100 + Math.random() * 500)
      await redis.start()
    }
    const total = () => [...accepted.values()].flat().length
    await expect.poll(total, { timeout: 10_000 }).toBeGreaterThan(200)
    over = true
    await sending

    for (const [i, uid] of uids.entries()) {
      const sent = accepted.get(uid)!
      const received = await site.receiver.arrived(`/${uid}`, sent.length)
      const ids = received.map(({ id }) => id)
      if (i < ORDERED) expect(ids).toEqual(sent.map(({ id }) => id))
      else expect(ids.sort()).toEqual(sent.map(({ id }) => id).sort())
      const sentAt = new Map(sent.map(({ id, at }) => [id, at]))
      for (const { id, at } of received) expect(at - sentAt.get(id)!).toBeLessThan(PROMPT_MS)
    }
    await expect
      .poll(() => site.sender.stats())
      .toEqual({ pending: 0, failed: 0, delivered: total(), dead: 0, calledOff: 0 })
    for (const { hasEnded, program } of workers) expect(hasEnded, program.stderr).toBe(false)
  },
  10_000 * KILLS,
)

/** The moments of the kills are random, and time passes between them. */
function pass(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
