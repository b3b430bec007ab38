/** Fault 13: Redis is emptied, or comes back with nothing, or loses a part. It is noticed and rebuilt, and nothing idles. */
import { Redis } from "ioredis"
import { expect, onTestFinished, test } from "vitest"
import { Site } from "../multi-process/site.ts"
import { migratedDatabase } from "../support/migrated-database.ts"
import { ownRedis } from "../support/servers/redis.ts"
import type { RedisServer } from "../support/servers/redis-server.ts"

const LANES = 200
/** Time enough to empty it, and to see it filled again. */
const DUE_IN_MS = 3500
const SOON_MS = 2000
const NOTICED_MS = 2000
/** PostgreSQL adds lanes again that are overdue by five seconds, and looks every second or so. */
const AGAIN_MS = 5000 + 2000

/** A worker, and many lanes that wait in Redis for a time that is still to come. */
async function openWaiting(dueInMs = DUE_IN_MS) {
  const server = await ownRedis()
  const site = await Site.open({ store: await migratedDatabase(), schedule: server.url })
  const uids = Array.from({ length: LANES }, (_, i) => `lane-${i}`)
  await Promise.all(uids.map((uid) => site.endpoint(uid)))
  const worker = await site.worker()
  const dueAt = performance.now() + dueInMs
  const deliverAt = Date.now() + dueInMs
  const messages = uids.map((eventType) => ({ eventType, payload: {}, deliverAt }))
  await site.sender.sendBatch("acme", messages)
  // All of them, and the mark of a set that is whole.
  await expect.poll(() => countWaiting(server), { timeout: dueInMs }).toBe(LANES + 1)
  const arrivals = async () => {
    for (const uid of uids) await site.receiver.arrived(`/${uid}`, 1)
    expect(site.receiver.requests).toHaveLength(LANES)
    return site.receiver.requests.map(({ at }) => at - dueAt)
  }
  return { server, worker, arrivals }
}

async function countWaiting(server: RedisServer): Promise<number> {
  const redis = dial(server)
  const [key] = await redis.keys("*:lanes")
  return key === undefined ? 0 : redis.zcard(key)
}

const dialled = new Map<RedisServer, Redis>()
function dial(server: RedisServer): Redis {
  const known = dialled.get(server)
  if (known !== undefined) return known
  const redis = new Redis(server.url)
  redis.on("error", () => {})
  dialled.set(server, redis)
  onTestFinished(() => {
    dialled.delete(server)
    redis.disconnect()
  })
  return redis
}

test.each([
  ["is emptied", async (server: RedisServer) => void (await dial(server).flushall())],
  [
    "is killed and comes back with no data",
    async (server: RedisServer) => {
      await server.kill()
      await server.start()
    },
  ],
])("a Redis that %s is filled again within two seconds, and what waited goes out in time", async (_, empty) => {
  const { server, arrivals } = await openWaiting()
  await empty(server)
  await expect.poll(() => countWaiting(server), { timeout: NOTICED_MS, interval: 20 }).toBe(LANES + 1)
  const late = await arrivals()
  expect(Math.min(...late)).toBeGreaterThan(-50)
  expect(Math.max(...late)).toBeLessThan(NOTICED_MS)
})

test("a Redis that is emptied when everything is due at once holds nothing up", async () => {
  const { server, arrivals } = await openWaiting(SOON_MS)
  const emptying = setInterval(() => void dial(server).flushall(), 100)
  onTestFinished(() => clearInterval(emptying))
  const late = await arrivals()
  expect(Math.max(...late)).toBeLessThan(NOTICED_MS)
})

test("a Redis that has lost some of it, which no mark shows, delays these by five seconds and no more", async () => {
  const { server, arrivals } = await openWaiting(SOON_MS)
  const redis = dial(server)
  const [key] = await redis.keys("*:lanes")
  const lost = await redis.zrange(key!, "0", "99")
  expect(await redis.zrem(key!, ...lost)).toBe(100)
  const late = (await arrivals()).sort((a, b) => a - b)
  expect(late[LANES - 101]).toBeLessThan(NOTICED_MS)
  expect(late.at(-1)).toBeLessThan(AGAIN_MS)
})
