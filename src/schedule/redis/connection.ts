/** Connections to Redis: short timeouts and endless reconnects, since delivery goes on without it. */

import { Redis, type RedisOptions } from "ioredis"
import { Backoff } from "../../core/backoff.ts"
import { PosthornError } from "../../core/errors.ts"
import { withoutPassword } from "../../core/location.ts"

/** A server that is silent for longer is lost: the connection is closed and opened again. */
const SILENCE_MS = 2000
/** ZADD has LT since then. */
const OLDEST_SERVER = [6, 2] as const

type Options = Omit<RedisOptions, "replyMapping">

const BACKOFF = new Backoff({ firstMs: 100, longestMs: 2000, random: Math.random })

const OPTIONS: Options = {
  lazyConnect: true,
  connectTimeout: SILENCE_MS,
  socketTimeout: SILENCE_MS,
  // A command that cannot be sent at once would be out of date later.
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  retryStrategy: (times) => BACKOFF.nextMs(times),
}

export function makeRedis(url: string, options: Options = {}): Redis {
  const redis = new Redis(url, { ...OPTIONS, ...options })
  // Each command rejects by itself. Without a listener, ioredis prints the error.
  redis.on("error", () => {})
  return redis
}

/** Rejects with an error that tells the operator what to fix. */
export async function openRedis(url: string, options: Options): Promise<Redis> {
  const redis = makeRedis(url, options)
  let reason: Error | null = null
  redis.once("error", (error) => {
    reason = error
  })
  try {
    await redis.connect()
    refuseUnsuitable(await redis.info(), withoutPassword(url))
    return redis
  } catch (error) {
    redis.disconnect()
    if (error instanceof PosthornError) throw error
    // The error of the call only says that the connection is closed.
    const { message } = reason ?? (error as Error)
    const text = `cannot open ${withoutPassword(url)}: ${message}; start Redis there, or leave the schedule out`
    throw new PosthornError("store_unavailable", text, { field: "schedule", cause: error })
  }
}

/** Why a schedule in this Redis cannot be opened now, in a sentence, or null. */
export async function redisProblem(url: string): Promise<string | null> {
  try {
    const redis = await openRedis(url, {})
    redis.disconnect()
    return null
  } catch (error) {
    return (error as Error).message
  }
}

export function infoValue(info: string, name: string): string {
  return new RegExp(`^${name}:(.*)$`, "m").exec(info)?.[1]?.trim() ?? ""
}

function refuseUnsuitable(info: string, where: string): void {
  const version = infoValue(info, "redis_version")
  const [major = 0, minor = 0] = version.split(".").map(Number)
  if (major < OLDEST_SERVER[0] || (major === OLDEST_SERVER[0] && minor < OLDEST_SERVER[1])) {
    const text = `${where} is Redis ${version}; Posthorn needs ${OLDEST_SERVER.join(".")} or newer: update the server`
    throw new PosthornError("store_incompatible", text, { field: "schedule" })
  }
  const policy = infoValue(info, "maxmemory_policy")
  if (policy === "noeviction") return
  const text = `${where} throws keys away when its memory is full (maxmemory-policy ${policy}): set maxmemory-policy to noeviction`
  throw new PosthornError("store_incompatible", text, { field: "schedule" })
}
