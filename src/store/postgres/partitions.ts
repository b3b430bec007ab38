/**
 * The partitions that rows go to: a day of finished deliveries with their attempts, twelve hours of idempotency keys. When the first row
 * needs one, the one after it is made as well, so that hardly any row has to wait for its own.
 */
import type { Database, Runner } from "./connection.ts"
import type { PgSchema } from "./pg-schema.ts"
import { KEPT_DAY } from "./schema.ts"
import { unnamed } from "./statement.ts"

export const DAY_MS = 86_400_000
/** Days further off than this are rounded up to whole months, so that long retention does not make thousands of tables. */
const SINGLE_DAYS = 100
const MONTH_DAYS = 30

/**
 * The day from whose beginning on a row may go: a table may be dropped when its day has begun. So a row that may go already goes
 * tomorrow; in the table of a day that has begun it would meet the purge.
 */
export function purgeDay(purgeAt: number | null, now: number): number {
  if (purgeAt === null) return KEPT_DAY
  const day = Math.max(Math.ceil(purgeAt / DAY_MS), Math.floor(now / DAY_MS) + 1)
  return day * DAY_MS - now <= SINGLE_DAYS * DAY_MS ? day : Math.ceil(day / MONTH_DAYS) * MONTH_DAYS
}

/** What a table that retention has taken out of its parent is called, until it is dropped. */
export function asideName(parent: string, value: number): string {
  return `${parent}_aside_${value}`
}

/** Taken by a transaction that makes partitions or takes some out. */
export async function lockPartitions(runner: Runner, schema: PgSchema): Promise<void> {
  await runner.run(unnamed(`SELECT pg_advisory_xact_lock(${schema.lock("partitions")})`), [])
}
const ATTACHED = unnamed("SELECT FROM pg_inherits WHERE inhrelid = to_regclass($1) AND NOT inhdetachpending")
const FIND = unnamed("SELECT relispartition FROM pg_class WHERE oid = to_regclass($1)")

export class Partitions {
  readonly #database: Database
  readonly #used = new Set<string>()
  readonly #known = new Set<string>()
  /** One at a time, so that they never take more than one connection. */
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

  /** After one was dropped by whichever process. */
  forget(): void {
    this.#used.clear()
    this.#known.clear()
  }

  async #use(parent: string, value: number): Promise<void> {
    const name = `${parent}_${value}`
    if (this.#used.has(name)) return
    await this.#ensure(parent, value)
    this.#used.add(name)
    // Best effort: whoever needs it makes it.
    this.#ahead = this.#ahead.then(() => this.#ensure(parent, value + 1)).catch(() => {})
  }

  async #ensure(parent: string, value: number): Promise<void> {
    const name = `${parent}_${value}`
    if (this.#known.has(name)) return
    // Without the lock, which somebody may hold for long.
    const isThere = (await this.#database.run(ATTACHED, [this.#database.schema.of(name)])).length > 0
    if (!isThere) await this.#make(parent, value, name)
    this.#known.add(name)
  }

  #make(parent: string, value: number, name: string): Promise<void> {
    return this.#database.transaction(async (runner) => {
      await lockPartitions(runner, this.#database.schema)
      const [found] = await runner.run(FIND, [this.#database.schema.of(name)])
      if (found?.relispartition) return
      // Taken out by a purge that was stopped before it gave it another name.
      if (found !== undefined)
        await runner.run(unnamed(`ALTER TABLE ${name} RENAME TO ${asideName(parent, value)}`), [])
      // Made and then attached: CREATE … PARTITION OF would lock the parent against every reader.
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
