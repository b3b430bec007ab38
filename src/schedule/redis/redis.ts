/**
 * The schedule with Redis in front of PostgreSQL. Redis says which lane is due when, and wakes workers; lane and token are granted by
 * PostgreSQL, which holds everything that Redis does.
 */

import { withoutPassword } from "../../core/location.ts"
import type { Database } from "../../store/postgres/connection.ts"
import type { Statement } from "../../store/postgres/statement.ts"
import { PostgresSchedule, type PostgresScheduleOptions } from "../postgres/postgres.ts"
import type { ScheduleListener } from "../schedule.ts"
import { openRedis } from "./connection.ts"
import { RedisLine } from "./line.ts"
import { type Keys, keysFor } from "./rebuild.ts"
import { SCRIPTS } from "./scripts.ts"
import { Waker } from "./waker.ts"

/** A claim does not wait longer for Redis. */
const ANSWER_MS = 500

// Whoever comes first makes it; the update, which changes nothing, makes the others see it.
const DATABASE_ID: Statement = {
  name: "",
  text: `
    INSERT INTO meta (key, value) VALUES ('database_id', gen_random_uuid()::text)
    ON CONFLICT (key) DO UPDATE SET value = meta.value RETURNING value`,
}

export interface RedisScheduleOptions extends PostgresScheduleOptions {
  readonly url: string
}

export async function openRedisSchedule(options: RedisScheduleOptions): Promise<RedisSchedule> {
  const redis = await openRedis(options.url, { commandTimeout: ANSWER_MS, scripts: SCRIPTS })
  try {
    const keys = keysFor(await databaseId(options.database))
    const line = new RedisLine({
      ...{ redis, keys, database: options.database, logger: options.logger },
      where: withoutPassword(options.url),
      hasOthers: () => schedule.hasOthers,
    })
    const schedule = new RedisSchedule(options, line, keys)
    return schedule
  } catch (error) {
    redis.disconnect()
    throw error
  }
}

class RedisSchedule extends PostgresSchedule {
  readonly #line: RedisLine
  readonly #waker: Waker

  constructor(options: RedisScheduleOptions, line: RedisLine, keys: Keys) {
    super({ ...options, proposer: line })
    this.#line = line
    this.#waker = new Waker(options.url, keys.wake, () => this.hint())
  }

  override async start(listener: ScheduleListener): Promise<void> {
    try {
      await super.start(listener)
    } catch (error) {
      this.abandon()
      throw error
    }
    this.#line.start()
    void this.#waker.start()
  }

  override problem(): string | null {
    return this.#line.problem
  }

  override async stop(): Promise<void> {
    this.#waker.end()
    await super.stop()
    this.#line.end()
  }

  override abandon(): void {
    super.abandon()
    this.#waker.end()
    this.#line.end()
  }
}

async function databaseId(database: Database): Promise<string> {
  const [row] = await database.run(DATABASE_ID, [])
  return row!.value as string
}
