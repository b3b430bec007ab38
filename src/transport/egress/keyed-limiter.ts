/** Limits how many tasks run at once for each key. Tasks over the limit wait in their key's own queue and delay no other key. */
import type { Clock } from "../../core/clock.ts"

interface Queue {
  running: number
  readonly waiting: Set<() => void>
}

export class KeyedLimiter {
  readonly #limit: number
  readonly #waitMs: number
  readonly #clock: Clock
  readonly #queues = new Map<string, Queue>()

  constructor(limit: number, waitMs: number, clock: Clock) {
    this.#limit = limit
    this.#waitMs = waitMs
    this.#clock = clock
  }

  /** Runs the task now or when a place is free. After `waitMs` in the queue the task is dropped, and the result is that of `tooLate`. */
  run<T>(key: string, task: () => Promise<T>, tooLate: () => T): Promise<T> {
    const queue = this.#queues.get(key) ?? { running: 0, waiting: new Set() }
    this.#queues.set(key, queue)
    if (queue.running < this.#limit) return this.#start(key, queue, task)
    return new Promise((resolve) => {
      const start = () => {
        deadline.cancel()
        queue.waiting.delete(start)
        resolve(this.#start(key, queue, task))
      }
      const deadline = this.#clock.setTimer(this.#waitMs, () => {
        queue.waiting.delete(start)
        resolve(tooLate())
      })
      queue.waiting.add(start)
    })
  }

  async #start<T>(key: string, queue: Queue, task: () => Promise<T>): Promise<T> {
    queue.running++
    try {
      return await task()
    } finally {
      queue.running--
      const [next] = queue.waiting
      if (next !== undefined) next()
      else if (queue.running === 0) this.#queues.delete(key)
    }
  }
}
