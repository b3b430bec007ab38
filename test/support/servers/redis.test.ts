import { Redis } from "ioredis"
import { expect, onTestFinished, test } from "vitest"
import { freshPrefix, ownRedis } from "./redis.ts"

async function dial(url: string): Promise<Redis> {
  const redis = new Redis(url, { lazyConnect: true, retryStrategy: () => null })
  redis.on("error", () => {})
  onTestFinished(() => redis.disconnect())
  await redis.connect()
  return redis
}

const used: string[] = []

test("a prefix is one test's own", async () => {
  const [one, other] = [freshPrefix(), freshPrefix()]
  expect(one.prefix).not.toBe(other.prefix)
  const redis = await dial(one.url)
  await redis.mset(`${one.prefix}:a`, 1, `{${one.prefix}}:b`, 2, `${other.prefix}:a`, 3)
  used.push(`${one.prefix}:a`, `{${one.prefix}}:b`, `${other.prefix}:a`)
  expect(await redis.exists(used)).toBe(3)
})

test("after its test the keys with the prefix are gone", async () => {
  const { url, prefix } = freshPrefix()
  const redis = await dial(url)
  await redis.set(prefix, "mine")
  expect(used).toHaveLength(3)
  expect(await redis.exists(used)).toBe(0)
  expect(await redis.get(prefix)).toBe("mine")
})

test("a test's own server, killed, comes back empty at the same address", async () => {
  const server = await ownRedis()
  const before = await dial(server.url)
  await before.set("a", 1)
  const cut = new Promise((resolve) => before.once("close", resolve))
  await server.kill()
  await cut
  await expect(dial(server.url)).rejects.toThrow()
  await server.start()
  expect(await (await dial(server.url)).exists("a")).toBe(0)
})

test("a test's own server takes arguments, and evicts nothing unless they say so", async () => {
  const full = await dial((await ownRedis(["--maxmemory", "1kb"])).url)
  await expect(full.set("a", "b")).rejects.toThrow("OOM")
  const evicting = await dial((await ownRedis(["--maxmemory-policy", "allkeys-lru"])).url)
  expect(await evicting.config("GET", "maxmemory-policy")).toEqual(["maxmemory-policy", "allkeys-lru"])
})
