/**
 * Connections to PostgreSQL. When one call finds that the server cannot be reached, all further calls are refused immediately, instead of
 * running into timeouts, until the server can be used again.
 */
import type pg from "pg"
import { PosthornError } from "../../core/errors.ts"
import { type Instruments, NO_INSTRUMENTS, recordStoreError } from "../../observe/instruments.ts"
import type { Row } from "../rows.ts"
import { Clients, disconnect, GOODBYE_MS, isDoneWithin, TIMEOUT_MS } from "./client.ts"
import {
  isConnectionTrouble,
  isConstraintViolation,
  isPoolExhausted,
  isStalePlan,
  isTimeout,
  mayTryAgain,
  readOnlyError,
  toPosthornError,
} from "./errors.ts"
import { Outage } from "./outage.ts"
import { PgSchema } from "./pg-schema.ts"
import type { Statement } from "./statement.ts"

/** For statements that read or remove much. */
const LONG_TIMEOUT_MS = 60_000
const TRIES = 5
/** In flight at once: two accepts, three fetches and settles, a claim round, a lease and a note. */
export const HOT_CONNECTIONS = 8

/** With a million waiting rows the planner compiles each fetch: 300 ms for a statement that takes two. */
const NO_JIT = "SET jit = off"
/**
 * A plan lives as long as its connection and may have been made while the tables were nearly empty. So it must not depend on the planner's
 * estimates: see `lookup`.
 */
export const HOT_SETTINGS = `${NO_JIT}; SET enable_seqscan = off`

/**
 * In one round trip. A process that freezes or loses the network in a transaction loses its locks after 10 s. A wait for a lock ends before
 * the timeout of the statement.
 */
const BEGIN = `
  BEGIN;
  SET LOCAL idle_in_transaction_session_timeout = '10s';
  SET LOCAL lock_timeout = '3s'`
/** Long statements on other connections may run between two of its statements. */
const BEGIN_CALMLY = `BEGIN; SET LOCAL idle_in_transaction_session_timeout = ${2 * LONG_TIMEOUT_MS}`

/** A server that takes no writes, such as a standby, counts as down. */
const PROBE = "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on' AS refuses"

/** Runs statements: the pool, or a transaction on one of its connections. */
export interface Runner {
  run(statement: Statement, values: readonly unknown[]): Promise<Row[]>
}

export class Database implements Runner {
  readonly schema: PgSchema
  readonly instruments: Instruments
  readonly #clients: Clients
  /** Connections for deliveries, which no list or count can use. */
  readonly #hot: pg.Pool
  readonly #calm: pg.Pool
  readonly #outage: Outage
  /** Calls in flight, with their reject functions. */
  readonly #underWay = new Map<Promise<unknown>, (error: PosthornError) => void>()
  #closed = false
  /** Statements sent; for tests. */
  statements = 0
  /** The disk was full at the last write. A small write that succeeds does not prove that large ones will. */
  wasFull = false

  constructor(url: string, applicationName: string, schema = new PgSchema(), instruments = NO_INSTRUMENTS) {
    this.schema = schema
    this.instruments = instruments
    this.#clients = new Clients(url, applicationName)
    this.#hot = this.#clients.pool(HOT_CONNECTIONS, TIMEOUT_MS, HOT_SETTINGS)
    this.#calm = this.#clients.pool(4, LONG_TIMEOUT_MS, NO_JIT)
    this.#outage = new Outage({ probe: () => this.#probe(), onGone: () => this.#clients.cut() })
    // The pool drops an idle connection that broke. Without a listener the error would end the process.
    for (const pool of [this.#hot, this.#calm]) pool.on("error", (error) => this.#outage.begin(error))
  }

  /** One statement in a transaction of its own. Serialization failures are retried. */
  run(statement: Statement, values: readonly unknown[]): Promise<Row[]> {
    return this.#guarded(() => this.#query(this.#hot, statement, values))
  }

  /** For a statement that may take long. */
  runCalmly(statement: Statement, values: readonly unknown[]): Promise<Row[]> {
    return this.#guarded(() => this.#query(this.#calm, statement, values), true)
  }

  /** Several statements, all or none. */
  transaction<T>(work: (runner: Runner) => Promise<T>): Promise<T> {
    return this.#guarded(() => this.#transact(this.#hot, BEGIN, work))
  }

  /** Several statements that may take long. */
  transactionCalmly<T>(work: (runner: Runner) => Promise<T>): Promise<T> {
    return this.#guarded(() => this.#transact(this.#calm, BEGIN_CALMLY, work), true)
  }

  /** A connection of its own, which the caller ends with `disconnect`. Without `timeoutMs` its statements have no timeout. */
  async connect(onLost: (error: unknown) => void, timeoutMs = 0): Promise<pg.Client> {
    const client = this.#clients.single(timeoutMs)
    client.on("error", onLost)
    client.on("end", () => onLost(new Error("the connection ended")))
    await client.connect()
    return client
  }

  /** Called whenever the server can be used again; returns a function that unsubscribes. */
  onUp(listener: () => void): () => void {
    return this.#outage.onUp(listener)
  }

  /** Waits for calls in flight, up to the timeout of a statement. */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    if (this.#outage.trouble !== null) this.#clients.cut()
    if (!(await isDoneWithin(TIMEOUT_MS, Promise.allSettled(this.#underWay.keys())))) this.#clients.cut()
    await this.#end()
  }

  /** For tests: the connections end as in a crash. */
  async kill(): Promise<void> {
    this.#closed = true
    this.#clients.cut()
    await this.#end()
  }

  async #end(): Promise<void> {
    this.#outage.close()
    await isDoneWithin(GOODBYE_MS, Promise.all([this.#hot.end(), this.#calm.end()]))
    // A pool that ended never answers calls that waited for a connection.
    for (const giveUp of this.#underWay.values()) giveUp(closedError())
    // Idle connections wait for the server's end of the connection, and keep the process alive.
    setTimeout(() => this.#clients.cut(), GOODBYE_MS).unref()
  }

  async #probe(): Promise<void> {
    const client = await this.connect(() => {}, TIMEOUT_MS)
    try {
      const { rows } = await client.query(PROBE)
      if (rows[0].refuses) throw readOnlyError()
    } finally {
      await disconnect(client)
    }
  }

  #guarded<T>(work: () => Promise<T>, calm = false): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    this.#underWay.set(promise, reject)
    const done = () => void this.#underWay.delete(promise)
    this.#try(work, calm).then(resolve, reject).finally(done)
    return promise
  }

  async #try<T>(work: () => Promise<T>, calm: boolean): Promise<T> {
    if (this.#closed) throw closedError()
    if (this.#outage.trouble !== null) throw this.#failed(this.#outage.trouble)
    for (let left = TRIES; ; left--) {
      try {
        return await work()
      } catch (error) {
        if (mayTryAgain(error) && left > 1) continue
        // Neither a long statement that timed out nor an exhausted pool says that the server is down.
        const isBusy = isPoolExhausted(error) || (calm && isTimeout(error))
        if (isConnectionTrouble(error) && !isBusy) this.#outage.begin(error)
        throw this.#failed(error)
      }
    }
  }

  #failed(error: unknown): PosthornError {
    const told = toPosthornError(error)
    if (told !== error && told.code === "store_full") this.wasFull = true
    if (!isConstraintViolation(error)) recordStoreError(this.instruments, told)
    return told
  }

  async #query(pool: pg.Pool, statement: Statement, values: readonly unknown[]): Promise<Row[]> {
    this.statements++
    return (await pool.query({ ...this.schema.bind(statement), values: values as unknown[] })).rows
  }

  async #transact<T>(pool: pg.Pool, begin: string, work: (runner: Runner) => Promise<T>): Promise<T> {
    const client = await pool.connect()
    let broken: Error | undefined
    // The pool listens only to idle connections: an error in a transaction would end the process.
    const onError = (error: Error) => {
      broken = error
    }
    client.on("error", onError)
    const run = async (query: pg.QueryConfig): Promise<Row[]> => {
      this.statements++
      return (await client.query(query)).rows
    }
    try {
      await run({ text: begin })
      const result = await work({
        run: (statement, values) => run({ ...this.schema.bind(statement), values: [...values] }),
      })
      await run({ text: "COMMIT" })
      return result
    } catch (error) {
      if (isConnectionTrouble(error) || isStalePlan(error)) broken = error as Error
      else await run({ text: "ROLLBACK" }).catch((cause) => (broken = cause))
      throw error
    } finally {
      client.off("error", onError)
      client.release(broken)
    }
  }
}

function closedError(): PosthornError {
  return new PosthornError("closed", "this Posthorn is closed")
}
