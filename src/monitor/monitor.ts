/**
 * Watches the whole store for metrics and alerts. Every process that delivers runs a monitor; the one with the lease, the leader, takes a
 * snapshot at each interval, and the others only look whether the lease is free.
 */
import type { Timer } from "../core/clock.ts"
import type { Logger } from "../observe/log.ts"
import type { HealthContext } from "../resources/endpoint-health.ts"
import type { RollupSum } from "../store/store.ts"
import { readSums } from "./deaths.ts"
import { type History, toSample, withSample } from "./history.ts"
import { type Found, MonitorLease } from "./lease.ts"
import { type Snapshot, takeSnapshot } from "./snapshot.ts"

/** An interval after this one, the numbers are in the metrics. */
export const MONITOR_INTERVAL_MS = 15_000
/** A snapshot takes at most a twentieth of the time, unless it takes more than 3 s: an operator hears of trouble within minutes. */
const REST_FACTOR = 20
const LONGEST_PAUSE_MS = 60_000
/** The lease outlasts the pause, and a snapshot that takes as long as the last one, by this. */
const LEASE_MARGIN_MS = 20_000
/** How long a stop waits for a snapshot that is being taken. */
const STOP_MS = 2000

export interface MonitorListener {
  /** On the leader. The next snapshot waits for the result. `sums`: the attempts of this hour and the one before, by hour and number. */
  snapshot(snapshot: Snapshot, history: History, sums: readonly RollupSum[]): void | Promise<void>
  /** On the leader, instead of `snapshot`: the store gave the lease, but could not be surveyed, for one reason or another. */
  surveyFailed(error: Error): void | Promise<void>
  /** The lease could not be read or written. `isLeader`: this process was the leader before. */
  failed(error: Error, isLeader: boolean): void | Promise<void>
  /** This process is the leader no more. */
  stoodDown(): void
}

export interface MonitorParts extends HealthContext {
  readonly logger: Logger
  /** A name of this process that no other process has. */
  readonly holder: string
  readonly intervalMs: number
  readonly listeners: readonly MonitorListener[]
}

export class Monitor {
  readonly #parts: MonitorParts
  readonly #lease: MonitorLease
  #timer: Timer | null = null
  #running: Promise<void> | null = null
  #isLeader = false
  /** When our lease ends. */
  #heldUntil = 0
  #isStopped = false
  #tookMs = 0

  constructor(parts: MonitorParts) {
    this.#parts = parts
    this.#lease = new MonitorLease(parts.store, parts.holder)
  }

  /** Also false once the lease has run out, while the store cannot be reached: another process may be the leader then. */
  get isLeader(): boolean {
    return this.#isLeader && this.#parts.clock.now() < this.#heldUntil
  }

  start(): void {
    this.#timer = this.#parts.clock.setTimer(this.#pauseMs(), () => {
      void this.runOnce().finally(() => {
        if (!this.#isStopped) this.start()
      })
    })
  }

  /** One look, and on the leader one snapshot. Never rejects. A call during another one joins it. */
  runOnce(): Promise<void> {
    this.#running ??= this.#run().finally(() => {
      this.#running = null
    })
    return this.#running
  }

  /** Gives the lease back, so that another process continues at once. */
  async stop(): Promise<void> {
    const { clock } = this.#parts
    this.#isStopped = true
    this.#timer?.cancel()
    let timer: Timer | null = null
    const isLate = new Promise<void>((resolve) => {
      timer = clock.setTimer(STOP_MS, resolve)
    })
    await Promise.race([this.#release(), isLate])
    timer!.cancel()
  }

  /** A lease that cannot be given back runs out. */
  async #release(): Promise<void> {
    await this.#running
    this.#standDown()
    if (this.#heldUntil === 0) return
    await this.#lease.release(this.#parts.clock.now()).catch((error) => {
      this.#parts.logger.debug({ err: error }, "The monitor's lease could not be given back; it runs out")
    })
  }

  /** The store is lost. */
  abandon(): void {
    this.#isStopped = true
    this.#timer?.cancel()
  }

  async #run(): Promise<void> {
    try {
      const found = await this.#lead()
      if (found !== null) await this.#lookAround(found)
    } catch (error) {
      if (!this.#isStopped) await this.#tell((listener) => listener.failed(error as Error, this.#isLeader))
    }
  }

  /** Takes or renews the lease before the work, so that a slow snapshot is not taken by several processes. Null: another one leads. */
  async #lead(): Promise<Found | null> {
    const { clock } = this.#parts
    const found = await this.#lease.read(clock.now())
    // Another process led meanwhile: this one begins anew.
    if (!found.isOurs) this.#standDown()
    return found.isFree ? this.#hold(found, found.history) : this.#standDown()
  }

  async #hold(found: Found, history: History): Promise<Found | null> {
    const { clock } = this.#parts
    const until = clock.now() + this.#pauseMs() + this.#tookMs + LEASE_MARGIN_MS
    const held = await this.#lease.hold(found, history, clock.now(), until)
    if (held === null) return this.#standDown()
    this.#heldUntil = until
    if (this.#isStopped) return this.#standDown()
    this.#isLeader = true
    return held
  }

  /** The lease is written again with the sample, and after a survey that failed: it may have taken longer than the lease. */
  async #lookAround(found: Found): Promise<void> {
    const { clock, logger } = this.#parts
    const startedAt = clock.elapsedMs()
    const survey = await this.#survey().catch((error: Error) => error)
    this.#tookMs = clock.elapsedMs() - startedAt
    if (survey instanceof Error) {
      if (this.#isStopped) return
      logger.warn({ err: survey }, "The store could not be surveyed; trying again")
      if ((await this.#hold(found, found.history)) !== null)
        await this.#tell((listener) => listener.surveyFailed(survey))
      return
    }
    const [snapshot, sums] = survey
    const history = withSample(found.history, toSample(snapshot.at, sums))
    if ((await this.#hold(found, history)) !== null)
      await this.#tell((listener) => listener.snapshot(snapshot, history, sums))
  }

  #survey() {
    const { store, clock } = this.#parts
    return Promise.all([takeSnapshot(this.#parts), readSums(store, clock.now())])
  }

  #pauseMs(): number {
    const { intervalMs } = this.#parts
    return Math.max(intervalMs, Math.min(this.#tookMs * REST_FACTOR, LONGEST_PAUSE_MS))
  }

  #standDown(): null {
    if (this.#isLeader) {
      this.#isLeader = false
      for (const listener of this.#parts.listeners) listener.stoodDown()
    }
    return null
  }

  /** A listener that fails is logged. It does not stop the others. */
  async #tell(tell: (listener: MonitorListener) => void | Promise<void>): Promise<void> {
    for (const listener of this.#parts.listeners) {
      try {
        await tell(listener)
      } catch (error) {
        this.#parts.logger.warn(
          { err: error },
          "Metrics or alerts could not be brought up to date; trying again",
        )
      }
    }
  }
}
