/** Works off durable tasks: retry, discard or cancel many deliveries, a few hundred at a time. */
import type { Random } from "../core/backoff.ts"
import type { Clock, Timer } from "../core/clock.ts"
import { cancel, revive } from "../core/operate.ts"
import type { Policy } from "../core/policy.ts"
import type { Logger } from "../observe/log.ts"
import type { Amendment, Delivery, LaneWake, Store, Task } from "../store/store.ts"
import type { Reporter } from "./reporter.ts"

export interface TaskRunnerParts {
  readonly store: Store
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
  readonly reporter: Reporter
  readonly defaultPolicy: Policy
  wake(lanes: readonly LaneWake[]): void
}

const STEP = 200
const RETRY_MS = 1000

export class TaskRunner {
  readonly #parts: TaskRunnerParts
  #working: Promise<void> | null = null
  #again = false
  #stopped = true
  #timer: Timer | null = null

  constructor(parts: TaskRunnerParts) {
    this.#parts = parts
  }

  start(): void {
    this.#stopped = false
    this.wake()
  }

  /** There may be something to do. */
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
        const tasks = await this.#parts.store.listTasks("running", { limit: 100, before: null })
        if (tasks.length === 0) return
        for (const task of tasks) {
          if (this.#stopped) return
          await this.#step(task)
        }
      }
    } catch (error) {
      if (this.#stopped) return
      this.#parts.logger.warn({ err: error }, "A task could not go on; trying again")
      this.#timer = this.#parts.clock.setTimer(RETRY_MS * (1 + this.#parts.random()), () => this.wake())
    }
  }

  async #step(task: Task): Promise<void> {
    const { store, clock } = this.#parts
    const deliveries = await store.readTask(task.id, STEP)
    const meant = task.action === "retry" ? await this.#withEndpoint(deliveries) : deliveries
    const now = clock.now()
    const amendments = meant.map((delivery) => this.#amendment(task, delivery, now))
    const cursor = deliveries.length < STEP ? null : deliveries.at(-1)!.seq
    const applied = await store.stepTask({
      taskId: task.id,
      expectedCursor: task.cursor,
      amendments,
      looked: deliveries.length,
      cursor,
      now,
    })
    if (applied === null) return
    for (const [i, delivery] of meant.entries()) {
      if (applied[i]) this.#follow(task, delivery, amendments[i]!, now)
    }
  }

  /** Without those whose endpoint is gone: sent again they would only be cancelled, and their reason lost. */
  async #withEndpoint(deliveries: readonly Delivery[]): Promise<Delivery[]> {
    const gone = new Set<string>()
    for (const { appId, endpointId } of new Map(deliveries.map((one) => [one.endpointId, one])).values()) {
      if ((await this.#parts.store.getEndpoint(appId, endpointId)) === null) gone.add(endpointId)
    }
    return deliveries.filter(({ endpointId }) => !gone.has(endpointId))
  }

  #amendment(task: Task, delivery: Delivery, now: number): Amendment {
    const { seq, status, attemptCount } = delivery
    const expected = { seq, expectedStatus: status, expectedAttemptCount: attemptCount }
    switch (task.action) {
      case "discard":
        return { ...expected, change: { discardedAt: now } }
      case "retry":
        return { ...expected, change: revive(delivery, now) }
      case "cancel":
        return { ...expected, change: cancel(delivery, this.#parts.defaultPolicy, now) }
      default:
        return task.action satisfies never
    }
  }

  #follow(task: Task, delivery: Delivery, { change }: Amendment, now: number): void {
    const { endpointId, appId } = delivery
    if ("discardedAt" in change) return
    if (task.action === "retry") this.#parts.wake([{ endpointId, appId, dueAt: now }])
    else this.#parts.reporter.settled({ delivery, endpointId, change, attempt: null, detail: null }, now)
  }
}
