/**
 * Connections to PostgreSQL. A server that cannot be reached is noticed once: from then on every call is refused at once, instead of
 * each finding out by itself, until a connection made in the background succeeds again.
 */
import type { Duplex } from "node:stream"
import pg from "pg"
import { PosthornError } from "../../core/errors.ts"
import { isConnectionTrouble, isTimeout, mayTryAgain, toPosthornError } from "./errors.ts"
import type { Statement } from "./statement.ts"

/** The longest that a statement, or the way to the server, may take before it counts as lost. */
const TIMEOUT_MS = 4500
/** For what reads or removes much. */
const LONG_TIMEOUT_MS = 60_000
const FIRST_PROBE_MS = 100
const LONGEST_PROBE_MS = 2000
const TRIES = 5

const INT8 = 20

/** Whole milliseconds and row numbers fit into a JavaScript number. */
const types: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: "text" | "binary") =>
    oid === INT8 && format !== "binary"
      ? Number
      : pg.types.getTypeParser(oid, format as "text")) as typeof pg.types.getTypeParser,
}

export type Row = Record<string, unknown>

/** What runs statements: the pool, or a transaction on one of its connections. */
export interface Runner {
  run(statement: Statement, values: readonly unknown[]): Promise<Row[]>
}

export class Database implements Runner {
  /** What deliveries wait for: a few connections that no list or count can take. */
  readonly #hot: pg.Pool
  readonly #calm: pg.Pool
  readonly #sockets = new Set<Duplex>()
  readonly #onUp = new Set<() => void>()
  #trouble: unknown = null
  #probeTimer: NodeJS.Timeout | null = null
  #closed = false
  /** How many statements were sent; for tests of what things cost. */
  statements = 0

  constructor(url: string, applicationName: string) {
    const pool = (max: number, timeoutMs: number) => {
      const made = new pg.Pool({
        connectionString: url,
        application_name: applicationName,
        max,
        connectionTimeoutMillis: TIMEOUT_MS,
        query_timeout: timeoutMs,
        keepAlive: true,
        types,
      })
      // An idle connection that broke: the pool drops it. Without a listener it would end the process.
      made.on("error", (error) => this.#lost(error))
      made.on("connect", (client) => this.#sockets.add(socketOf(client)))
      made.on("remove", (client) => this.#sockets.delete(socketOf(client)))
      return made
    }
    this.#hot = pool(6, TIMEOUT_MS)
    this.#calm = pool(4, LONG_TIMEOUT_MS)
  }

  /** One statement, its own transaction. One that lost a race is tried again. */
  run(statement: Statement, values: readonly unknown[]): Promise<Row[]> {
    return this.#guarded(() => this.#query(this.#hot, statement, values))
  }

  /** For what may take long. */
  runCalmly(statement: Statement, values: readonly unknown[]): Promise<Row[]> {
    return this.#guarded(() => this.#query(this.#calm, statement, values), true)
  }

  /** Several statements, all or none. */
  transaction<T>(work: (runner: Runner) => Promise<T>): Promise<T> {
    return this.#guarded(() => this.#transact(this.#hot, work))
  }

  /** Several statements that may take long. */
  transactionCalmly<T>(work: (runner: Runner) => Promise<T>): Promise<T> {
    return this.#guarded(() => this.#transact(this.#calm, work), true)
  }

  /** A connection of its own that the caller ends, for LISTEN. */
  async connect(onLost: (error: unknown) => void): Promise<pg.Client> {
    const { connectionString, application_name } = this.#hot.options
    const client = new pg.Client({
      connectionString,
      application_name,
      connectionTimeoutMillis: TIMEOUT_MS,
      keepAlive: true,
    })
    client.on("error", onLost)
    client.on("end", () => onLost(new Error("the connection ended")))
    await client.connect()
    return client
  }

  /** Called whenever the server can be reached again; the function that comes back ends it. */
  onUp(listener: () => void): () => void {
    this.#onUp.add(listener)
    return () => this.#onUp.delete(listener)
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    if (this.#probeTimer !== null) clearTimeout(this.#probeTimer)
    await Promise.all([this.#hot.end(), this.#calm.end()])
  }

  /** For tests: the connections end as in a crash, whatever is under way. */
  async kill(): Promise<void> {
    const closed = this.close()
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }

  async #guarded<T>(work: () => Promise<T>, calm = false): Promise<T> {
    if (this.#closed) throw new PosthornError("closed", "this Posthorn is closed")
    if (this.#trouble !== null) throw toPosthornError(this.#trouble)
    for (let left = TRIES; ; left--) {
      try {
        return await work()
      } catch (error) {
        if (mayTryAgain(error) && left > 1) continue
        // One that may take long and took too long says nothing about the server.
        if (isConnectionTrouble(error) && !(calm && isTimeout(error))) this.#lost(error)
        throw toPosthornError(error)
      }
    }
  }

  async #query(pool: pg.Pool, statement: Statement, values: readonly unknown[]): Promise<Row[]> {
    this.statements++
    return (await pool.query({ ...statement, values: values as unknown[] })).rows
  }

  async #transact<T>(pool: pg.Pool, work: (runner: Runner) => Promise<T>): Promise<T> {
    const client = await pool.connect()
    let broken: Error | undefined
    // The pool listens only while a connection is idle: one that broke in a transaction would end the process.
    const onError = (error: Error) => {
      broken = error
    }
    client.on("error", onError)
    const run = async (query: pg.QueryConfig): Promise<Row[]> => {
      this.statements++
      return (await client.query(query)).rows
    }
    try {
      await run({ text: "BEGIN" })
      const result = await work({ run: (statement, values) => run({ ...statement, values: [...values] }) })
      await run({ text: "COMMIT" })
      return result
    } catch (error) {
      if (isConnectionTrouble(error)) broken = error as Error
      else await run({ text: "ROLLBACK" }).catch((cause) => (broken = cause))
      throw error
    } finally {
      client.off("error", onError)
      client.release(broken)
    }
  }

  #lost(error: unknown): void {
    if (this.#trouble !== null || this.#closed) return
    this.#trouble = error
    this.#probe(FIRST_PROBE_MS)
  }

  /** With jitter: many processes lose the server in the same moment, and must not come back in the same moment. */
  #probe(delayMs: number): void {
    this.#probeTimer = setTimeout(
      async () => {
        try {
          const client = await this.connect(() => {})
          await client.end()
          this.#trouble = null
          for (const listener of this.#onUp) listener()
        } catch (error) {
          if (this.#closed) return
          this.#trouble = error
          // What still waits for an answer will not get one.
          for (const socket of this.#sockets) socket.destroy()
          this.#probe(Math.min(delayMs * 2, LONGEST_PROBE_MS))
        }
      },
      delayMs * (0.5 + Math.random() / 2),
    )
  }
}

function socketOf(client: pg.PoolClient): Duplex {
  return (client as unknown as { connection: { stream: Duplex } }).connection.stream
}
