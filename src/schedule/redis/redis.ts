/** The schedule with Redis in front of PostgreSQL: Redis knows which lane is due when and wakes workers, PostgreSQL grants lanes. */

import { withoutPassword } from "../../core/location.ts"
import type { Logger } from "../../observe/log.ts"
import type { Database } from "../../store/postgres/connection.ts"
import type { Statement } from "../../store/postgres/statement.ts"
import { PostgresSchedule, type PostgresScheduleOptions } from "../postgres/postgres.ts"
import type { ScheduleListener } from "../schedule.ts"
import { openRedis } from "./connection.ts"
import { RedisProposer } from "./proposer.ts"
import { type Keys, keysFor } from "./rebuild.ts"
import { SCRIPTS } from "./scripts.ts"
import { Waker } from "./waker.ts"

/** The longest that a claim waits for Redis. */
const ANSWER_MS = 500

// The first process inserts it. The update changes nothing, and returns the row to the others.
const DATABASE_ID: Statement = {
  name: "",
  text: `
    INSERT INTO meta (key, value) VALUES ('database_id', gen_random_uuid()::text)
    ON CONFLICT (key) DO UPDATE SET value = meta.value RETURNING value`,
}

export interface RedisScheduleOptions extends PostgresScheduleOptions {
  readonly url: string
  readonly logger: Logger
}

export async function openRedisSchedule(options: RedisScheduleOptions): Promise<RedisSchedule> {
  const redis = await openRedis(options.url, { commandTimeout: ANSWER_MS, scripts: SCRIPTS })
  try {
    const keys = keysFor(await databaseId(options.database))
    const proposer = new RedisProposer({
      ...{ redis, keys, database: options.database, logger: options.logger },
      instruments: options.database.instruments,
      where: withoutPassword(options.url),
      hasOthers: () => schedule.hasOthers,
    })
    const schedule = new RedisSchedule(options, proposer, keys)
    return schedule
  } catch (error) {
    redis.disconnect()
    throw error
  }
}

class RedisSchedule extends PostgresSchedule {
  readonly #proposer: RedisProposer
  readonly #waker: Waker

  constructor(options: RedisScheduleOptions, proposer: RedisProposer, keys: Keys) {
    super({ ...options, proposer })
    this.#proposer = proposer
    this.#waker = new Waker(options.url, keys.wake, options.database.instruments, () => this.hint())
  }

  override async start(listener: ScheduleListener): Promise<void> {
    try {
      await super.start(listener)
    } catch (error) {
      this.abandon()
      throw error
    }
    this.#proposer.start()
    void this.#waker.start()
  }

  override problem(): string | null {
    return this.#proposer.problem
  }

  override async stop(): Promise<void> {
    this.#waker.end()
    await super.stop()
    this.#proposer.end()
  }

  override abandon(): void {
    super.abandon()
    this.#waker.end()
    this.#proposer.end()
  }
}

async function databaseId(database: Database): Promise<string> {
  const [row] = await database.run(DATABASE_ID, [])
  return row!.value as string
}
