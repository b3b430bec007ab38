/**
 * Watches the whole store for metrics and alerts. Every process that delivers runs a monitor; the one with the lease, the leader, takes a
 * snapshot at each interval, and the others only look whether the lease is free.
 */
import { firstHourOf } from "../core/attempt-window.ts"
import type { Timer } from "../core/clock.ts"
import { NOTIFICATIONS_ORG } from "../core/org.ts"
import type { Logger } from "../observe/log.ts"
import type { HealthContext } from "../resources/endpoint-health.ts"
import { type History, toSample, withSample } from "./history.ts"
import { MonitorLease } from "./lease.ts"
import { type Snapshot, takeSnapshot } from "./snapshot.ts"

/** An interval after this one, the numbers are in the metrics. */
export const MONITOR_INTERVAL_MS = 15_000
/** A snapshot takes at most a twentieth of the time. */
const REST_FACTOR = 20
/** The lease outlasts two intervals and a half, so that a slow renewal does not lose it. */
const LEASE_FACTOR = 2.5

export interface MonitorListener {
  /** On the leader. The next snapshot waits for the result. */
  snapshot(snapshot: Snapshot, history: History): void | Promise<void>
  /** The store could not be read or written. `isLeader`: this process was the leader before. */
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
    this.#isStopped = true
    this.#timer?.cancel()
    await this.#running
    if (!this.#isLeader) return
    this.#standDown()
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
      const found = await this.#lookAround()
      if (found !== null) await this.#tell((listener) => listener.snapshot(found.snapshot, found.history))
    } catch (error) {
      if (this.#isStopped) return
      await this.#tell((listener) => listener.failed(error as Error, this.#isLeader))
    }
  }

  /** Null: another process is the leader. */
  async #lookAround(): Promise<{ readonly snapshot: Snapshot; readonly history: History } | null> {
    const { store, clock } = this.#parts
    const startedAt = clock.elapsedMs()
    const found = await this.#lease.read(clock.now())
    if (!found.isFree) return this.#standDown()
    const filter = { since: firstHourOf(clock.now(), 1), exceptOrgId: NOTIFICATIONS_ORG }
    const [snapshot, sums] = await Promise.all([
      takeSnapshot(this.#parts),
      store.sumRollups(filter, ["hour", "attemptNumber"]),
    ])
    const history = withSample(found.history, toSample(snapshot.at, sums))
    this.#tookMs = clock.elapsedMs() - startedAt
    const now = clock.now()
    const until = now + this.#pauseMs() * LEASE_FACTOR
    const isHeld = await this.#lease.hold(found, history, now, until)
    if (!isHeld || this.#isStopped) return this.#standDown()
    this.#isLeader = true
    this.#heldUntil = until
    return { snapshot, history }
  }

  #pauseMs(): number {
    return Math.max(this.#parts.intervalMs, this.#tookMs * REST_FACTOR)
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
