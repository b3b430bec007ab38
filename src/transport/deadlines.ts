/**
 * Deadlines of requests, with one timer for all requests of the same timeout: their deadlines pass in the order in which they began, so
 * only the first needs a timer. Under load hundreds are in flight, and one timer each cost more time and memory.
 */
import type { Clock, Timer } from "../core/clock.ts"

export interface Deadlined {
  readonly timeoutMs: number
  /** Called once. The request stays in `all` until it is deleted. */
  deadlinePassed(): void
}

/** The requests with the same timeout. */
interface Group<R> {
  readonly timeoutMs: number
  /** In the order in which the deadlines pass. */
  readonly endsAt: Map<R, number>
  timer: Timer
}

export class Deadlines<R extends Deadlined> {
  readonly #clock: Clock
  readonly #groups = new Map<number, Group<R>>()
  readonly #late = new Set<R>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  add(request: R): void {
    const { timeoutMs } = request
    let group = this.#groups.get(timeoutMs)
    if (group === undefined) {
      group = { timeoutMs, endsAt: new Map(), timer: this.#arm(timeoutMs, timeoutMs) }
      this.#groups.set(timeoutMs, group)
    }
    group.endsAt.set(request, this.#clock.elapsedMs() + timeoutMs)
  }

  /** The request has ended. */
  delete(request: R): void {
    this.#late.delete(request)
    const group = this.#groups.get(request.timeoutMs)
    if (!group?.endsAt.delete(request) || group.endsAt.size > 0) return
    // A timer without requests would keep an otherwise finished program alive.
    group.timer.cancel()
    this.#groups.delete(group.timeoutMs)
  }

  all(): R[] {
    return [...this.#late, ...[...this.#groups.values()].flatMap(({ endsAt }) => [...endsAt.keys()])]
  }

  #arm(timeoutMs: number, delayMs: number): Timer {
    return this.#clock.setTimer(delayMs, () => this.#end(this.#groups.get(timeoutMs)!))
  }

  #end(group: Group<R>): void {
    const now = this.#clock.elapsedMs()
    const late: R[] = []
    let next: number | undefined
    for (const [request, endsAt] of group.endsAt) {
      if (endsAt > now) {
        next = endsAt
        break
      }
      late.push(request)
    }
    for (const request of late) {
      group.endsAt.delete(request)
      this.#late.add(request)
    }
    if (next === undefined) this.#groups.delete(group.timeoutMs)
    else group.timer = this.#arm(group.timeoutMs, next - now)
    for (const request of late) request.deadlinePassed()
  }
}
