/** Room for tests on the run's shared Redis, and whole servers for tests that break theirs. */
import { randomBytes } from "node:crypto"
import { Redis } from "ioredis"
import { onTestFinished } from "vitest"
import { RedisServer } from "./redis-server.ts"

export interface Room {
  readonly url: string
  /** Every key that the test makes must have this in its name: keys that do are deleted after the test. */
  readonly prefix: string
}

/** The shared server, and a prefix that is this test's own. (A server has sixteen numbered databases: too few for one each.) */
export function freshPrefix(): Room {
  const url = process.env.POSTHORN_TEST_REDIS_URL!
  const prefix = `posthorn-test-${randomBytes(8).toString("hex")}`
  onTestFinished(async () => {
    const redis = new Redis(url)
    for await (const keys of redis.scanStream({ match: `*${prefix}*`, count: 1000 }))
      if (keys.length > 0) await redis.unlink(keys)
    await redis.quit()
  })
  return { url, prefix }
}

/** A server that is this test's own, to kill and to start as it likes. */
export async function ownRedis(args?: readonly string[]): Promise<RedisServer> {
  const server = await RedisServer.start(args)
  onTestFinished(() => server.close())
  return server
}
