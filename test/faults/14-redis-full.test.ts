/** Fault 14: a Redis that evicts is refused at the start; one that is full costs nothing but its own use. */
import { Redis } from "ioredis"
import { expect, onTestFinished, test } from "vitest"
import { open, Site } from "../multi-process/site.ts"
import { migratedDatabase } from "../support/migrated-database.ts"
import { ownRedis } from "../support/servers/redis.ts"

const PROMPT_MS = 3000

test.each([
  "allkeys-lru",
  "volatile-ttl",
])("maxmemory-policy %s is refused at the start, and says what to set", async (policy) => {
  const { url } = await ownRedis(["--maxmemory-policy", policy])
  await expect(open({ store: await migratedDatabase(), schedule: url })).rejects.toMatchObject({
    code: "store_incompatible",
    field: "schedule",
    message: `${url} throws keys away when its memory is full (maxmemory-policy ${policy}): set maxmemory-policy to noeviction`,
  })
})

test("while Redis is out of memory, sends are accepted and delivered, retries too; with memory again it is used again", async () => {
  const server = await ownRedis()
  const site = await Site.open({ store: await migratedDatabase(), schedule: server.url })
  const uids = Array.from({ length: 20 }, (_, i) => `lane-${i}`)
  for (const uid of uids) await site.endpoint(uid)
  const worker = await site.worker({ retry: { delays: [0.5], maxAttempts: 3 } })
  const redis = new Redis(server.url)
  onTestFinished(() => redis.disconnect())
  await expect.poll(() => redis.keys("*:lanes")).toHaveLength(1)
  const [key] = await redis.keys("*:lanes")

  await redis.config("SET", "maxmemory", "1")
  await expect(redis.set("a", "b")).rejects.toThrow("OOM")
  const sentAt = performance.now()
  for (const uid of uids) {
    site.receiver.queue(`/${uid}`, 500)
    await site.send(uid)
    await site.send(uid)
  }
  for (const uid of uids)
    for (const { at } of await site.receiver.arrived(`/${uid}`, 3))
      expect(at - sentAt).toBeLessThan(PROMPT_MS)
  await expect.poll(() => site.sender.stats()).toMatchObject({ pending: 0, failed: 0, delivered: 40 })
  expect(worker.hasEnded, worker.program.stderr).toBe(false)

  await redis.config("SET", "maxmemory", "0")
  await site.sender.send("acme", { eventType: uids[0]!, payload: {}, delaySeconds: 3600 })
  // The lane, and the mark of a set that is whole.
  await expect.poll(() => redis.zcard(key!), { timeout: 5000 }).toBe(2)
})
