/** Opens the store and the schedule by their URLs. */
import { existsSync, realpathSync } from "node:fs"
import type { Random } from "./core/backoff.ts"
import { invalid, type PosthornError } from "./core/errors.ts"
import { encryptionKeyFor, givenEncryptionKey } from "./key-file.ts"
import type { EventSink } from "./observe/event-stream.ts"
import type { Instruments } from "./observe/instruments.ts"
import type { Logger } from "./observe/log.ts"
import { noProcessChannel, type ProcessChannel } from "./observe/process-channel.ts"
import { MemorySchedule } from "./schedule/memory.ts"
import type { Schedule } from "./schedule/schedule.ts"
import { filesOpenToOthers } from "./store/sqlite/private-file.ts"
import { openSqliteStore } from "./store/sqlite/store.ts"
import type { Store } from "./store/store.ts"

export interface BackendOptions {
  readonly store: unknown
  readonly schedule: unknown
  readonly schema: unknown
  /** Whether this process delivers. */
  readonly deliver: boolean
  /** Opens a SQLite file that was moved to PostgreSQL. */
  readonly openMoved: boolean
  readonly encryptionKey: string | undefined
  readonly random: Random
  readonly logger: Logger
  readonly instruments: Instruments
  /** The lease of a worker that shares its store; by default the schedule's own. */
  readonly leaseMs: number | undefined
  /** The length of SQLite's log from which it is copied into the file; by default the store's own. */
  readonly longLogPages: number | undefined
  /** Called when the store can no longer be trusted. */
  onLost(error: PosthornError): void
}

export interface Backend {
  readonly store: Store
  readonly processChannel: ProcessChannel
  readonly encryptionKey: Uint8Array
  /** Only in a process that delivers. `store` is the engine's, which a test may have wrapped. */
  openSchedule(store: Store, events: EventSink): Promise<Schedule>
  /** For a process that does not deliver: why the schedule cannot be opened now, as a sentence, or null. */
  checkSchedule(): Promise<string | null>
}

export function openBackend(options: BackendOptions): Promise<Backend> {
  const { store, schedule, schema } = options
  if (typeof store === "string" && store.startsWith("sqlite:file:"))
    throw invalid("store", 'must have a path and no file: URI, such as "sqlite:/data/posthorn.db"')
  if (typeof store === "string" && /^sqlite:./.test(store)) {
    if (schedule !== undefined)
      throw invalid("schedule", "cannot be given with SQLite: the one process that owns the file keeps it")
    if (schema !== undefined)
      throw invalid("schema", "cannot be given with SQLite: it is for a store on PostgreSQL")
    return openSqlite(options, store.slice("sqlite:".length))
  }
  if (typeof store === "string" && /^postgres(ql)?:\/\//.test(store)) {
    return openPostgres(options, store, schedule === undefined ? schedule : requireRedisUrl(schedule))
  }
  throw invalid(
    "store",
    'must be "sqlite:" and a path, such as "sqlite:posthorn.db", or a URL such as "postgres://user@host/database"',
  )
}

function requireRedisUrl(url: unknown): string {
  const problem = 'must be the URL of a Redis server, such as "redis://localhost:6379"'
  if (typeof url !== "string" || !/^rediss?:\/\//.test(url)) throw invalid("schedule", problem)
  try {
    const { username, password } = new URL(url)
    decodeURIComponent(username + password)
    return url
  } catch {
    const spelling = "in the password, write characters such as # / ? @ % as %23 %2F %3F %40 %25"
    throw invalid("schedule", `${problem}; ${spelling}`)
  }
}

function parseSchema(schema: unknown): string | null {
  if (schema === undefined || typeof schema === "string") return schema ?? null
  throw invalid("schema", "must be the name of a schema on PostgreSQL")
}

async function openSqlite(options: BackendOptions, given: string): Promise<Backend> {
  // A symbolic link is the same file, and must have the same lock and key beside it.
  const path = given !== ":memory:" && existsSync(given) ? realpathSync(given) : given
  const encryptionKey = encryptionKeyFor(path, options.encryptionKey)
  const store = await openSqliteStore({
    path,
    own: options.deliver,
    openMoved: options.openMoved,
    longLogPages: options.longLogPages,
    instruments: options.instruments,
    onLost: options.onLost,
  })
  const open = filesOpenToOthers(path)
  if (open.length > 0)
    options.logger.warn(`other users of this machine may open ${open.join(", ")}: run chmod 600 on them`)
  return {
    store,
    processChannel: noProcessChannel,
    encryptionKey,
    openSchedule: async (used) => new MemorySchedule(used, await store.openTokens()),
    checkSchedule: async () => null,
  }
}

/** The clients of PostgreSQL and Redis are loaded here, so that SQLite starts without them. */
async function openPostgres(options: BackendOptions, url: string, schedule?: string): Promise<Backend> {
  const { openPostgresStore } = await import("./store/postgres/store.ts")
  const { PostgresProcessChannel } = await import("./store/postgres/process-channel.ts")
  const name = `posthorn ${process.pid}`
  const { instruments } = options
  const store = await openPostgresStore({ url, schema: parseSchema(options.schema), name, instruments })
  try {
    const { database } = store
    const encryptionKey =
      givenEncryptionKey(options.encryptionKey) ?? Buffer.from(await store.encryptionKey(), "hex")
    return {
      store,
      processChannel: new PostgresProcessChannel(database, options.logger),
      encryptionKey,
      openSchedule: async (used, events) => {
        const { random, leaseMs, logger } = options
        const parts = { database, store: used, random, leaseMs, events, name }
        if (schedule === undefined) {
          const { PostgresSchedule } = await import("./schedule/postgres/postgres.ts")
          return new PostgresSchedule(parts)
        }
        const { openRedisSchedule } = await import("./schedule/redis/redis.ts")
        return openRedisSchedule({ ...parts, logger, url: schedule })
      },
      checkSchedule: async () => {
        if (schedule === undefined) return null
        const { redisProblem } = await import("./schedule/redis/connection.ts")
        return redisProblem(schedule)
      },
    }
  } catch (error) {
    await store.close()
    throw error
  }
}
