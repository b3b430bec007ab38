/** The faults in the tests with several workers, and their times, so that every repeat has a cause. */

import { setTimeout as pass } from "node:timers/promises"
import { Redis } from "ioredis"
import type { RedisServer } from "../support/servers/redis-server.ts"
import type { WorkerProcess } from "../support/workers.ts"
import type { Servers, Site } from "./site.ts"

export interface Fault {
  readonly kind: "killed" | "frozen" | "postgres restarted" | "redis flushed"
  readonly from: number
  readonly until: number
  /** The worker that it hit; null: none in particular. */
  readonly pid: number | null
}

export interface CrewOptions {
  readonly count: number
  readonly leaseMs: number
  readonly maxInFlight: number
}

const TRIES = 5

/** Workers that come and go, and the faults that they and their servers had. */
export class Crew {
  readonly faults: Fault[] = []
  /** All that there ever were. */
  readonly workers: WorkerProcess[] = []
  readonly #site: Site
  readonly #servers: Servers
  readonly #options: CrewOptions
  readonly #random: () => number
  readonly #frozen = new Set<WorkerProcess>()

  private constructor(site: Site, servers: Servers, options: CrewOptions, random: () => number) {
    this.#site = site
    this.#servers = servers
    this.#options = options
    this.#random = random
  }

  static async start(
    site: Site,
    servers: Servers,
    options: CrewOptions,
    random: () => number,
  ): Promise<Crew> {
    const crew = new Crew(site, servers, options, random)
    await Promise.all(Array.from({ length: options.count }, () => crew.#hire()))
    return crew
  }

  /** A worker that starts while the database is away ends with an error that says so, and is started again, as by a supervisor. */
  async #hire(): Promise<void> {
    const { leaseMs, maxInFlight } = this.#options
    const retry = {
      delays: [0.02, 0.05, 0.1],
      maxAttempts: 20,
      breaker: { open: 1, maxOpen: 1, ramp: 1000 },
      budget: { perMinute: 100_000 },
    }
    for (let left = TRIES; ; left--) {
      try {
        this.workers.push(await this.#site.worker({ leaseMs, maxInFlight, retry, tells: true }))
        return
      } catch (error) {
        if (left === 1 || !/store_unavailable|Connection terminated/.test((error as Error).message))
          throw error
      }
    }
  }

  /** Null when only one is at work: with none at all nothing would happen. */
  #pick(): WorkerProcess | null {
    const up = this.workers.filter((worker) => !worker.hasEnded && !this.#frozen.has(worker))
    return up.length < 2 ? null : up[Math.floor(this.#random() * up.length)]!
  }

  async #during(kind: Fault["kind"], worker: WorkerProcess | null, happens: () => Promise<unknown>) {
    const from = performance.now()
    await happens()
    this.faults.push({ kind, from, until: performance.now(), pid: worker?.pid ?? null })
  }

  /** Another one takes its place. */
  async kill(): Promise<void> {
    const worker = this.#pick()
    if (worker === null) return
    await this.#during("killed", worker, () => worker.kill())
    await this.#hire()
  }

  /** For longer than its lease: when it wakes up, others have its lanes. */
  async freeze(): Promise<void> {
    const worker = this.#pick()
    if (worker === null) return
    this.#frozen.add(worker)
    await this.#during("frozen", worker, async () => {
      worker.freeze()
      await pass(this.#options.leaseMs * (1.5 + this.#random()))
      worker.thaw()
    })
    this.#frozen.delete(worker)
  }

  async restartPostgres(): Promise<void> {
    await this.#during("postgres restarted", null, () => this.#servers.postgres.restart("immediate"))
  }

  async flushRedis(): Promise<void> {
    const { redis } = this.#servers
    if (redis === null) return
    await this.#during("redis flushed", null, () => flush(redis))
  }
}

export async function flush({ url }: RedisServer): Promise<void> {
  const redis = new Redis(url)
  await redis.flushall()
  await redis.quit()
}
