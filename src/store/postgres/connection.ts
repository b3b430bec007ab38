/**
 * Connections to PostgreSQL. A server that cannot be reached is noticed once: from then on every call is refused at once, instead of
 * each finding out by itself, until the server can be used again.
 */
import type { Duplex } from "node:stream"
import pg from "pg"
import { PosthornError } from "../../core/errors.ts"
import {
  isConnectionTrouble,
  isPoolExhausted,
  isTimeout,
  mayTryAgain,
  readOnlyError,
  toPosthornError,
} from "./errors.ts"
import { Outage } from "./outage.ts"
import type { Statement } from "./statement.ts"

/** The longest that a statement, or the way to the server, may take before it counts as lost. */
const TIMEOUT_MS = 4500
/** For what reads or removes much. */
const LONG_TIMEOUT_MS = 60_000
/** A connection that is silent for so long is asked whether its other end is still there. */
const KEEP_ALIVE_MS = 10_000
/** How long a server may take to say goodbye; one that is gone never does. */
const GOODBYE_MS = 1000
const TRIES = 5

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
  readonly #Client: typeof pg.Client
  readonly #config: pg.ClientConfig
  readonly #sockets = new Set<Duplex>()
  readonly #outage = new Outage({ probe: () => this.#probe(), onGone: () => this.#cut() })
  #closed = false
  /** How many statements were sent; for tests of what things cost. */
  statements = 0

  constructor(url: string, applicationName: string) {
    const sockets = this.#sockets
    this.#Client = class extends pg.Client {
      constructor(config?: string | pg.ClientConfig) {
        // Not the pool's, which is also how long one may wait for others to give a connection back.
        super({ ...(config as pg.ClientConfig), connectionTimeoutMillis: TIMEOUT_MS })
        this.once("connect", () => {
          const socket = socketOf(this)
          sockets.add(socket)
          socket.once("close", () => sockets.delete(socket))
        })
      }
    }
    this.#config = {
      connectionString: url,
      application_name: applicationName,
      keepAlive: true,
      keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
      types,
    }
    this.#hot = this.#pool(6, TIMEOUT_MS)
    this.#calm = this.#pool(4, LONG_TIMEOUT_MS)
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
    const client = new this.#Client({ ...this.#config, query_timeout: timeoutMs })
    client.on("error", onLost)
    client.on("end", () => onLost(new Error("the connection ended")))
    await client.connect()
    return client
  }

  /** Called whenever the server can be used again; the function that comes back ends it. */
  onUp(listener: () => void): () => void {
    return this.#outage.onUp(listener)
  }

  /** Statements under way are waited for, as long as an answer may take. */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    const ended = Promise.all([this.#hot.end(), this.#calm.end()])
    if (this.#outage.trouble !== null) this.#cut()
    this.#outage.close()
    if (!(await isDoneWithin(TIMEOUT_MS, ended))) this.#cut()
    // Idle ones wait for the server's goodbye, and keep the process alive as long.
    else setTimeout(() => this.#cut(), GOODBYE_MS).unref()
  }

  /** For tests: the connections end as in a crash, whatever is under way. */
  async kill(): Promise<void> {
    const closed = this.close()
    this.#cut()
    await closed
  }

  #pool(max: number, timeoutMs: number): pg.Pool {
    const pool = new pg.Pool({
      ...this.#config,
      Client: this.#Client,
      max,
      connectionTimeoutMillis: timeoutMs,
      query_timeout: timeoutMs,
      // A million waiting rows make a fetch look dear enough to be compiled: 300 ms each time, for what takes two.
      onConnect: async (client) => void (await client.query("SET jit = off")),
    })
    // An idle connection that broke: the pool drops it. Without a listener it would end the process.
    pool.on("error", (error) => this.#outage.begin(error))
    return pool
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

  #cut(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  async #guarded<T>(work: () => Promise<T>, calm = false): Promise<T> {
    if (this.#closed) throw new PosthornError("closed", "this Posthorn is closed")
    if (this.#outage.trouble !== null) throw toPosthornError(this.#outage.trouble)
    for (let left = TRIES; ; left--) {
      try {
        return await work()
      } catch (error) {
        if (mayTryAgain(error) && left > 1) continue
        // One that may take long and took too long says nothing about the server, nor does one that others kept waiting.
        const isBusy = isPoolExhausted(error) || (calm && isTimeout(error))
        if (isConnectionTrouble(error) && !isBusy) this.#outage.begin(error)
        throw toPosthornError(error)
      }
    }
  }

  async #query(pool: pg.Pool, statement: Statement, values: readonly unknown[]): Promise<Row[]> {
    this.statements++
    return (await pool.query({ ...statement, values: values as unknown[] })).rows
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
}

/** Ends a connection, also one whose server is gone and will never say goodbye. */
export async function disconnect(client: pg.Client): Promise<void> {
  if (!(await isDoneWithin(GOODBYE_MS, client.end()))) socketOf(client).destroy()
}

function socketOf(client: pg.ClientBase): Duplex {
  return (client as unknown as { connection: { stream: Duplex } }).connection.stream
}

async function isDoneWithin(ms: number, work: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, ms, false)
  })
  const isDone = await Promise.race([work.then(() => true), late])
  clearTimeout(timer)
  return isDone
}
