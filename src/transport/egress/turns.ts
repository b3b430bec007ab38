/** Turns at something scarce: so many at once under one key, the rest in that key's own line, where they delay no other key. */
import type { Clock } from "../../core/clock.ts"

interface Line {
  underWay: number
  readonly waiting: Set<() => void>
}

export class Turns {
  readonly #most: number
  readonly #waitMs: number
  readonly #clock: Clock
  readonly #lines = new Map<string, Line>()

  constructor(most: number, waitMs: number, clock: Clock) {
    this.#most = most
    this.#waitMs = waitMs
    this.#clock = clock
  }

  /** Runs it at once, or when its turn comes; the answer is `tooLate`'s when that took longer than `waitMs`. */
  run<T>(key: string, task: () => Promise<T>, tooLate: () => T): Promise<T> {
    const line = this.#lines.get(key) ?? { underWay: 0, waiting: new Set() }
    this.#lines.set(key, line)
    if (line.underWay < this.#most) return this.#start(key, line, task)
    return new Promise((resolve) => {
      const turn = () => {
        deadline.cancel()
        line.waiting.delete(turn)
        resolve(this.#start(key, line, task))
      }
      const deadline = this.#clock.setTimer(this.#waitMs, () => {
        line.waiting.delete(turn)
        resolve(tooLate())
      })
      line.waiting.add(turn)
    })
  }

  async #start<T>(key: string, line: Line, task: () => Promise<T>): Promise<T> {
    line.underWay++
    try {
      return await task()
    } finally {
      line.underWay--
      const [next] = line.waiting
      if (next !== undefined) next()
      else if (line.underWay === 0) this.#lines.delete(key)
    }
  }
}
