/**
 * The server's API on a local store, in this process and without a port, beside a process that delivers. A user who can open the
 * store has all rights: the client authenticates with a random token that only this process knows.
 */
import { randomBytes } from "node:crypto"
import { existsSync } from "node:fs"
import { json } from "node:stream/consumers"
import { callerFromClaims, unauthenticated } from "../api/caller.ts"
import type { Api } from "../api/context.ts"
import { createServer } from "../api/server.ts"
import type { Settings } from "../config/table.ts"
import { type Config, libraryOptions, settingsInForce } from "../config.ts"
import { PosthornError } from "../core/errors.ts"
import { parseExactly } from "../core/exact-json.ts"
import { withoutPassword } from "../core/location.ts"
import { DEFAULT_ORG } from "../core/org.ts"
import { TaskRunner } from "../engine/tasks.ts"
import { createLogger, type Logger } from "../observe/log.ts"
import { openPosthorn, type Posthorn } from "../posthorn.ts"
import type { ApiResponse, Call, Client, ConnectionFlags, StreamResponse } from "./client.ts"
import { queryText } from "./client.ts"
import { configFor, refused } from "./settings.ts"

/** When a store does not exist: an error, a new store, or an empty one in memory. */
export type AbsentStore = "refuse" | "create" | "empty"

export async function openLocalClient(flags: ConnectionFlags, absentStore: AbsentStore): Promise<Client> {
  const config = configFor({ ...flags } as { [name: string]: string })
  const values = await withStore(config, absentStore)
  // Expected errors are printed as a sentence; the log has the others.
  const logger = createLogger(config.sources.logLevel === null ? "error" : config.values.logLevel)
  const onFatal = () => process.exit(1)
  let posthorn: Posthorn
  try {
    // The processes that serve or deliver apply the alerts of the file.
    const { alerts: _applied, ...options } = libraryOptions({ ...config, values })
    posthorn = await openPosthorn({ ...options, deliver: false, logger, onFatal })
  } catch (error) {
    throw refused(error, config)
  }
  const token = Array.from({ length: 3 }, () => randomBytes(16).toString("hex")).join(".")
  const app = createServer(posthorn, {
    ...config.values,
    // Where a server on this machine would be.
    publicUrl: config.values.publicUrl ?? `http://localhost:${config.values.port}`,
    logger,
    inForce: settingsInForce(config),
    readToken: async (given) => {
      if (given !== token) throw unauthenticated("Invalid token")
      return { ...callerFromClaims({ sub: DEFAULT_ORG }), via: "local", name: "command line" }
    },
  })
  return new LocalClient(posthorn, app, token, logger)
}

/** Only commands that write create a store. */
async function withStore({ values, sources }: Config, absentStore: AbsentStore): Promise<Settings> {
  const { store, schema } = values
  if (absentStore === "create" || (await storeExists(store, schema))) return values
  if (absentStore === "empty") return { ...values, store: "sqlite::memory:", schedule: null, schema: null }
  const from = sources.store === null ? "" : ` (${sources.store})`
  throw new PosthornError(
    "store_unavailable",
    `there is no store at ${withoutPassword(store).replace(/^sqlite:/, "")}${from}: start posthorn serve, or name another with --store or a server with --server`,
  )
}

async function storeExists(store: string, schema: string | null): Promise<boolean> {
  const [, file] = /^sqlite:(.+)$/s.exec(store) ?? []
  if (file !== undefined) return file === ":memory:" || existsSync(file)
  if (!/^postgres(ql)?:/.test(store)) return true
  const { isStore } = await import("../store/postgres/locate.ts")
  return isStore(store, schema)
}

class LocalClient implements Client {
  readonly #posthorn: Posthorn
  readonly #app: Api
  readonly #token: string
  readonly #logger: Logger
  #tasks: TaskRunner | null = null

  constructor(posthorn: Posthorn, app: Api, token: string, logger: Logger) {
    this.#posthorn = posthorn
    this.#app = app
    this.#token = token
    this.#logger = logger
  }

  async call(method: string, path: string, { query, body, headers = {} }: Call): Promise<ApiResponse> {
    const response = await this.#app.inject({
      method: method as "GET",
      url: `/api/v1${path}${queryText(query)}`,
      headers: {
        authorization: `Bearer ${this.#token}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      ...(body === undefined ? {} : { payload: JSON.stringify(body) }),
    })
    return { status: response.statusCode, body: response.body === "" ? null : parseExactly(response.body) }
  }

  async stream(path: string, { query, headers = {} }: Call, signal: AbortSignal): Promise<StreamResponse> {
    const response = await this.#app.inject({
      method: "GET",
      url: `/api/v1${path}${queryText(query)}`,
      headers: { authorization: `Bearer ${this.#token}`, ...headers },
      payloadAsStream: true,
      signal,
    })
    const { statusCode: status } = response
    const chunks = response.stream()
    return { status, body: status < 400 ? null : await json(chunks), chunks }
  }

  /** A process that delivers may run the same task; a step that both take counts once. */
  runTasks(): void {
    if (this.#tasks !== null) return
    const { context } = this.#posthorn
    this.#tasks = new TaskRunner({
      ...context,
      random: Math.random,
      logger: this.#logger,
      wake: (lanes) => context.wake(lanes),
    })
    this.#tasks.start()
  }

  async close(): Promise<void> {
    await this.#tasks?.stop()
    await this.#app.close()
  }
}
