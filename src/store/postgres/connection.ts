/**
 * Connections to PostgreSQL. A server that cannot be reached is noticed once: from then on every call is refused at once, instead of
 * each finding out by itself, until the server can be used again.
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

/** For what reads or removes much. */
const LONG_TIMEOUT_MS = 60_000
const TRIES = 5
/** Two statements that accept, three that fetch and settle, a turn, a lease and a note may be under way at once. */
export const HOT_CONNECTIONS = 8

/** A million waiting rows make a fetch look dear enough to be compiled: 300 ms each time, for what takes two. */
const NO_JIT = "SET jit = off"
/**
 * A plan is kept as long as its connection, and may have been made while the tables were nearly empty. So it must not depend on how much
 * the planner believes to be in them: see `lookup`.
 */
export const HOT_SETTINGS = `${NO_JIT}; SET enable_seqscan = off`

/**
 * In one round trip. Who froze or lost the network in a transaction keeps its locks from everybody for so long and no longer; and
 * whoever waits for a lock gives up while its statement still counts as answered.
 */
const BEGIN = `
  BEGIN;
  SET LOCAL idle_in_transaction_session_timeout = '10s';
  SET LOCAL lock_timeout = '3s'`
/** Between two of its statements may be others on other connections that each take long. */
const BEGIN_CALMLY = `BEGIN; SET LOCAL idle_in_transaction_session_timeout = ${2 * LONG_TIMEOUT_MS}`

/** A server that is up and takes no writes, such as a standby, is of no more use than one that is down. */
const PROBE = "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on' AS refuses"

/** What runs statements: the pool, or a transaction on one of its connections. */
export interface Runner {
  run(statement: Statement, values: readonly unknown[]): Promise<Row[]>
}

export class Database implements Runner {
  readonly schema: PgSchema
  readonly instruments: Instruments
  readonly #clients: Clients
  /** What deliveries wait for: a few connections that no list or count can take. */
  readonly #hot: pg.Pool
  readonly #calm: pg.Pool
  readonly #outage: Outage
  /** Calls that are not done, and how to end them. */
  readonly #underWay = new Map<Promise<unknown>, (error: PosthornError) => void>()
  #closed = false
  /** How many statements were sent; for tests of what things cost. */
  statements = 0
  /** The disk was full when something was last written; a small write says nothing of large ones then. */
  wasFull = false

  constructor(url: string, applicationName: string, schema = new PgSchema(), instruments = NO_INSTRUMENTS) {
    this.schema = schema
    this.instruments = instruments
    this.#clients = new Clients(url, applicationName)
    this.#hot = this.#clients.pool(HOT_CONNECTIONS, TIMEOUT_MS, HOT_SETTINGS)
    this.#calm = this.#clients.pool(4, LONG_TIMEOUT_MS, NO_JIT)
    this.#outage = new Outage({ probe: () => this.#probe(), onGone: () => this.#clients.cut() })
    // An idle connection that broke: the pool drops it. Without a listener it would end the process.
    for (const pool of [this.#hot, this.#calm]) pool.on("error", (error) => this.#outage.begin(error))
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
    return this.#guarded(() => this.#transact(this.#hot, BEGIN, work))
  }

  /** Several statements that may take long. */
  transactionCalmly<T>(work: (runner: Runner) => Promise<T>): Promise<T> {
    return this.#guarded(() => this.#transact(this.#calm, BEGIN_CALMLY, work), true)
  }

  /** A connection of its own that the caller ends with `disconnect`. Unless told, its statements may take as long as they like. */
  async connect(onLost: (error: unknown) => void, timeoutMs = 0): Promise<pg.Client> {
    const client = this.#clients.single(timeoutMs)
    client.on("error", onLost)
    client.on("end", () => onLost(new Error("the connection ended")))
    await client.connect()
    return client
  }

  /** Called whenever the server can be used again; the function that comes back ends it. */
  onUp(listener: () => void): () => void {
    return this.#outage.onUp(listener)
  }

  /** Calls under way are waited for, as long as an answer may take. */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    if (this.#outage.trouble !== null) this.#clients.cut()
    if (!(await isDoneWithin(TIMEOUT_MS, Promise.allSettled(this.#underWay.keys())))) this.#clients.cut()
    await this.#end()
  }

  /** For tests: the connections end as in a crash, whatever is under way. */
  async kill(): Promise<void> {
    this.#closed = true
    this.#clients.cut()
    await this.#end()
  }

  async #end(): Promise<void> {
    this.#outage.close()
    await isDoneWithin(GOODBYE_MS, Promise.all([this.#hot.end(), this.#calm.end()]))
    // A pool that ended forgets who still waited for a connection.
    for (const giveUp of this.#underWay.values()) giveUp(closedError())
    // Idle connections wait for the server's goodbye, and keep the process alive as long.
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
        // One that may take long and took too long says nothing about the server, nor does one that others kept waiting.
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
