/** A private PostgreSQL, for a whole run of the tests or for one test that breaks it. */
import { once } from "node:events"
import { text } from "node:stream/consumers"
import { Client } from "pg"
import { accountForPostgres } from "./account.ts"
import { Home } from "./home.ts"
import { freePort } from "./port.ts"
import { type PostgresPrograms, requirePostgres } from "./programs.ts"
import { ServerProcess } from "./server-process.ts"

export interface PostgresOptions {
  /** Settings as in postgresql.conf, on top of those below. */
  readonly settings?: Readonly<Record<string, string | number>>
  /** Keeps the data on a disk of this size, in memory. An empty server takes 40 MB. */
  readonly diskBytes?: number
  /** As in production: on the disk, and synced. */
  readonly durable?: boolean
}

/** `pg_ctl`'s modes, and the crash. */
export type StopMode = "fast" | "immediate" | "kill"

const SIGNALS = { fast: "SIGINT", immediate: "SIGQUIT", kill: "SIGKILL" } as const

/** Settings that only protect against a crash of the whole machine are off. */
const SETTINGS = {
  fsync: "off",
  full_page_writes: "off",
  listen_addresses: "127.0.0.1",
  max_connections: 300,
}

export class PostgresServer {
  readonly url: string
  readonly dataDirectory: string
  readonly #process: ServerProcess

  private constructor(url: string, dataDirectory: string, process: ServerProcess) {
    this.url = url
    this.dataDirectory = dataDirectory
    this.#process = process
  }

  static async start(options: PostgresOptions = {}): Promise<PostgresServer> {
    const { settings = {}, diskBytes, durable = false } = options
    const programs = requirePostgres()
    const home = await Home.create(accountForPostgres(), diskBytes, !durable)
    await initialise(home, programs)
    const port = await freePort()
    const chosen = {
      ...SETTINGS,
      ...(durable ? { fsync: "on", full_page_writes: "on" } : {}),
      port,
      unix_socket_directories: home.folder,
      ...(programs.hasStatementStatistics ? { shared_preload_libraries: "pg_stat_statements" } : {}),
      ...settings,
    }
    const flags = Object.entries(chosen).flatMap(([name, value]) => ["-c", `${name}=${value}`])
    const url = (host: string) => `postgres://posthorn@${host}:${port}/postgres`
    const process = new ServerProcess(home, programs.postgres, ["-D", home.dataFolder, ...flags], () =>
      checkPostgres(url(encodeURIComponent(home.folder))),
    )
    await process.start()
    return new PostgresServer(url("127.0.0.1"), home.seen(home.dataFolder), process)
  }

  async stop(mode: StopMode): Promise<void> {
    await this.#process.stop(SIGNALS[mode])
  }

  async start(): Promise<void> {
    await this.#process.start()
  }

  async restart(mode: StopMode): Promise<void> {
    await this.stop(mode)
    await this.start()
  }

  async close(): Promise<void> {
    await this.#process.close()
  }
}

/** Rejects unless a server answers at this URL. */
export async function checkPostgres(url: string): Promise<void> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 5000 })
  client.on("error", () => {})
  try {
    await client.connect()
    await client.query("SELECT 1")
  } finally {
    await client.end()
  }
}

async function initialise(home: Home, { initdb, majorVersion }: PostgresPrograms): Promise<void> {
  const flags = ["--no-sync", "--auth=trust", "--username=posthorn", "--encoding=UTF8", "--locale=C"]
  // Ordered as people order words, as most installed servers do: code that relies on the order of bytes is found out.
  if (majorVersion >= 15) flags.push("--locale-provider=icu", "--icu-locale=en")
  const child = home.spawn(initdb, [...flags, "-D", home.dataFolder], { stdio: ["ignore", "ignore", "pipe"] })
  const [problem, [code]] = await Promise.all([text(child.stderr!), once(child, "exit")])
  if (code !== 0) throw new Error(`${initdb} failed:\n${problem}`)
}
