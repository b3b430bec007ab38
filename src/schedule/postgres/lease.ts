/**
 * A worker's lease: one row that it renews while it lives. When it stops renewing, other workers take over its lanes. The lease runs out
 * by the database's clock; the worker only measures the time since it last renewed.
 */
import { setTimeout as pause } from "node:timers/promises"
import type { Random } from "../../core/backoff.ts"
import type { Database } from "../../store/postgres/connection.ts"
import type { Statement } from "../../store/postgres/statement.ts"

const RENEW: Statement = {
  name: "workers.renew",
  text: "SELECT * FROM posthorn_renew($1, $2, $3 * interval '1 millisecond')",
}
// Dead workers are locked first: of two workers that reap at once only one frees the lanes and reports them. The subquery's aggregate is
// complete before the function runs. Lanes are counted by the index lanes_owned.
const REAP: Statement = {
  name: "workers.reap",
  text: `
WITH dead AS MATERIALIZED (
  SELECT id, name, lease_until > '-infinity' AS is_first FROM workers
   WHERE lease_until < clock_timestamp() FOR NO KEY UPDATE SKIP LOCKED
)
SELECT posthorn_reap() AS all, found.dead
  FROM (
    SELECT coalesce(json_agg(json_build_object('worker', name, 'workerId', id, 'lanes', lanes)), '[]') AS dead
      FROM dead, LATERAL (SELECT count(*) AS lanes FROM lanes WHERE owner = dead.id AND owner <> 0) AS held
     WHERE is_first OR lanes > 0
  ) AS found`,
}
const END: Statement = { name: "workers.end", text: "SELECT posthorn_end($1) AS all" }

const NOBODY = 0
/** Lanes that are locked when their worker ends are mostly free a moment later; the others take over the rest. */
const END_AGAIN_MS = [10, 30, 100, 300]

export interface DeadWorker {
  readonly worker: string
  readonly workerId: number
  readonly lanes: number
}

export interface LeaseOptions {
  readonly database: Database
  readonly random: Random
  readonly name: string
  readonly leaseMs: number
  /** The lease ran out and other workers have taken over; there is a new lease. */
  readonly lost: () => void
  /** Lanes of these workers were freed. */
  readonly reaped: (dead: readonly DeadWorker[]) => void
}

export class Lease {
  readonly #options: LeaseOptions
  #worker = NOBODY
  #renewedAt = Number.NEGATIVE_INFINITY
  #mayReapAt = 0
  #others = 0
  #timer: NodeJS.Timeout | null = null
  #renewing: Promise<boolean> | null = null
  #ended = false

  constructor(options: LeaseOptions) {
    this.#options = options
  }

  /** The worker's id: a new one after each loss. */
  get worker(): number {
    return this.#worker
  }

  /** How many other workers there were at the last renewal. */
  get others(): number {
    return this.#others
  }

  /** An eighth of the lease is left for requests that start between this check and the takeover. */
  get holds(): boolean {
    return performance.now() - this.#renewedAt < this.#options.leaseMs * (7 / 8)
  }

  async start(): Promise<void> {
    await this.#renew()
    this.#arm(this.#untilNext())
  }

  /** Renews before the timer would. A renewal in flight counts. */
  renewNow(): void {
    void this.#renewAndArm()
  }

  async end(): Promise<void> {
    this.abandon()
    await this.#renewing?.catch(() => {})
    // Free lanes have the owner 0 too, and must keep their tokens.
    if (this.#worker === NOBODY) return
    for (const againMs of END_AGAIN_MS) {
      const [row] = await this.#options.database.run(END, [this.#worker])
      if (row!.all) return
      await pause(againMs)
    }
  }

  abandon(): void {
    this.#ended = true
    if (this.#timer !== null) clearTimeout(this.#timer)
  }

  #arm(delayMs: number): void {
    if (this.#ended) return
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.#renewAndArm(), delayMs * (0.9 + 0.2 * this.#options.random()))
  }

  async #renewAndArm(): Promise<void> {
    if (this.#renewing !== null || this.#ended) return
    this.#renewing = this.#renew()
    const all = await this.#renewing.catch(() => false)
    this.#renewing = null
    this.#arm(all ? this.#untilNext() : this.#options.leaseMs / 16)
  }

  /** Counted from when the last renewal was sent, since the lease may run from then. */
  #untilNext(): number {
    return Math.max(0, this.#renewedAt + this.#options.leaseMs * 0.3 - performance.now())
  }

  /** False: lanes of dead workers are left to free. */
  async #renew(): Promise<boolean> {
    const { database, name, leaseMs, lost, reaped } = this.#options
    const before = this.#worker
    const sentAt = performance.now()
    const [row] = await database.run(RENEW, [before, name, leaseMs])
    database.instruments.leaseRenewed(performance.now() - sentAt)
    this.#worker = row!.worker as number
    this.#renewedAt = sentAt
    this.#others = row!.others as number
    if (before !== NOBODY && before !== this.#worker) lost()
    // After an outage of the database all leases have run out: every worker gets the time to renew.
    if (row!.lapsed) this.#mayReapAt = sentAt + leaseMs
    if (!row!.reapable || sentAt < this.#mayReapAt) return true
    const [freed] = await database.run(REAP, [])
    reaped(freed!.dead as DeadWorker[])
    return freed!.all as boolean
  }
}
