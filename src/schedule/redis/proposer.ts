/**
 * The index of due lanes in Redis. It proposes lanes; PostgreSQL grants them and answers with their due times, from which the index
 * learns. While Redis is away or its set is incomplete, PostgreSQL finds due lanes by itself.
 */
import type { Redis } from "ioredis"
import { PosthornError } from "../../core/errors.ts"
import type { Instruments } from "../../observe/instruments.ts"
import type { Logger } from "../../observe/log.ts"
import { Trouble } from "../../observe/trouble.ts"
import type { Database } from "../../store/postgres/connection.ts"
import { type LaneTime, NO_PROPOSAL, type Proposal, type Proposer } from "../postgres/proposer.ts"
import { infoValue } from "./connection.ts"
import { endpointOf, type Keys, memberFor, rebuild } from "./rebuild.ts"
import type { Scripts } from "./scripts.ts"

/** How long a proposed lane is not proposed again. */
const PUT_OFF_MS = 5000
/** Lanes overdue by this much are granted without being proposed. */
const BEHIND_MS = 5000
/** How soon the loss of the set is noticed. */
const CHECK_MS = 1000
const TEXTS = {
  begins: "Redis cannot be used; PostgreSQL finds due lanes by itself",
  ends: "Redis is back",
}
/** The most sleeping workers that are woken at once, however many lanes are due. */
const MOST_WAKES = 8

export interface RedisProposerOptions {
  readonly redis: Redis
  readonly database: Database
  readonly keys: Keys
  readonly logger: Logger
  readonly instruments: Instruments
  /** The URL, for messages. */
  readonly where: string
  readonly hasOthers: () => boolean
}

export class RedisProposer implements Proposer {
  readonly #redis: Redis & Scripts
  readonly #database: Database
  readonly #keys: Keys
  readonly #where: string
  readonly #hasOthers: () => boolean
  readonly #trouble: Trouble
  readonly #instruments: Instruments
  /** The reason: a call on a lost connection only says that the connection is lost. */
  #connectionError: Error | null = null
  /** Without a success in between. */
  #failedChecks = 0
  #isComplete = false
  /** A `learn` did not reach Redis. */
  #hasGap = false
  /** More lanes were due than the set has: the next claim round searches the database. */
  #missed = false
  #putOffUntil: number | "" = ""
  #transports: readonly string[] = []
  /** The server's run id: after a restart Redis may have old data. */
  #runId = ""
  #timer: NodeJS.Timeout | null = null
  #ended = false

  constructor({ redis, database, keys, logger, instruments, where, hasOthers }: RedisProposerOptions) {
    this.#instruments = instruments
    this.#redis = redis as Redis & Scripts
    this.#database = database
    this.#keys = keys
    this.#where = where
    this.#hasOthers = hasOthers
    this.#trouble = new Trouble(logger, TEXTS, { schedule: where }, () => performance.now())
    redis.on("close", () => {
      this.#isComplete = false
      this.#runId = ""
    })
    redis.on("error", (error) => {
      this.#connectionError = error
    })
  }

  /** Why Redis is not used, in a sentence; null while it is. */
  get problem(): string | null {
    const { reason } = this.#trouble
    if (reason === null) return null
    return `Redis at ${this.#where} cannot be used (${reason.message}); PostgreSQL finds due lanes by itself, and delivery goes on`
  }

  serve(transports: readonly string[]): void {
    // The set of another transport may never have been built.
    if (transports.some((transport) => !this.#transports.includes(transport))) this.#isComplete = false
    this.#transports = transports
  }

  start(): void {
    void this.#check()
  }

  end(): void {
    this.#ended = true
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#redis.disconnect()
  }

  async propose(most: number, now: number): Promise<Proposal> {
    this.#putOffUntil = ""
    if (this.#redis.status !== "ready") {
      this.#hasGap = true
      return NO_PROPOSAL
    }
    if (!this.#isComplete || this.#missed) {
      this.#missed = false
      return { lanes: [], behindMs: 0 }
    }
    if (most === 0) return { lanes: [], behindMs: BEHIND_MS }
    try {
      const putOffUntil = now + PUT_OFF_MS
      const sets = this.#transports.map(this.#keys.lanes)
      const members = await this.#redis.posthornPropose(sets.length, ...sets, now, most, putOffUntil)
      this.#putOffUntil = putOffUntil
      return { lanes: members.map(endpointOf), behindMs: BEHIND_MS }
    } catch (error) {
      this.#record(error as Error)
      this.#isComplete = false
      return { lanes: [], behindMs: 0 }
    }
  }

  missed(): void {
    this.#missed = true
  }

  learn(lanes: readonly LaneTime[], now: number): void {
    if (lanes.length === 0) return
    const { wake, lanes: keyOf } = this.#keys
    const transports = [...new Set([...this.#transports, ...lanes.map(({ transport }) => transport)])]
    const keys = [wake, ...transports.map(keyOf)]
    const news = lanes.flatMap(({ appId, endpointId, transport, dueAt, isOurs }) => [
      transports.indexOf(transport) + 2,
      memberFor(appId, endpointId),
      isOurs ? "ours" : (dueAt ?? ""),
    ])
    const wakes = this.#hasOthers() ? MOST_WAKES : 0
    const values = [now, this.#putOffUntil, wakes, this.#transports.length]
    this.#redis.posthornLearn(keys.length, ...keys, ...values, ...news).catch((error) => {
      this.#record(error)
      this.#isComplete = false
      this.#hasGap = true
    })
  }

  async #check(): Promise<void> {
    try {
      if (this.#runId === "") this.#runId = infoValue(await this.#redis.info("server"), "run_id")
      const mark = `run ${this.#runId}`
      const sets = this.#transports.map(this.#keys.lanes)
      const marks = await Promise.all(sets.map((set) => this.#redis.zscore(set, mark)))
      this.#isComplete = !marks.includes(null) && !this.#hasGap
      if (!this.#isComplete) await this.#rebuild(mark)
      this.#failedChecks = 0
      this.#trouble.passed()
    } catch (error) {
      this.#isComplete = false
      this.#failed(error as Error)
    }
    if (!this.#ended) this.#timer = setTimeout(() => void this.#check(), CHECK_MS)
  }

  #record(error: Error): void {
    if (!this.#ended) this.#instruments.redisFailed(error)
  }

  #failed(error: Error): void {
    // The rebuild also reads PostgreSQL, whose failures are not Redis's.
    if (this.#ended || error instanceof PosthornError) return
    this.#record(error)
    // One failure may mean that our own event loop was blocked for a moment.
    if (++this.#failedChecks === 1) return
    const reason = this.#redis.status === "ready" ? error : (this.#connectionError ?? error)
    this.#trouble.failed(reason)
  }

  async #rebuild(mark: string): Promise<void> {
    const hadGap = this.#hasGap
    // A `learn` that fails from here on opens a new gap.
    this.#hasGap = false
    let isRebuilt = false
    try {
      isRebuilt = await rebuild(this.#redis, this.#database, this.#keys, this.#transports, mark)
    } finally {
      this.#hasGap ||= hadGap && !isRebuilt
    }
    this.#isComplete = isRebuilt && !this.#hasGap
  }
}
