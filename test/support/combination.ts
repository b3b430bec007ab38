/**
 * The store and the schedule that the engine's tests run on. The same tests run over every combination: POSTHORN_TEST_ON, which
 * vitest's projects set, says which, and each test has data of its own.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Redis } from "ioredis"
import { onTestFinished } from "vitest"
import { keysFor } from "../../src/schedule/redis/rebuild.ts"
import { type Ground, postgresGround, sqliteGround } from "./ground.ts"
import { migratedDatabase } from "./migrated-database.ts"
import { freshDatabase } from "./servers/postgres.ts"

const COMBINATIONS = ["sqlite", "postgres", "redis"] as const
type Combination = (typeof COMBINATIONS)[number]

/** SQLite with the schedule in memory, PostgreSQL with its own, or PostgreSQL with the schedule in Redis. */
export const ON = (process.env.POSTHORN_TEST_ON ?? "sqlite") as Combination
if (!COMBINATIONS.includes(ON)) throw new Error(`POSTHORN_TEST_ON must be one of ${COMBINATIONS.join(", ")}`)

export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "posthorn-"))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Without tables, unless told; with them it is there sooner. */
export async function freshGround({ migrated }: { readonly migrated: boolean }): Promise<Ground> {
  if (ON === "sqlite") return sqliteGround(join(temporaryFolder(), "posthorn.db"))
  const store = await (migrated ? migratedDatabase() : freshDatabase())
  const schedule = ON === "redis" ? { schedule: process.env.POSTHORN_TEST_REDIS_URL! } : {}
  const ground = postgresGround({ store, ...schedule })
  onTestFinished(async () => {
    if (ON === "redis") await forgetLanes(ground)
    await ground.close()
  })
  return ground
}

/** Deletes the keys of the test's schedule from the run's shared Redis. */
async function forgetLanes(ground: Ground): Promise<void> {
  if (!(await ground.hasTables())) return
  const [row] = await ground.sql("SELECT value FROM meta WHERE key = 'database_id'")
  if (row === undefined) return
  const redis = new Redis(ground.options.schedule!)
  await redis.unlink(Object.values(keysFor(row.value as string)))
  await redis.quit()
}
