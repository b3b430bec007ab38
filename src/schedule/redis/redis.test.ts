import { EventEmitter } from "node:events"
import { Redis } from "ioredis"
import { describe, expect, onTestFinished, test } from "vitest"
import type { FaultProxy } from "../../../test/support/fault-proxy.ts"
import { LaneWorkers } from "../../../test/support/lane-workers.ts"
import { LaneWorld, type OpenSchedule, proxied } from "../../../test/support/lanes.ts"
import { LogLines } from "../../../test/support/log-lines.ts"
import { ownRedis } from "../../../test/support/servers/redis.ts"
import { NO_INSTRUMENTS } from "../../observe/instruments.ts"
import type { Database } from "../../store/postgres/connection.ts"
import { lane, scheduleConformance } from "../conformance.ts"
import { sharedScheduleConformance } from "../postgres/conformance.ts"
import { RedisProposer } from "./proposer.ts"
import { keysFor } from "./rebuild.ts"
import { openRedisSchedule } from "./redis.ts"

const on =
  (url: string): OpenSchedule =>
  (options) =>
    openRedisSchedule({ ...options, url })
const shared: OpenSchedule = (options) => on(process.env.POSTHORN_TEST_REDIS_URL!)(options)

/** A database with a schedule on this Redis, and a client that looks into it. `seenAs`: the URL that the workers use. */
async function worldWithRedis(url: string, seenAs = url) {
  const redis = new Redis(url, { retryStrategy: () => 50, maxRetriesPerRequest: null })
  redis.on("error", () => {})
  onTestFinished(() => redis.disconnect())
  const world = await LaneWorld.create(on(seenAs))
  const [{ value: id }] = (await world.sql(
    "INSERT INTO meta VALUES ('database_id', gen_random_uuid()) RETURNING value",
  )) as [{ value: string }]
  const key = `{posthorn:${id}}:lanes`
  /** The lanes in the set, with their due times; null while it is incomplete. */
  const lanes = async (set = key): Promise<Record<string, number> | null> => {
    const scored = await redis.zrange(set, "-inf", "+inf", "BYSCORE", "WITHSCORES")
    const pairs = scored.flatMap((member, i) => (i % 2 === 0 ? [[member, scored[i + 1]] as const] : []))
    if (pairs.pop()?.[1] !== "inf") return null
    return Object.fromEntries(pairs.map(([member, score]) => [member, Number(score)]))
  }
  const isComplete = () => expect.poll(() => lanes(), { timeout: 5000 }).not.toBeNull()
  return { redis, world, key, lanes, isComplete }
}

async function worldWithOwnRedis(...args: string[]) {
  const server = await ownRedis(args)
  return { server, ...(await worldWithRedis(server.url)) }
}

scheduleConformance("redis", async () => {
  const { world, isComplete } = await worldWithRedis(process.env.POSTHORN_TEST_REDIS_URL!)
  const { schedule } = await world.worker()
  await isComplete()
  return {
    schedule,
    wake: (lanes) => world.wake(lanes, schedule),
    waiting: (lanes) => {
      world.waiting = [...lanes]
    },
    changeUrl: (id, url) => world.changeUrl(id, url, schedule),
  }
})

/** Until the set is complete, a rebuild may still read all lanes. */
async function isRebuilt(world: LaneWorld): Promise<void> {
  const redis = new Redis(process.env.POSTHORN_TEST_REDIS_URL!)
  onTestFinished(() => redis.disconnect())
  const [id] = await world.sql("SELECT value FROM meta WHERE key = 'database_id'")
  const marks = () => redis.zcount(`{posthorn:${id!.value}}:lanes`, "+inf", "+inf")
  await expect.poll(marks, { timeout: 5000 }).toBe(1)
}

sharedScheduleConformance("redis", shared, isRebuilt)

describe("the schedule in Redis", () => {
  test("has the free lanes in its set, scored by their due times", async () => {
    const { world, lanes, isComplete } = await worldWithOwnRedis()
    const { schedule } = await world.worker()
    await isComplete()
    await world.wake([lane("a", 5), lane("b", 70), lane("c", 90)])
    const [claim] = await schedule.claim(9, 10)
    await expect.poll(() => lanes()).toEqual({ "app b": 70, "app c": 90 })
    await schedule.release(claim!, 300, 10)
    await expect.poll(() => lanes()).toEqual({ "app a": 300, "app b": 70, "app c": 90 })
    expect(await schedule.claim(9, 100)).toHaveLength(2)
    await expect.poll(() => lanes()).toEqual({ "app a": 300 })
  })

  test("has a set for each transport, which is rebuilt from PostgreSQL when it was lost", async () => {
    const { world, redis, key, lanes, isComplete } = await worldWithOwnRedis()
    const { schedule } = await world.worker()
    await isComplete()
    const relay = key.replace(/lanes$/, "relay:lanes")
    await world.wake([lane("a", 5), lane("b", 50, "app", "relay"), lane("c", 70)])
    await schedule.claim(9, 10)
    await expect.poll(() => redis.zrange(relay, "0", "-1", "WITHSCORES")).toEqual(["app b", "50"])
    schedule.serve({ transports: ["http", "relay"], endpoints: [] })
    await expect.poll(() => lanes(relay), { timeout: 5000 }).toEqual({ "app b": 50 })
    await redis.del(relay)
    await expect.poll(() => lanes(relay), { timeout: 5000 }).toEqual({ "app b": 50 })
    expect(await schedule.claim(9, 60)).toHaveLength(1)
    await expect.poll(() => lanes(relay)).toEqual({})
    expect(await lanes()).toEqual({ "app c": 70 })
  })

  test("a lane that changes its transport moves to the other set", async () => {
    const { world, redis, key, lanes, isComplete } = await worldWithOwnRedis()
    const { schedule } = await world.worker()
    await isComplete()
    await world.wake([lane("a", 50)])
    await schedule.claim(9, 10)
    await expect.poll(() => lanes()).toEqual({ "app a": 50 })
    await world.changeUrl("a", "relay://queue")
    await schedule.claim(9, 60)
    await expect.poll(() => lanes()).toEqual({})
    const relay = key.replace(/lanes$/, "relay:lanes")
    expect(await redis.zrange(relay, "0", "-1", "WITHSCORES")).toEqual(["app a", "0"])
  })

  test("proposes lanes: PostgreSQL does not search for lanes that are only a little overdue", async () => {
    const { world, redis, key, lanes, isComplete } = await worldWithOwnRedis()
    const { schedule } = await world.worker()
    await isComplete()
    await world.wake([lane("a", 50)])
    await schedule.claim(9, 1)
    await expect.poll(() => lanes()).toEqual({ "app a": 50 })
    await redis.zrem(key, "app a")
    expect(await schedule.claim(9, 60)).toEqual([])
    // The first claim noticed that more is due than Redis knows of.
    expect(await schedule.claim(9, 60)).toHaveLength(1)
  })

  test("wrong entries of the set are refused by PostgreSQL and corrected", async () => {
    const { world, redis, key, lanes, isComplete } = await worldWithOwnRedis()
    const [{ schedule }, other] = [await world.worker(), await world.worker()]
    await isComplete()
    await world.wake([lane("claimed"), lane("later", 500), lane("idle")])
    for (const claim of await other.schedule.claim(9, 1))
      if (claim.endpointId === "idle") await other.schedule.release(claim, null, 1)
    await redis.zadd(key, 1, "app claimed", 1, "app later", 1, "app idle")
    expect(await schedule.claim(9, 2)).toEqual([])
    await expect.poll(() => lanes()).toEqual({ "app later": 500 })
  })

  test("a lane whose proposal was lost in a crash is proposed again", async () => {
    const { world, redis, key, isComplete } = await worldWithOwnRedis()
    const { schedule } = await world.worker()
    await isComplete()
    await world.wake([lane("a", 50)])
    await schedule.claim(9, 1)
    await redis.zadd(key, 5060, "app a")
    expect(await schedule.claim(9, 5060)).toHaveLength(1)
  })

  test("a worker without room wakes a sleeping worker before its next poll", async () => {
    const { world, isComplete } = await worldWithOwnRedis()
    const idle = await world.worker()
    const full = await world.worker()
    await isComplete()
    await idle.schedule.claim(0, 0)
    await world.wake([lane("a")])
    const begun = performance.now()
    const due = idle.due()
    await full.schedule.claim(0, 1)
    await due
    expect(performance.now() - begun).toBeLessThan(900)
  })

  test("a lost set is rebuilt within two seconds, and no claim waits for it", async () => {
    const { world, redis, lanes, isComplete } = await worldWithOwnRedis()
    const worker = await world.worker()
    await isComplete()
    await world.wake(Array.from({ length: 3000 }, (_, i) => lane(`ep-${i}`, 1000 + i)))
    while (worker.schedule.hasWaiting(1)) await worker.schedule.claim(0, 1)
    await worker.schedule.claim(0, 1)
    await redis.flushall()
    const begun = performance.now()
    expect(await worker.claimed(1, 1000)).toHaveLength(1)
    await isComplete()
    expect(performance.now() - begun).toBeLessThan(2000)
    expect(Object.keys((await lanes())!)).toHaveLength(2999)
  })

  test("PostgreSQL works alone while Redis is away, and the set is rebuilt when Redis is back, empty", async () => {
    const { world, server, lanes, isComplete } = await worldWithOwnRedis()
    const { schedule } = await world.worker()
    await isComplete()
    await server.kill()
    await world.wake([lane("a"), lane("b", 70)])
    const [claim] = await schedule.claim(9, 1)
    expect(claim).toMatchObject({ endpointId: "a" })
    await schedule.release(claim!, 50, 1)
    expect(schedule.nextDueAt()).toBe(70)
    expect(await schedule.claim(9, 49)).toEqual([])
    await server.start()
    await expect.poll(() => lanes(), { timeout: 10_000 }).toEqual({ "app a": 50, "app b": 70 })
  })

  test("the loss of Redis and its return are logged once each, and reported as a problem in between", async () => {
    const { world, server, isComplete } = await worldWithOwnRedis()
    const { schedule } = await world.worker()
    await isComplete()
    expect(schedule.problem()).toBeNull()
    await server.kill()
    const where = server.url.replace(/\/$/, "")
    expect(await world.log.told("Redis cannot be used")).toMatchObject({
      ...{ level: 40, schedule: expect.stringContaining(where) },
      err: { message: expect.stringContaining("ECONNREFUSED") },
    })
    expect(schedule.problem()).toMatch(
      /^Redis .* cannot be used \(.*ECONNREFUSED.*\); PostgreSQL .* delivery goes on$/,
    )
    await server.start()
    expect(await world.log.told("Redis is back")).toMatchObject({ level: 40, lasted_ms: expect.any(Number) })
    expect(schedule.problem()).toBeNull()
    expect(world.log.all).toHaveLength(2)
  })

  test("one check without an answer is no loss of Redis: our own event loop may have been blocked", async () => {
    const log = new LogLines()
    const timeOut = () => Promise.reject(new Error("Command timed out"))
    const answer = () => Promise.resolve("inf")
    const script = [answer, timeOut, answer, timeOut, timeOut]
    const lines: number[] = []
    const redis = Object.assign(new EventEmitter(), {
      status: "ready",
      info: async () => "run_id:1",
      zscore: () => {
        lines.push(log.all.length)
        return (script.shift() ?? answer)()
      },
      disconnect: () => {},
    })
    const proposer = new RedisProposer({
      ...{ redis: redis as unknown as Redis, database: null as unknown as Database, keys: keysFor("x") },
      ...{ logger: log.logger, instruments: NO_INSTRUMENTS, where: "redis://a", hasOthers: () => false },
    })
    proposer.serve(["http"])
    proposer.start()
    onTestFinished(() => proposer.end())
    await log.told("Redis is back")
    expect(lines).toEqual([0, 0, 0, 0, 0, 1])
    expect(log.all).toMatchObject([{ err: { message: "Command timed out" } }, {}])
  })

  test("failed commands are counted", async () => {
    const { world, redis, isComplete } = await worldWithOwnRedis()
    const { schedule } = await world.worker()
    await isComplete()
    expect(world.instruments.of("redisFailed")).toEqual([])
    await redis.config("SET", "maxmemory", "1")
    await world.wake([lane("a", 70)])
    await schedule.claim(1, 1)
    await expect
      .poll(() => world.instruments.of("redisFailed"))
      .toContainEqual([expect.objectContaining({ message: expect.stringContaining("OOM") })])
  })

  test("closing the connection is no loss of Redis", async () => {
    const { world, isComplete } = await worldWithOwnRedis()
    const { schedule } = await world.worker()
    await isComplete()
    await schedule.stop()
    await new Promise((resolve) => setImmediate(resolve))
    expect([schedule.problem(), world.log.all]).toEqual([null, []])
  })

  test("a rebuild that cannot read PostgreSQL is no loss of Redis", async () => {
    const { world, redis, isComplete } = await worldWithOwnRedis()
    const { proxy, url } = await proxied(world.url)
    const { schedule } = await world.worker({ url })
    await isComplete()
    proxy.refuse()
    proxy.reset()
    await redis.flushall()
    await redis.config("RESETSTAT")
    // The second rebuild begins after the first has failed.
    const begun = async () => /cmdstat_set:calls=(\d+)/.exec(await redis.info("commandstats"))?.[1] ?? "0"
    await expect.poll(async () => Number(await begun()), { timeout: 10_000 }).toBeGreaterThan(1)
    expect([schedule.problem(), world.log.all]).toEqual([null, []])
  })

  test.each([
    ["falls silent", (proxy: FaultProxy) => proxy.blackHole()],
    [
      "is cut off",
      (proxy: FaultProxy) => {
        proxy.refuse()
        proxy.reset()
      },
    ],
  ])("a Redis that %s and comes back with old data learns what it missed", async (_, breakOff) => {
    const server = await ownRedis()
    const { proxy, url } = await proxied(server.url)
    const { world, lanes, isComplete } = await worldWithRedis(server.url, url)
    const worker = await world.worker()
    await isComplete()
    breakOff(proxy)
    await world.wake([lane("a"), lane("b", 70)])
    expect(await worker.claimed(1, 1)).toMatchObject([{ endpointId: "a" }])
    proxy.reset()
    proxy.heal()
    await expect.poll(() => lanes(), { timeout: 10_000 }).toEqual({ "app b": 70 })
  })

  test("under load, with Redis killed and emptied, no wake is lost", async () => {
    const { world, server, redis } = await worldWithOwnRedis()
    const workers = [await world.worker(), await world.worker()]
    const lanes = Array.from({ length: 30 }, (_, i) => lane(`ep-${i}`, 0, `app-${i % 3}`))
    await world.wake(lanes)
    const crew = await LaneWorkers.start(world, workers)
    for (let round = 0; round < 300; round++) {
      const some = lanes.filter(() => Math.random() < 0.2).map(({ endpointId }) => endpointId)
      await crew.send(some, round)
      if (round % 100 === 30) await redis.flushall()
      if (round % 100 === 60) await server.kill()
      if (round % 100 === 90) await server.start()
    }
    await expect.poll(() => crew.left(), { timeout: 10_000 }).toBe(0)
    expect(crew.shared).toEqual([])
  })

  test("a Redis whose memory is full delays nothing, and learns everything when there is room again", async () => {
    const { world, redis, lanes, isComplete } = await worldWithOwnRedis()
    const worker = await world.worker()
    const { schedule } = worker
    await isComplete()
    await redis.config("SET", "maxmemory", "1")
    await world.wake([lane("b", 70)])
    expect(await schedule.claim(9, 1)).toEqual([])
    await world.wake([lane("a")])
    const [claim] = await worker.claimed(1, 1)
    expect(await world.log.told("Redis cannot be used")).toMatchObject({
      err: { message: expect.stringContaining("OOM") },
    })
    await schedule.release(claim!, 0, 2)
    expect(await worker.claimed(1, 3)).toMatchObject([{ endpointId: "a" }])
    expect(schedule.nextDueAt()).toBe(70)
    await redis.config("SET", "maxmemory", "0")
    await expect.poll(() => lanes(), { timeout: 5000 }).toEqual({ "app b": 70 })
  })

  test("a Redis that evicts keys is refused, with the setting to change", async () => {
    const { world } = await worldWithOwnRedis("--maxmemory-policy", "allkeys-lru")
    await expect(world.worker()).rejects.toMatchObject({
      code: "store_incompatible",
      field: "schedule",
      message: expect.stringContaining("set maxmemory-policy to noeviction"),
    })
  })

  test("a Redis that cannot be reached is named, without its password", async () => {
    const world = await LaneWorld.create(on("redis://user:secret@127.0.0.1:1/0?password=secret"))
    await expect(world.worker()).rejects.toMatchObject({
      code: "store_unavailable",
      field: "schedule",
      message: expect.stringMatching(/^cannot open redis:\/\/user@127\.0\.0\.1:1\/0: .*ECONNREFUSED/),
    })
  })
})
