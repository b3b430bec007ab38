/**
 * One timer for all requests that have as much time as each other: they end in the order in which they began, so only the first is
 * waited for. Under load there are hundreds, and a timer of its own for each was more to make, to cancel and to keep.
 */
import type { Clock, Timer } from "../core/clock.ts"

/** What has an end. */
export interface Limited {
  readonly timeoutMs: number
  /** Called once, when its time is over. It stays among the others until it is deleted. */
  timeIsOver(): void
}

interface Line<L> {
  readonly timeoutMs: number
  /** When each ends, the first to end first. */
  readonly endsAt: Map<L, number>
  timer: Timer
}

export class Deadlines<L extends Limited> {
  readonly #clock: Clock
  readonly #lines = new Map<number, Line<L>>()
  readonly #late = new Set<L>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  add(one: L): void {
    const { timeoutMs } = one
    let line = this.#lines.get(timeoutMs)
    if (line === undefined) {
      line = { timeoutMs, endsAt: new Map(), timer: this.#arm(timeoutMs, timeoutMs) }
      this.#lines.set(timeoutMs, line)
    }
    line.endsAt.set(one, this.#clock.elapsedMs() + timeoutMs)
  }

  /** It has ended by itself. */
  delete(one: L): void {
    this.#late.delete(one)
    const line = this.#lines.get(one.timeoutMs)
    if (!line?.endsAt.delete(one) || line.endsAt.size > 0) return
    // A timer would keep a program alive that has nothing else to do.
    line.timer.cancel()
    this.#lines.delete(line.timeoutMs)
  }

  all(): L[] {
    return [...this.#late, ...[...this.#lines.values()].flatMap(({ endsAt }) => [...endsAt.keys()])]
  }

  #arm(timeoutMs: number, delayMs: number): Timer {
    return this.#clock.setTimer(delayMs, () => this.#end(this.#lines.get(timeoutMs)!))
  }

  #end(line: Line<L>): void {
    const now = this.#clock.elapsedMs()
    const late: L[] = []
    let next: number | undefined
    for (const [one, endsAt] of line.endsAt) {
      if (endsAt > now) {
        next = endsAt
        break
      }
      late.push(one)
    }
    for (const one of late) {
      line.endsAt.delete(one)
      this.#late.add(one)
    }
    if (next === undefined) this.#lines.delete(line.timeoutMs)
    else line.timer = this.#arm(line.timeoutMs, next - now)
    for (const one of late) one.timeIsOver()
  }
}
