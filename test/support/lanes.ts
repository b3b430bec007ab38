/** A database with nothing but lanes in it, and schedules on it as different processes would open them. */
import { onTestFinished } from "vitest"
import { EventLog } from "../../src/observe/event-log.ts"
import { EventStream } from "../../src/observe/event-stream.ts"
import type { Instruments } from "../../src/observe/instruments.ts"
import type { Logger } from "../../src/observe/log.ts"
import { PostgresSchedule, type PostgresScheduleOptions } from "../../src/schedule/postgres/postgres.ts"
import type { Schedule } from "../../src/schedule/schedule.ts"
import { Database } from "../../src/store/postgres/connection.ts"
import { migrate } from "../../src/store/postgres/migrate.ts"
import { PgSchema } from "../../src/store/postgres/pg-schema.ts"
import type { Row } from "../../src/store/rows.ts"
import type { LaneClaim, LaneWake } from "../../src/store/store.ts"
import { FaultProxy } from "./fault-proxy.ts"
import { LogLines } from "./log-lines.ts"
import { migratedDatabase } from "./migrated-database.ts"
import { Recorder } from "./recorder.ts"

export type OpenSchedule = (
  options: PostgresScheduleOptions & { logger: Logger },
) => Promise<PostgresSchedule>

const straight: OpenSchedule = async (options) => new PostgresSchedule(options)

export class LaneWorld {
  readonly url: string
  readonly database: Database
  readonly #open: OpenSchedule
  /** Lanes that the store would find waiting. */
  waiting: LaneWake[] = []
  /** Log lines of the workers. */
  readonly log = new LogLines()
  /** Their measurements. */
  readonly instruments = new Recorder()

  private constructor(url: string, open: OpenSchedule) {
    this.url = url
    this.database = connectTo(url)
    this.#open = open
  }

  static async create(open: OpenSchedule = straight, url?: string): Promise<LaneWorld> {
    const world = new LaneWorld(url ?? (await migratedDatabase()), open)
    await migrate(world.database)
    return world
  }

  /** As a send does it: written down in the database first, and then hinted at, if anybody is there to be told. */
  async wake(lanes: readonly LaneWake[], ...told: Schedule[]): Promise<void> {
    const columns = [
      lanes.map(({ endpointId }) => endpointId),
      lanes.map(({ appId }) => appId),
      lanes.map(({ dueAt }) => dueAt),
      lanes.map(({ transport }) => transport),
    ]
    await this.database.run(WAKE, columns)
    for (const schedule of told) schedule.wake(lanes)
  }

  /** As the store does it: a change of the endpoint wakes its lane. */
  async changeUrl(endpointId: string, url: string, ...told: Schedule[]): Promise<void> {
    await this.database.run(CHANGE_URL, [endpointId, url])
    for (const schedule of told) schedule.wake([{ endpointId, appId: "app", dueAt: 0 }])
  }

  async sql(text: string, ...values: unknown[]): Promise<Row[]> {
    return await this.database.runCalmly({ name: "", text }, values)
  }

  /** A worker as in a process of its own. */
  async worker({ url = this.url, leaseMs, name = "test" }: WorkerInput = {}): Promise<Worker> {
    const database = connectTo(url, this.instruments)
    const store = {
      scanLanes: async (after: string | null, limit: number) =>
        this.waiting.filter(({ endpointId }) => endpointId > (after ?? "")).slice(0, limit),
    }
    const { logger } = this.log
    const events = new EventStream(logger, [new EventLog(logger)])
    const parts = { database, store, random: Math.random, name, leaseMs, logger, events }
    const schedule = await this.#open(parts)
    schedule.serve({ transports: ["http"], endpoints: [] })
    const worker = new Worker(schedule, database)
    onTestFinished(() => schedule.stop())
    await schedule.start({ due: () => worker.onDue(), lost: () => worker.onLost() })
    return worker
  }
}

interface WorkerInput {
  readonly url?: string
  readonly leaseMs?: number
  readonly name?: string
}

export class Worker {
  readonly schedule: PostgresSchedule
  readonly database: Database
  onDue: () => void = () => {}
  onLost: () => void = () => {}

  constructor(schedule: PostgresSchedule, database: Database) {
    this.schedule = schedule
    this.database = database
  }

  /** Claims whenever the schedule says that something may be due, until enough has come. */
  claimed(count: number, now: number): Promise<LaneClaim[]> {
    const claims: LaneClaim[] = []
    return new Promise((resolve) => {
      this.onDue = () =>
        void this.schedule.claim(count - claims.length, now).then(
          (more) => {
            claims.push(...more)
            if (claims.length < count) return
            this.onDue = () => {}
            resolve(claims)
          },
          () => {},
        )
      this.onDue()
    })
  }

  due(): Promise<void> {
    return new Promise((resolve) => {
      this.onDue = resolve
    })
  }

  lost(): Promise<void> {
    return new Promise((resolve) => {
      this.onLost = resolve
    })
  }
}

/** A server, by way of a proxy that does to it what a bad network does. */
export async function proxied(url: string): Promise<{ proxy: FaultProxy; url: string }> {
  const { hostname, port } = new URL(url)
  const proxy = await FaultProxy.start({ host: hostname, port: Number(port) })
  onTestFinished(() => proxy.close())
  return { proxy, url: proxy.through(url) }
}

function connectTo(url: string, instruments?: Instruments): Database {
  const database = new Database(url, "posthorn test", new PgSchema(), instruments)
  onTestFinished(() => database.close())
  return database
}

const CHANGE_URL = {
  name: "",
  text: `
    WITH woken AS (INSERT INTO lane_wakes (lane_id, due_at) VALUES ($1, 0))
    INSERT INTO endpoints (id, url, org_id, app_id, description, headers, metadata, ordered, disabled, paused, secrets, version, created_at,
      updated_at)
    VALUES ($1, $2, 'org', 'app', '', '', '', false, false, false, '', 1, 0, 0)
    ON CONFLICT (id) DO UPDATE SET url = excluded.url`,
}
const WAKE = {
  name: "",
  text: `
    WITH w AS (SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[]) AS w(id, app_id, due_at, transport)),
         made AS (INSERT INTO lanes (id, app_id, transport) SELECT DISTINCT id, app_id, transport FROM w ON CONFLICT DO NOTHING)
    INSERT INTO lane_wakes (lane_id, due_at) SELECT id, due_at FROM w`,
}
