/** Makes the set in Redis anew from PostgreSQL, page by page, while work goes on; whoever is first does it for all. */
import type { Redis } from "ioredis"
import type { Database } from "../../store/postgres/connection.ts"
import { NEVER } from "../../store/postgres/lane-functions.ts"
import type { Statement } from "../../store/postgres/statement.ts"

const PAGE = 2000
/** Whoever has not come further in this time is no longer at it. */
const STEP_MS = 5000

// In the order of the primary key, so that every page is one range of it.
const LANES: Statement = {
  name: "lanes.free",
  text: `
    SELECT id, app_id, ready_at FROM lanes
     WHERE id > $1 AND owner = 0 AND ready_at < ${NEVER} ORDER BY id LIMIT ${PAGE}`,
}

export interface Keys {
  /** The sorted set of free lanes, by when they are due. */
  readonly lanes: string
  /** A list with an entry for each worker that is to wake up. */
  readonly wake: string
  /** Who is making the set anew. */
  readonly rebuilding: string
}

/** All in one slot of a cluster; other databases on the same Redis have keys of their own. */
export function keysFor(databaseId: string): Keys {
  const tag = `{posthorn:${databaseId}}`
  return { lanes: `${tag}:lanes`, wake: `${tag}:wake`, rebuilding: `${tag}:rebuilding` }
}

/** The member of the set that stands for a lane. */
export function memberFor(appId: string, endpointId: string): string {
  return `${appId} ${endpointId}`
}

export function endpointOf(member: string): string {
  return member.slice(member.indexOf(" ") + 1)
}

/**
 * At the end the mark is in the set itself: whoever finds it there knows that nothing was lost since. False when somebody else is at
 * it. What changes meanwhile is learned as ever: a lane that is in the set too early is corrected when it is proposed.
 */
export async function rebuild(redis: Redis, database: Database, keys: Keys, mark: string): Promise<boolean> {
  if ((await redis.set(keys.rebuilding, mark, "PX", STEP_MS, "NX")) === null) return false
  try {
    for (let after: string | null = ""; after !== null; ) {
      const rows = await database.runCalmly(LANES, [after])
      const scored = rows.flatMap(({ id, app_id, ready_at }) => [
        ready_at as number,
        memberFor(app_id as string, id as string),
      ])
      if (scored.length > 0) await redis.zadd(keys.lanes, "LT", ...scored)
      await redis.pexpire(keys.rebuilding, STEP_MS)
      after = rows.length < PAGE ? null : (rows.at(-1)!.id as string)
    }
    await redis.zremrangebyscore(keys.lanes, "+inf", "+inf")
    await redis.zadd(keys.lanes, "+inf", mark)
    return true
  } finally {
    await redis.del(keys.rebuilding).catch(() => {})
  }
}
