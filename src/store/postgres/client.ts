/** Opens and closes connections to PostgreSQL, single or in pools, with timeouts and keep-alive. */
import type { Duplex } from "node:stream"
import pg from "pg"

/** Timeout of a statement and of connecting. */
export const TIMEOUT_MS = 4500
/** TCP keep-alive after this silence. */
const KEEP_ALIVE_MS = 10_000
/** Timeout of closing a connection: a server that is gone never answers. */
export const GOODBYE_MS = 1000

const INT8 = 20

/** Whole milliseconds and row numbers fit into a JavaScript number. */
const types: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: "text" | "binary") =>
    oid === INT8 && format !== "binary"
      ? Number
      : pg.types.getTypeParser(oid, format as "text")) as typeof pg.types.getTypeParser,
}

/** The connections of one process to one server. */
export class Clients {
  readonly #config: pg.ClientConfig
  readonly #Client: typeof pg.Client
  readonly #sockets = new Set<Duplex>()

  constructor(url: string, applicationName: string) {
    this.#config = {
      connectionString: url,
      application_name: applicationName,
      keepAlive: true,
      keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
      types,
    }
    const track = (client: pg.Client) => this.#track(client)
    this.#Client = class extends pg.Client {
      constructor(config?: string | pg.ClientConfig) {
        // The pool's timeout also limits the wait for a free connection.
        super({ ...(config as pg.ClientConfig), connectionTimeoutMillis: TIMEOUT_MS })
        track(this)
      }
    }
  }

  /** 0: no timeout. */
  single(timeoutMs: number): pg.Client {
    return new this.#Client({ ...this.#config, query_timeout: timeoutMs })
  }

  /** Each new connection runs `settings`. */
  pool(max: number, timeoutMs: number, settings: string): pg.Pool {
    return new pg.Pool({
      ...this.#config,
      Client: this.#Client,
      max,
      connectionTimeoutMillis: timeoutMs,
      query_timeout: timeoutMs,
      onConnect: async (client) => void (await client.query(settings)),
    })
  }

  /** Closes all sockets, with statements in flight. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  #track(client: pg.Client): void {
    client.once("connect", () => {
      const socket = socketOf(client)
      this.#sockets.add(socket)
      socket.once("close", () => this.#sockets.delete(socket))
    })
  }
}

/** Closes a connection, also when the server is gone. */
export async function disconnect(client: pg.Client): Promise<void> {
  if (!(await isDoneWithin(GOODBYE_MS, client.end()))) socketOf(client).destroy()
}

function socketOf(client: pg.ClientBase): Duplex {
  return (client as unknown as { connection: { stream: Duplex } }).connection.stream
}

export async function isDoneWithin(ms: number, work: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, ms, false)
  })
  const isDone = await Promise.race([work.then(() => true), late])
  clearTimeout(timer)
  return isDone
}
