/** Gives a run of the tests its bundles, its PostgreSQL and its Redis: servers that it is told of, or private ones that end with it. */
import { tmpdir } from "node:os"
import { join } from "node:path"
import { bundlePrograms } from "../bundle.ts"
import { BUNDLES_VARIABLE } from "../bundled.ts"
import { checkPostgres, PostgresServer } from "./postgres-server.ts"
import { checkRedis, RedisServer } from "./redis-server.ts"

interface Kind {
  /** Where the tests, and the programs that they start, read the server's URL. */
  readonly variable: string
  check(url: string): Promise<void>
  start(): Promise<{ readonly url: string; close(): Promise<void> }>
}

const KINDS: readonly Kind[] = [
  { variable: "POSTHORN_TEST_POSTGRES_URL", check: checkPostgres, start: () => PostgresServer.start() },
  { variable: "POSTHORN_TEST_REDIS_URL", check: checkRedis, start: () => RedisServer.start() },
]

export default async function provideServers(): Promise<() => Promise<void>> {
  // The programs that tests start are compiled once: half the time of a start is saved.
  process.env.NODE_COMPILE_CACHE ??= join(tmpdir(), "posthorn-test-compiled")
  const [folder, ...closings] = await Promise.all([bundlePrograms(), ...KINDS.map(provide)])
  process.env[BUNDLES_VARIABLE] = folder
  return async () => {
    await Promise.all(closings.map((close) => close()))
  }
}

async function provide({ variable, check, start }: Kind): Promise<() => Promise<void>> {
  const given = process.env[variable]
  if (given) {
    await check(given).catch((cause) => {
      throw new Error(`no server answers at the URL in ${variable}: ${cause.message}`, { cause })
    })
    return async () => {}
  }
  const server = await start()
  process.env[variable] = server.url
  return async () => {
    delete process.env[variable]
    await server.close()
  }
}
