/**
 * Creates partitions: a day of finished deliveries with their attempts, twelve hours of idempotency keys. The first use of one also creates
 * the next, so that hardly any row waits for its partition.
 */
import type { Database, Runner } from "./connection.ts"
import type { PgSchema } from "./pg-schema.ts"
import { KEPT_DAY } from "./schema.ts"
import { unnamed } from "./statement.ts"

export const DAY_MS = 86_400_000
/** Later days are rounded up to whole months, so that long retention does not need thousands of tables. */
const SINGLE_DAYS = 100
const MONTH_DAYS = 30

/**
 * The partition of a row: a table may be dropped when its day has begun. So a row that may be removed already goes into tomorrow's table, and
 * not into one that a purge may be dropping.
 */
export function purgeDay(purgeAt: number | null, now: number): number {
  if (purgeAt === null) return KEPT_DAY
  const day = Math.max(Math.ceil(purgeAt / DAY_MS), Math.floor(now / DAY_MS) + 1)
  return day * DAY_MS - now <= SINGLE_DAYS * DAY_MS ? day : Math.ceil(day / MONTH_DAYS) * MONTH_DAYS
}

/** Name of a detached table until it is dropped. */
export function asideName(parent: string, value: number): string {
  return `${parent}_aside_${value}`
}

/** For transactions that create or detach partitions. */
export async function lockPartitions(runner: Runner, schema: PgSchema): Promise<void> {
  await runner.run(unnamed(`SELECT pg_advisory_xact_lock(${schema.lock("partitions")})`), [])
}
const ATTACHED = unnamed("SELECT FROM pg_inherits WHERE inhrelid = to_regclass($1) AND NOT inhdetachpending")
const FIND = unnamed("SELECT relispartition FROM pg_class WHERE oid = to_regclass($1)")

export class Partitions {
  readonly #database: Database
  readonly #used = new Set<string>()
  readonly #known = new Set<string>()
  /** One at a time, on one connection. */
  #ahead: Promise<void> = Promise.resolve()

  constructor(database: Database) {
    this.#database = database
  }

  async ensureDays(days: Iterable<number>): Promise<void> {
    for (const day of days) {
      if (day === KEPT_DAY) continue
      await this.#use("webhook_deliveries_done", day)
      await this.#use("attempts", day)
    }
  }

  ensureGeneration(generation: number): Promise<void> {
    return this.#use("idempotency", generation)
  }

  /** After a process dropped a partition. */
  forget(): void {
    this.#used.clear()
    this.#known.clear()
  }

  async #use(parent: string, value: number): Promise<void> {
    const name = `${parent}_${value}`
    if (this.#used.has(name)) return
    await this.#ensure(parent, value)
    this.#used.add(name)
    // Best effort: its first use would create it.
    this.#ahead = this.#ahead.then(() => this.#ensure(parent, value + 1)).catch(() => {})
  }

  async #ensure(parent: string, value: number): Promise<void> {
    const name = `${parent}_${value}`
    if (this.#known.has(name)) return
    // First without the lock, which another process may hold for long.
    const isThere = (await this.#database.run(ATTACHED, [this.#database.schema.of(name)])).length > 0
    if (!isThere) await this.#make(parent, value, name)
    this.#known.add(name)
  }

  #make(parent: string, value: number, name: string): Promise<void> {
    return this.#database.transaction(async (runner) => {
      await lockPartitions(runner, this.#database.schema)
      const [found] = await runner.run(FIND, [this.#database.schema.of(name)])
      if (found?.relispartition) return
      // Detached by a purge that stopped before it renamed the table.
      if (found !== undefined)
        await runner.run(unnamed(`ALTER TABLE ${name} RENAME TO ${asideName(parent, value)}`), [])
      // Created and then attached: CREATE … PARTITION OF would lock out readers of the parent.
      await runner.run(unnamed(`CREATE TABLE ${name} (LIKE ${parent} INCLUDING ALL)`), [])
      await runner.run(
        unnamed(
          `ALTER TABLE ${parent} ATTACH PARTITION ${name} FOR VALUES FROM (${value}) TO (${value + 1})`,
        ),
        [],
      )
    })
  }
}
