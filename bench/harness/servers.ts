/** The database servers: started at first use, and shared by all parts. */
import { rmSync } from "node:fs"
import { Redis } from "ioredis"
import { Client } from "pg"
import { PostgresServer } from "../../test/support/servers/postgres-server.ts"
import { RedisServer } from "../../test/support/servers/redis-server.ts"
import { temporaryFolder } from "./library.ts"
import { NotMeasured } from "./void.ts"

export class Servers {
  readonly versions: { postgres: string | null; redis: string | null } = { postgres: null, redis: null }
  readonly #logMegabytes: number
  readonly #closings: (() => Promise<void>)[] = []
  #postgres: Promise<PostgresServer> | null = null

  /** `logMegabytes`: the size of PostgreSQL's log that is written before the first measurement. */
  constructor(logMegabytes: number) {
    this.#logMegabytes = logMegabytes
  }

  /** An empty database on a PostgreSQL with production settings: on the disk, and synced. */
  async database(name: string): Promise<string> {
    this.#postgres ??= this.#start(() => this.#startPostgres())
    const { url } = await this.#postgres
    const client = new Client(url)
    await client.connect()
    await client.query(`CREATE DATABASE ${name}`)
    const { rows } = await client.query("SHOW server_version")
    this.versions.postgres = rows[0].server_version
    await client.end()
    return url.replace(/[^/]*$/, name)
  }

  /** Warmed up, so that the log is written to recycled files. A new server fills each file with zeros: a tenth of its processor time. */
  async #startPostgres(): Promise<PostgresServer> {
    const server = await PostgresServer.start({ durable: true })
    const client = new Client(server.url)
    await client.connect()
    const megabyte = "pg_logical_emit_message(false, 'warm-up', repeat('-', 1024 * 1024))"
    await client.query(`SELECT count(${megabyte}) FROM generate_series(1, ${this.#logMegabytes})`)
    await client.query("CHECKPOINT")
    await client.end()
    return server
  }

  /** A Redis without persistence, which Posthorn does not need. */
  redis(): Promise<string> {
    return this.#redis([])
  }

  /** A Redis that writes to the disk and syncs every second. */
  keepingRedis(): Promise<string> {
    const folder = temporaryFolder()
    this.#closings.push(async () => rmSync(folder, { recursive: true, force: true }))
    return this.#redis(["--appendonly", "yes", "--appendfsync", "everysec", "--dir", folder])
  }

  async #redis(args: readonly string[]): Promise<string> {
    const { url } = await this.#start(() => RedisServer.start(args))
    const redis = new Redis(url)
    this.versions.redis = /redis_version:(\S+)/.exec(await redis.info("server"))![1]!
    redis.disconnect()
    return url
  }

  async #start<S extends { close(): Promise<void> }>(start: () => Promise<S>): Promise<S> {
    try {
      const server = await start()
      this.#closings.push(() => server.close())
      return server
    } catch (cause) {
      throw new NotMeasured((cause as Error).message, { cause })
    }
  }

  /** In reverse order: a server before its folder. */
  async close(): Promise<void> {
    for (const close of this.#closings.reverse()) await close()
  }
}
