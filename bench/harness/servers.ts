/** The database servers, started when a part first asks and shared by those that follow. */
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

  /** `logMegabytes`: how much of PostgreSQL's log is written before anything is measured. */
  constructor(logMegabytes: number) {
    this.#logMegabytes = logMegabytes
  }

  /** An empty database on a PostgreSQL as in production: on the disk, and synced. */
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

  /**
   * One that has been at work for a while: it writes its log into files that it has used before. A new one fills every file with
   * zeros first, which took a tenth of its processor time, whoever wrote.
   */
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

  /** A Redis that keeps nothing, which is all that Posthorn asks of one. */
  redis(): Promise<string> {
    return this.#redis([])
  }

  /** A Redis that writes everything down and syncs it every second, on the disk. */
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

  /** The last first: a server before its folder. */
  async close(): Promise<void> {
    for (const close of this.#closings.reverse()) await close()
  }
}
