/** Where many processes work together: servers, a receiver, endpoints, and a sender in the test's own process that does not deliver. */
import pg from "pg"
import { onTestFinished } from "vitest"
import type { PosthornOptions } from "../../src/options.ts"
import { openPosthorn, type Posthorn } from "../../src/posthorn.ts"
import type { EndpointInput } from "../../src/resources/endpoints.ts"
import { SEARCH_PATH } from "../support/ground.ts"
import { LOOPBACK } from "../support/harness.ts"
import { migratedDatabase } from "../support/migrated-database.ts"
import { Receiver } from "../support/receiver.ts"
import { ownPostgres } from "../support/servers/postgres.ts"
import type { PostgresServer } from "../support/servers/postgres-server.ts"
import { ownRedis } from "../support/servers/redis.ts"
import type { RedisServer } from "../support/servers/redis-server.ts"
import { type WorkerOptions, WorkerProcess } from "../support/workers.ts"

/** The URLs that every process of the test opens. */
export type Place = Pick<PosthornOptions, "store" | "schedule" | "schema">

/** A database of its own on the run's servers, with the schedule in PostgreSQL or in Redis. */
export const ON_SHARED_SERVERS: readonly (readonly [name: string, place: () => Promise<Place>])[] = [
  ["PostgreSQL alone", async () => ({ store: await migratedDatabase() })],
  [
    "PostgreSQL and Redis",
    async () => ({ store: await migratedDatabase(), schedule: process.env.POSTHORN_TEST_REDIS_URL! }),
  ],
]

export interface Servers {
  readonly postgres: PostgresServer
  readonly redis: RedisServer | null
  readonly place: Place
}

/** Servers that are the test's own, to break. */
export const ON_OWN_SERVERS: readonly (readonly [name: string, servers: () => Promise<Servers>])[] = [
  [
    "PostgreSQL alone",
    async () => {
      const postgres = await ownPostgres()
      return { postgres, redis: null, place: { store: postgres.url } }
    },
  ],
  [
    "PostgreSQL and Redis",
    async () => {
      const [postgres, redis] = await Promise.all([ownPostgres(), ownRedis()])
      return { postgres, redis, place: { store: postgres.url, schedule: redis.url } }
    },
  ],
]

export class Site {
  readonly place: Place
  readonly receiver: Receiver
  readonly sender: Posthorn

  private constructor(place: Place, receiver: Receiver, sender: Posthorn) {
    this.place = place
    this.receiver = receiver
    this.sender = sender
  }

  /** With an application "acme". */
  static async open(place: Place, options: Partial<PosthornOptions> = {}): Promise<Site> {
    const receiver = await Receiver.start()
    onTestFinished(() => receiver.close())
    const sender = await open({ ...place, deliver: false, ...options })
    await sender.applications.create({ uid: "acme", name: "Acme" })
    return new Site(place, receiver, sender)
  }

  /** At the path of its name, for messages of the type of its name. */
  async endpoint(uid: string, input: Partial<EndpointInput> = {}): Promise<string> {
    const url = this.receiver.url(`/${uid}`)
    return (await this.sender.endpoints.create("acme", { uid, url, eventTypes: [uid], ...input })).id
  }

  async send(uid: string, payload: unknown = {}): Promise<string> {
    return (await this.sender.send("acme", { eventType: uid, payload })).id
  }

  worker(options: Partial<WorkerOptions> = {}): Promise<WorkerProcess> {
    return WorkerProcess.start({ ...this.place, ...options })
  }

  /** A connection of the test's own. */
  client(): Promise<pg.Client> {
    return connect(this.place.store)
  }
}

export async function open(options: Partial<PosthornOptions> & Place): Promise<Posthorn> {
  const posthorn = await openPosthorn({
    logger: "silent",
    egress: LOOPBACK,
    closeTimeoutMs: 1000,
    ...options,
  })
  onTestFinished(() => posthorn.close())
  return posthorn
}

export async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, options: SEARCH_PATH })
  // Servers are restarted under it.
  client.on("error", () => {})
  await client.connect()
  onTestFinished(() => client.end().catch(() => {}))
  return client
}
