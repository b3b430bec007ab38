/** Rebuilds the set in Redis from PostgreSQL, page by page, while workers go on. One worker rebuilds for all of them. */
import type { Redis } from "ioredis"
import type { Database } from "../../store/postgres/connection.ts"
import { NEVER } from "../../store/postgres/lane-functions.ts"
import type { Statement } from "../../store/postgres/statement.ts"

const PAGE = 2000
/** A worker that wrote no page for so long has stopped rebuilding. */
const STEP_MS = 5000

// In the order of the primary key, so that every page is one range of it.
const LANES: Statement = {
  name: "lanes.free",
  text: `
    SELECT id, app_id, transport, ready_at FROM lanes
     WHERE id > $1 AND owner = 0 AND ready_at < ${NEVER} ORDER BY id LIMIT ${PAGE}`,
}

export interface Keys {
  /** The sorted set of a transport's free lanes, scored by their due times. */
  lanes(transport: string): string
  /** A list with an entry for each worker that should wake up. */
  readonly wake: string
  /** Lock of the worker that rebuilds the set. */
  readonly rebuilding: string
}

/** All keys are in one slot of a cluster. Each database on the same Redis has its own. Earlier versions had only the set of `http`. */
export function keysFor(databaseId: string): Keys {
  const tag = `{posthorn:${databaseId}}`
  const lanes = (transport: string) => (transport === "http" ? `${tag}:lanes` : `${tag}:${transport}:lanes`)
  return { lanes, wake: `${tag}:wake`, rebuilding: `${tag}:rebuilding` }
}

export function memberFor(appId: string, endpointId: string): string {
  return `${appId} ${endpointId}`
}

export function endpointOf(member: string): string {
  return member.slice(member.indexOf(" ") + 1)
}

/**
 * Ends with a mark in each set, which is lost with the set: in those of `transports` and of all lanes found. False when another worker
 * is rebuilding. Lanes that change meanwhile are learned as always: a lane with too early a time is corrected when it is proposed.
 */
export async function rebuild(
  redis: Redis,
  database: Database,
  keys: Keys,
  transports: readonly string[],
  mark: string,
): Promise<boolean> {
  if ((await redis.set(keys.rebuilding, mark, "PX", STEP_MS, "NX")) === null) return false
  const rebuilt = new Set(transports)
  try {
    for (let after: string | null = ""; after !== null; ) {
      const rows = await database.runCalmly(LANES, [after])
      for (const [transport, lanes] of Map.groupBy(rows, (row) => row.transport as string)) {
        rebuilt.add(transport)
        const scored = lanes.flatMap(({ id, app_id, ready_at }) => [
          ready_at as number,
          memberFor(app_id as string, id as string),
        ])
        await redis.zadd(keys.lanes(transport), "LT", ...scored)
      }
      await redis.pexpire(keys.rebuilding, STEP_MS)
      after = rows.length < PAGE ? null : (rows.at(-1)!.id as string)
    }
    for (const transport of rebuilt) {
      await redis.zremrangebyscore(keys.lanes(transport), "+inf", "+inf")
      await redis.zadd(keys.lanes(transport), "+inf", mark)
    }
    return true
  } finally {
    await redis.del(keys.rebuilding).catch(() => {})
  }
}
