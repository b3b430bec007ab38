/**
 * The schedule that PostgreSQL keeps for any number of processes. A lane is a row; its owner holds its token. The SQL is in
 * `store/postgres/lane-functions.ts`, the life of a worker in `lease.ts`.
 */
import type { Random } from "../../core/backoff.ts"
import type { Moment } from "../../core/clock.ts"
import type { EventSink } from "../../observe/event-stream.ts"
import type { Database } from "../../store/postgres/connection.ts"
import type { LaneClaim, LaneWake, Store } from "../../store/store.ts"
import type { Schedule, ScheduleListener, ServedLanes } from "../schedule.ts"
import { type ClaimRound, ClaimRounds } from "./claim-rounds.ts"
import { DebouncedSignal } from "./debounced-signal.ts"
import { Lease } from "./lease.ts"
import type { Proposer } from "./proposer.ts"
import { Sweep } from "./sweep.ts"

export interface PostgresScheduleOptions {
  readonly database: Database
  readonly store: Pick<Store, "scanLanes">
  readonly random: Random
  readonly events: EventSink
  /** Shown to operators. */
  readonly name: string
  readonly leaseMs?: number | undefined
  readonly proposer?: Proposer
}

/** From the death of a worker to the takeover: at most this, a renewal interval and a round trip, twelve seconds in all. */
const LEASE_MS = 8000
/** The most lanes of one claim round, so that other workers get their share. */
const MOST_AT_ONCE = 200
/** Finds wakes without a hint: a send in a user's own transaction, a lost notification. */
const POLL_MS = 1500

const NEVER = Number.POSITIVE_INFINITY

export class PostgresSchedule implements Schedule {
  readonly #options: PostgresScheduleOptions
  readonly #lease: Lease
  readonly #rounds: ClaimRounds
  readonly #sweep: Sweep
  #listener: ScheduleListener | null = null
  readonly #due = new DebouncedSignal(() => this.#listener?.due())
  #poll: NodeJS.Timeout | null = null
  #stopListening = () => {}
  /** By the last claim round. */
  #nextAt = NEVER
  /** The earliest wake since. */
  #hintAt = NEVER
  #isWaiting = false
  #now = 0

  constructor(options: PostgresScheduleOptions) {
    const { database, store, random, events, name, leaseMs = LEASE_MS, proposer = null } = options
    this.#options = options
    this.#lease = new Lease({
      database,
      random,
      name,
      leaseMs,
      lost: () => this.#lost(),
      reaped: (dead) => {
        for (const worker of dead) {
          database.instruments.lanesTakenOver(worker.lanes)
          events.emit({ type: "worker.taken_over", ...worker })
        }
        this.#due.send()
      },
    })
    this.#rounds = new ClaimRounds(database, this.#lease, proposer)
    this.#sweep = new Sweep(database, store, proposer)
  }

  /** Whether there are other workers, as of the last renewal. */
  get hasOthers(): boolean {
    return this.#lease.others > 0
  }

  serve(lanes: ServedLanes): void {
    this.#rounds.served = lanes
    this.#options.proposer?.serve(lanes.transports)
  }

  async start(listener: ScheduleListener): Promise<void> {
    const { database, random } = this.#options
    await this.#lease.start()
    this.#listener = listener
    this.#stopListening = database.onUp(() => {
      this.#lease.renewNow()
      this.#rounds.flushSoon()
      this.#due.send()
    })
    this.#poll = setTimeout(
      () => {
        this.#poll?.refresh()
        this.#due.send()
      },
      POLL_MS * (0.95 + 0.1 * random()),
    )
  }

  hint(): void {
    this.#due.send()
  }

  wake(lanes: readonly LaneWake[]): void {
    const { transports, endpoints } = this.#rounds.served
    for (const { endpointId, transport, dueAt } of lanes)
      if (transport === undefined || transports.includes(transport) || endpoints.includes(endpointId))
        this.#hintAt = Math.min(this.#hintAt, dueAt)
  }

  async claim(most: number, now: number): Promise<LaneClaim[]> {
    const asked = Math.min(most, MOST_AT_ONCE)
    const hintAt = this.#hintAt
    this.#hintAt = NEVER
    this.#now = now
    try {
      const round = await this.#rounds.run(asked, now)
      this.#note(round)
      return [...round.granted, ...round.woken]
    } catch (error) {
      this.#hintAt = Math.min(this.#hintAt, hintAt)
      throw error
    } finally {
      this.#poll?.refresh()
    }
  }

  #note({ waiting, missed, nextAt, unfinished }: ClaimRound): void {
    this.#isWaiting = waiting
    // Missed lanes are locked or being claimed by other workers: asking again at once would spin.
    this.#nextAt = waiting && !missed ? 0 : (nextAt ?? NEVER)
    if (missed || unfinished) this.#due.retry()
    else this.#due.settled()
  }

  release(claim: LaneClaim, nextDueAt: number | null, now: number): Promise<void> {
    return this.#rounds.release(claim, nextDueAt, now)
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
    await this.#rounds.flush()
    // Without the database, other workers take over when the lease has run out.
    await this.#lease.end().catch(() => {})
    this.#rounds.forget()
  }

  abandon(): void {
    this.#end()
    this.#lease.abandon()
    this.#rounds.forget()
  }

  #end(): void {
    this.#listener = null
    this.#stopListening()
    this.#due.stop()
    if (this.#poll !== null) clearTimeout(this.#poll)
    this.#poll = null
  }

  #lost(): void {
    this.#rounds.forget()
    this.#listener?.lost()
    this.#due.send()
  }
}
