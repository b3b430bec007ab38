/**
 * The line of lanes in Redis. It proposes; PostgreSQL grants, and says how things stand, from which the line learns. Nothing depends
 * on it: while Redis is away, or does not know everything yet, PostgreSQL finds the lanes by itself.
 */
import type { Redis } from "ioredis"
import { PosthornError } from "../../core/errors.ts"
import type { Logger } from "../../observe/log.ts"
import { Trouble } from "../../observe/trouble.ts"
import type { Database } from "../../store/postgres/connection.ts"
import { type LaneTime, NO_PROPOSAL, type Proposal, type Proposer } from "../postgres/proposer.ts"
import { infoValue } from "./connection.ts"
import { endpointOf, type Keys, memberFor, rebuild } from "./rebuild.ts"
import type { Scripts } from "./scripts.ts"

/** How long a lane that was proposed is put off. */
const PUT_OFF_MS = 5000
/** A lane that is so overdue is granted without being proposed. */
const BEHIND_MS = 5000
/** A set that was lost is noticed in this time. */
const CHECK_MS = 1000
const TEXTS = {
  begins: "Redis cannot be used; PostgreSQL finds due lanes by itself",
  ends: "Redis is back",
}
/** Workers that sleep are woken for lanes that are due, but not all of them for a thousand. */
const MOST_WAKES = 8

export interface RedisLineOptions {
  readonly redis: Redis
  readonly database: Database
  readonly keys: Keys
  readonly logger: Logger
  /** The URL, for messages. */
  readonly where: string
  readonly hasOthers: () => boolean
}

export class RedisLine implements Proposer {
  readonly #redis: Redis & Scripts
  readonly #database: Database
  readonly #keys: Keys
  readonly #where: string
  readonly #hasOthers: () => boolean
  readonly #trouble: Trouble
  /** What the connection said last; a call on a lost one only says that it is lost. */
  #connectionError: Error | null = null
  /** In a row. */
  #failedChecks = 0
  #isComplete = false
  /** Something that it should have learned did not reach it. */
  #hasGap = false
  /** There was more than we knew of: the next turn looks for it in the database. */
  #missed = false
  #putOffUntil: number | "" = ""
  /** Which run of which server it is: after a restart it may have come back with old data. */
  #run = ""
  #timer: NodeJS.Timeout | null = null
  #ended = false

  constructor({ redis, database, keys, logger, where, hasOthers }: RedisLineOptions) {
    this.#redis = redis as Redis & Scripts
    this.#database = database
    this.#keys = keys
    this.#where = where
    this.#hasOthers = hasOthers
    this.#trouble = new Trouble(logger, TEXTS, { schedule: where }, () => performance.now())
    redis.on("close", () => {
      this.#isComplete = false
      this.#run = ""
    })
    redis.on("error", (error) => {
      this.#connectionError = error
    })
  }

  /** Why PostgreSQL works alone, in a sentence; null while Redis can be used. */
  get problem(): string | null {
    const { reason } = this.#trouble
    if (reason === null) return null
    return `Redis at ${this.#where} cannot be used (${reason.message}); PostgreSQL finds due lanes by itself, and delivery goes on`
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
      const members = await this.#redis.posthornPropose(this.#keys.lanes, now, most, putOffUntil)
      this.#putOffUntil = putOffUntil
      return { lanes: members.map(endpointOf), behindMs: BEHIND_MS }
    } catch {
      this.#isComplete = false
      return { lanes: [], behindMs: 0 }
    }
  }

  missed(): void {
    this.#missed = true
  }

  learn(lanes: readonly LaneTime[], now: number): void {
    if (lanes.length === 0) return
    const news = lanes.flatMap(({ appId, endpointId, dueAt, isOurs }) => [
      memberFor(appId, endpointId),
      isOurs ? "ours" : (dueAt ?? ""),
    ])
    const wakes = this.#hasOthers() ? MOST_WAKES : 0
    this.#redis
      .posthornLearn(this.#keys.lanes, this.#keys.wake, now, this.#putOffUntil, wakes, ...news)
      .catch(() => {
        this.#isComplete = false
        this.#hasGap = true
      })
  }

  async #check(): Promise<void> {
    try {
      if (this.#run === "") this.#run = infoValue(await this.#redis.info("server"), "run_id")
      const mark = `run ${this.#run}`
      const isMarked = (await this.#redis.zscore(this.#keys.lanes, mark)) !== null
      this.#isComplete = isMarked && !this.#hasGap
      if (!this.#isComplete) await this.#rebuild(mark)
      this.#failedChecks = 0
      this.#trouble.passed()
    } catch (error) {
      this.#isComplete = false
      this.#failed(error as Error)
    }
    if (!this.#ended) this.#timer = setTimeout(() => void this.#check(), CHECK_MS)
  }

  #failed(error: Error): void {
    // The rebuild reads PostgreSQL, whose trouble is no trouble of Redis.
    if (this.#ended || error instanceof PosthornError) return
    // A single one may be a moment in which our own event loop was held up.
    if (++this.#failedChecks === 1) return
    const reason = this.#redis.status === "ready" ? error : (this.#connectionError ?? error)
    this.#trouble.failed(reason)
  }

  async #rebuild(mark: string): Promise<void> {
    const hadGap = this.#hasGap
    // What is not learned from here on makes a new one.
    this.#hasGap = false
    let isRebuilt = false
    try {
      isRebuilt = await rebuild(this.#redis, this.#database, this.#keys, mark)
    } finally {
      this.#hasGap ||= hadGap && !isRebuilt
    }
    this.#isComplete = isRebuilt && !this.#hasGap
  }
}
