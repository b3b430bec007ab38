/**
 * Notifications on their way past the engine. Each channel has a queue of its own with one notification in flight, and stops at its first
 * failure: a beginning that is sent again after the end would open an incident that nobody closes. Nobody waits for a channel that hangs.
 */
import type { Clock, Timer } from "../core/clock.ts"
import { describe } from "../core/errors.ts"
import type { Logger } from "../observe/log.ts"
import type { DirectResult, Notifier } from "./notifier.ts"
import type { Outgoing } from "./plan.ts"

export interface Waiting extends Outgoing {
  readonly decidedAt: number
  /** It may have arrived, even if its answer was a failure or was lost. */
  readonly isTried: boolean
}

export interface DirectOutboxParts {
  readonly notifier: Notifier
  readonly clock: Clock
  readonly logger: Logger
}

interface Queue {
  waiting: readonly Waiting[]
  isSending: boolean
  /** In a row. */
  failures: number
  retry: Timer | null
}

const FIRST_DELAY_MS = 15_000
const LONGEST_DELAY_MS = 5 * 60_000
/** A later notification is of no use. */
const LONGEST_AGE_MS = 86_400_000

export class DirectOutbox {
  readonly #parts: DirectOutboxParts
  readonly #queues = new Map<string, Queue>()
  readonly #sending = new Set<Promise<void>>()
  #isClosed = false

  constructor(parts: DirectOutboxParts) {
    this.#parts = parts
  }

  /** The notifications that have not arrived yet, in the order of each channel. */
  get waiting(): readonly Waiting[] {
    return [...this.#queues.values()].flatMap(({ waiting }) => waiting)
  }

  /** Continues the notifications of a predecessor. */
  restore(waiting: readonly Waiting[]): void {
    this.leave(new Set(waiting.map(({ key }) => key)))
    for (const one of waiting) {
      const queue = this.#queueOf(one.channel)
      queue.waiting = [...queue.waiting, one]
      this.#start(one.channel, queue)
    }
  }

  /** Leaves notifications to the next leader. One in flight is not called back, and not tried again. */
  leave(keys: ReadonlySet<string>): void {
    for (const queue of this.#queues.values())
      queue.waiting = queue.waiting.filter(({ key }) => !keys.has(key))
  }

  /** Starts to send, and does not wait for it. */
  add(outgoing: readonly Outgoing[]): void {
    const decidedAt = this.#parts.clock.now()
    for (const one of outgoing) {
      const queue = this.#queueOf(one.channel)
      queue.waiting = withNext(queue.waiting, { ...one, decidedAt, isTried: false })
      this.#start(one.channel, queue)
    }
  }

  /** Waits for the notifications that are in flight, and for those that follow them at once. */
  async settled(): Promise<void> {
    while (this.#sending.size > 0) await Promise.all(this.#sending)
  }

  /** Starts nothing more, and waits for the notifications in flight at most for `limitMs`. */
  async close(limitMs: number): Promise<void> {
    this.#isClosed = true
    for (const { retry } of this.#queues.values()) retry?.cancel()
    if (this.#sending.size === 0) return
    const limit = Promise.withResolvers<void>()
    const timer = this.#parts.clock.setTimer(limitMs, limit.resolve)
    await Promise.race([this.settled(), limit.promise])
    timer.cancel()
  }

  #queueOf(channel: string): Queue {
    const known = this.#queues.get(channel)
    if (known !== undefined) return known
    const queue: Queue = { waiting: [], isSending: false, failures: 0, retry: null }
    this.#queues.set(channel, queue)
    return queue
  }

  #start(channel: string, queue: Queue): void {
    if (queue.isSending || queue.retry !== null || this.#isClosed) return
    queue.isSending = true
    const sending = this.#sendAll(queue).finally(() => {
      queue.isSending = false
      this.#sending.delete(sending)
      if (queue.retry !== null) return
      // One may have been added since the last look.
      if (queue.waiting.length > 0) this.#start(channel, queue)
      else this.#queues.delete(channel)
    })
    this.#sending.add(sending)
  }

  async #sendAll(queue: Queue): Promise<void> {
    while (queue.waiting.length > 0 && !this.#isClosed) {
      const [first, ...others] = queue.waiting as [Waiting, ...Waiting[]]
      queue.waiting = [{ ...first, isTried: true }, ...others]
      if (!(await this.#send(first, queue))) return
      queue.waiting = queue.waiting.filter(({ key }) => key !== first.key)
    }
  }

  /** False: the queue waits. */
  async #send(one: Waiting, queue: Queue): Promise<boolean> {
    const { clock, logger } = this.#parts
    const result = await this.#try(one)
    if (result.outcome === "delivered") {
      queue.failures = 0
      return true
    }
    // Left to the next leader meanwhile.
    if (queue.waiting.length === 0) return true
    const { channel, notification, decidedAt } = one
    const isLost = result.outcome === "permanent" || clock.now() - decidedAt >= LONGEST_AGE_MS
    const delayMs = Math.min(FIRST_DELAY_MS * 2 ** queue.failures, LONGEST_DELAY_MS)
    const next = isLost ? "and never will be" : `trying again in ${delayMs / 1000} s`
    logger.error(
      { channel, rule: notification.rule },
      `${notification.summary}; ${channel} was not notified, ${next}: ${result.detail}`,
    )
    if (isLost) return true
    queue.failures++
    if (this.#isClosed) return false
    queue.retry = clock.setTimer(delayMs, () => {
      queue.retry = null
      this.#start(channel, queue)
    })
    return false
  }

  async #try({ channel, notification }: Waiting): Promise<DirectResult> {
    try {
      return await this.#parts.notifier.sendNow(channel, notification)
    } catch (error) {
      return { outcome: "transient", detail: describe(error) }
    }
  }
}

/**
 * An end replaces the waiting notifications of its group. A channel that was never sent the beginning does not get the end. A channel
 * that may have got the beginning gets the end alone.
 */
function withNext(waiting: readonly Waiting[], next: Waiting): readonly Waiting[] {
  const { kind, groupKey } = next.notification
  if (kind !== "resolved") return [...waiting, next]
  const isPassed = ({ notification }: Waiting) =>
    notification.groupKey === groupKey && notification.kind !== "resolved"
  const left = waiting.filter((one) => !isPassed(one))
  const isUnknown = waiting.some((one) => isPassed(one) && one.notification.kind === "firing" && !one.isTried)
  return isUnknown ? left : [...left, next]
}
