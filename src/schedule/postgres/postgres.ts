/**
 * The schedule that PostgreSQL keeps for any number of processes. A lane is a row; its owner holds its token. The SQL is in
 * `store/postgres/lane-functions.ts`, the life of a worker in `lease.ts`.
 */
import type { Random } from "../../core/backoff.ts"
import type { Moment } from "../../core/clock.ts"
import type { Logger } from "../../observe/log.ts"
import type { Database } from "../../store/postgres/connection.ts"
import type { LaneClaim, LaneWake, Store } from "../../store/store.ts"
import type { Schedule, ScheduleListener } from "../schedule.ts"
import { Bell } from "./bell.ts"
import { Lease } from "./lease.ts"
import type { Proposer } from "./proposer.ts"
import { Sweep } from "./sweep.ts"
import { type Turn, Turns } from "./turns.ts"

export interface PostgresScheduleOptions {
  readonly database: Database
  readonly store: Pick<Store, "scanLanes">
  readonly random: Random
  readonly logger: Logger
  /** For people: which worker is it. */
  readonly name: string
  readonly leaseMs?: number | undefined
  readonly proposer?: Proposer
}

/** Twelve seconds from the death of a worker to the takeover, at most: this, a renewal's interval, and the way there. */
const LEASE_MS = 8000
/** However much room a worker has, it takes no more in one turn: the others are to get theirs. */
const MOST_AT_ONCE = 200
/** Finds what no hint announced: a send in somebody's own transaction, a notification that was lost. */
const POLL_MS = 1500

const NEVER = Number.POSITIVE_INFINITY

export class PostgresSchedule implements Schedule {
  readonly #options: PostgresScheduleOptions
  readonly #lease: Lease
  readonly #turns: Turns
  readonly #sweep: Sweep
  #listener: ScheduleListener | null = null
  readonly #bell = new Bell(() => this.#listener?.due())
  #poll: NodeJS.Timeout | null = null
  #stopListening = () => {}
  /** The earliest that the last turn saw, and the earliest that was hinted at since. */
  #nextAt = NEVER
  #hintAt = NEVER
  #isWaiting = false
  #now = 0

  constructor(options: PostgresScheduleOptions) {
    const { database, store, random, logger, name, leaseMs = LEASE_MS, proposer = null } = options
    this.#options = options
    this.#lease = new Lease({
      database,
      random,
      name,
      leaseMs,
      lost: () => this.#lost(),
      reaped: (dead) => {
        for (const worker of dead)
          logger.warn(worker, "A worker stopped renewing its lease; its lanes are taken over")
        this.#bell.ring()
      },
    })
    this.#turns = new Turns(database, this.#lease, proposer)
    this.#sweep = new Sweep(database, store, proposer)
  }

  /** Whether anybody else could take what is due, as far as is known. */
  get hasOthers(): boolean {
    return this.#lease.others > 0
  }

  async start(listener: ScheduleListener): Promise<void> {
    const { database, random } = this.#options
    await this.#lease.start()
    this.#listener = listener
    this.#stopListening = database.onUp(() => {
      this.#lease.renewNow()
      this.#turns.flushSoon()
      this.#bell.ring()
    })
    this.#poll = setTimeout(
      () => {
        this.#poll?.refresh()
        this.#bell.ring()
      },
      POLL_MS * (0.95 + 0.1 * random()),
    )
  }

  hint(): void {
    this.#bell.ring()
  }

  wake(lanes: readonly LaneWake[]): void {
    for (const { dueAt } of lanes) this.#hintAt = Math.min(this.#hintAt, dueAt)
  }

  async claim(most: number, now: number): Promise<LaneClaim[]> {
    const asked = Math.min(most, MOST_AT_ONCE)
    const hintAt = this.#hintAt
    this.#hintAt = NEVER
    this.#now = now
    try {
      const turn = await this.#turns.take(asked, now)
      this.#note(turn)
      return [...turn.granted, ...turn.woken]
    } catch (error) {
      this.#hintAt = Math.min(this.#hintAt, hintAt)
      throw error
    } finally {
      this.#poll?.refresh()
    }
  }

  #note({ waiting, missed, nextAt, unfinished }: Turn): void {
    this.#isWaiting = waiting
    // Those that we asked for and did not get are being taken by others: not asked for again at once.
    this.#nextAt = waiting && !missed ? 0 : (nextAt ?? NEVER)
    this.#bell.done(!missed && !unfinished)
  }

  release(claim: LaneClaim, nextDueAt: number | null, now: number): Promise<void> {
    return this.#turns.release(claim, nextDueAt, now)
  }

  nextDueAt(): number | null {
    const at = Math.min(this.#nextAt, this.#hintAt)
    return at === NEVER ? null : at
  }

  hasWaiting(now: number): boolean {
    return this.#isWaiting || (this.nextDueAt() ?? NEVER) <= now
  }

  holds(): boolean {
    return this.#lease.holds
  }

  problem(): string | null {
    return null
  }

  sweep(whole: boolean, at?: Moment, found?: (lanes: readonly LaneWake[]) => void): Promise<void> {
    return this.#sweep.run(whole, this.#now, at, found)
  }

  async stop(): Promise<void> {
    this.#end()
    await this.#turns.flush()
    // If the database cannot be reached, the others take over when the lease has run out.
    await this.#lease.end().catch(() => {})
    this.#turns.forget()
  }

  abandon(): void {
    this.#end()
    this.#lease.abandon()
    this.#turns.forget()
  }

  #end(): void {
    this.#listener = null
    this.#stopListening()
    this.#bell.stop()
    if (this.#poll !== null) clearTimeout(this.#poll)
    this.#poll = null
  }

  #lost(): void {
    this.#turns.forget()
    this.#listener?.lost()
    this.#bell.ring()
  }
}
