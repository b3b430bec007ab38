/** Runs durable tasks, a few hundred deliveries or messages at a time. */
import { Backoff, type Random } from "../core/backoff.ts"
import { type Clock, momentOf, type Timer } from "../core/clock.ts"
import { hasCode } from "../core/errors.ts"
import { isLive } from "../core/operate.ts"
import type { Policy } from "../core/policy.ts"
import { amended, type EventSink } from "../observe/event-stream.ts"
import type { Logger } from "../observe/log.ts"
import type { LaneWake, Store, Task } from "../store/store.ts"
import { type Planned, planStep } from "./task-steps.ts"

export interface TaskRunnerParts {
  readonly store: Store
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
  readonly events: EventSink
  readonly defaultPolicy: Policy
  wake(lanes: readonly LaneWake[]): void
  endpointChanged(endpointId: string, appId: string): void
}

const STEP = 200
const RETRY_MS = 2000

export class TaskRunner {
  readonly #parts: TaskRunnerParts
  #working: Promise<void> | null = null
  #again = false
  #stopped = true
  readonly #backoff: Backoff
  #timer: Timer | null = null

  constructor(parts: TaskRunnerParts) {
    this.#backoff = new Backoff({ firstMs: RETRY_MS, longestMs: RETRY_MS, random: parts.random })
    this.#parts = parts
  }

  start(): void {
    this.#stopped = false
    this.wake()
  }

  /** Tells the runner that a task may be waiting. */
  wake(): void {
    if (this.#stopped) return
    if (this.#working !== null) {
      this.#again = true
      return
    }
    this.#working = this.#work().finally(() => {
      this.#working = null
      if (!this.#again) return
      this.#again = false
      this.wake()
    })
  }

  async stop(): Promise<void> {
    this.#stopped = true
    this.#timer?.cancel()
    await this.#working
  }

  /** Tasks take turns, so that a short one does not wait behind a long one. */
  async #work(): Promise<void> {
    try {
      for (;;) {
        const tasks = await this.#parts.store.listRunningTasks(100)
        if (tasks.length === 0) return
        let stuck = 0
        for (const task of tasks) {
          if (this.#stopped) return
          if (!(await this.#tryStep(task))) stuck++
        }
        if (stuck === tasks.length) return this.#retryLater()
      }
    } catch (error) {
      if (this.#stopped) return
      this.#parts.logger.warn({ err: error }, "Tasks could not be read; trying again")
      this.#retryLater()
    }
  }

  /** A task that fails does not hold up the others. */
  async #tryStep(task: Task): Promise<boolean> {
    try {
      await this.#step(task)
      return true
    } catch (error) {
      if (!this.#stopped)
        this.#parts.logger.warn({ err: error, task: task.id }, "A task could not go on; trying again")
      return false
    }
  }

  #retryLater(): void {
    if (this.#stopped) return
    this.#timer = this.#parts.clock.setTimer(this.#backoff.nextMs(1), () => this.wake())
  }

  async #step(task: Task): Promise<void> {
    const { store, clock, events } = this.#parts
    const at = momentOf(clock)
    const { now } = at
    const { amended: deliveries, enabling, ...planned } = await planStep(this.#parts, task, STEP, now)
    if (enabling !== null) await this.#enable(enabling, now)
    const made = await store.stepTaskIfCurrent({
      ...planned,
      taskId: task.id,
      expectedCursor: task.cursor,
      at,
    })
    if (made === null) return
    if (planned.cursor === null) events.emit({ type: "task.finished", task })
    for (const [i, delivery] of deliveries.entries()) {
      const { change } = planned.amendments[i]!
      if (!made.amended[i] || "discardedAt" in change) continue
      if (isLive(change)) this.#wake(delivery, now)
      else events.emit(amended(delivery, task.orgId, change, now))
    }
    const { appId, endpointId } = task.filter
    if (made.added.includes(true)) this.#wake({ appId: appId!, endpointId: endpointId! }, now)
  }

  /** Another process that runs the same task may have been faster. */
  async #enable({ endpointId, tasks }: NonNullable<Planned["enabling"]>, now: number): Promise<void> {
    const { store, events, endpointChanged } = this.#parts
    const endpoint = await store.enableEndpointIfDisabled(endpointId, now, tasks).catch(nullIfConflict)
    if (endpoint === null) return
    endpointChanged(endpoint.id, endpoint.appId)
    for (const type of ["endpoint.updated", "endpoint.enabled"] as const)
      events.emit({ type, endpoint, at: now })
  }

  #wake({ endpointId, appId }: Pick<LaneWake, "endpointId" | "appId">, dueAt: number): void {
    this.#parts.wake([{ endpointId, appId, dueAt }])
  }
}

function nullIfConflict(error: unknown): null {
  if (hasCode(error, "conflict")) return null
  throw error
}
