/** Time: a steady clock for delays and the wall clock for dates. docs/decisions/0007-steady-clock.md says why. */
import { performance } from "node:perf_hooks"

export interface Timer {
  cancel(): void
}

export interface Clock {
  /** Steady milliseconds since 1970: for delays, ages, and all stored times but dates that a caller gave. */
  now(): number
  /** Monotonic milliseconds: for durations. */
  elapsedMs(): number
  /** The machine's wall clock: for dates that a caller gave, and for the timestamps of signatures. */
  wallNow(): number
  setTimer(delayMs: number, run: () => void): Timer
  /** Whether the event loop was idle for at least a twentieth of the last moments. */
  hasTimeLeft(): boolean
}

/** The sources of a steady clock. Tests move them apart. */
export interface TimeSource {
  wallMs(): number
  monotonicMs(): number
}

const STEP_MS = 1000
const SLEW = 0.05

/** Follows the monotonic source. Differences to the wall clock below a second are corrected at once, others by 5 % of the time that passes. */
export class SteadyTime {
  readonly #source: TimeSource
  #steadyMs: number
  #monotonicMs: number
  #lastMs = 0

  constructor(source: TimeSource) {
    this.#source = source
    this.#steadyMs = source.wallMs()
    this.#monotonicMs = source.monotonicMs()
  }

  now(): number {
    const monotonicMs = this.#source.monotonicMs()
    const passedMs = monotonicMs - this.#monotonicMs
    if (passedMs >= STEP_MS) {
      this.#monotonicMs = monotonicMs
      const expectedMs = this.#steadyMs + passedMs
      const offsetMs = this.#source.wallMs() - expectedMs
      const mostMs = Math.abs(offsetMs) < STEP_MS ? passedMs : passedMs * SLEW
      this.#steadyMs = expectedMs + Math.max(-mostMs, Math.min(mostMs, offsetMs))
      return this.#neverBack(this.#steadyMs)
    }
    return this.#neverBack(this.#steadyMs + passedMs)
  }

  #neverBack(ms: number): number {
    this.#lastMs = Math.max(this.#lastMs, Math.round(ms))
    return this.#lastMs
  }
}

/** The time of both clocks. */
export interface Moment {
  readonly now: number
  readonly wall: number
}

export function momentOf(clock: Clock): Moment {
  return { now: clock.now(), wall: clock.wallNow() }
}

/**
 * The steady time at which a lane checks a date again; now, if the date has passed. A steady clock that is ahead of the wall clock runs
 * slower, so the lane checks a little early and converts the date again.
 */
export function steadyTimeOf(dateMs: number, { now, wall }: Moment): number {
  const leftMs = dateMs - wall
  if (leftMs <= 0) return now
  return now + Math.max(1, Math.floor(now - wall > STEP_MS ? leftMs * (1 - SLEW) : leftMs))
}

/** A date as a due time of the steady clock, which approaches the wall clock until then. If both agree to the second, the date is kept. */
export function steadyDueOf(dateMs: number, { now, wall }: Moment): number {
  if (Math.abs(now - wall) <= STEP_MS) return dateMs
  const leftMs = Math.max(0, dateMs - wall)
  const mostMs = leftMs * SLEW
  return Math.round(now + leftMs + Math.max(-mostMs, Math.min(mostMs, wall - now)))
}

/** Whether the wall clock was set between two moments that are `elapsedMs` apart. */
export function wasSet(before: Moment, after: Moment, elapsedMs: number): boolean {
  const movedMs = Math.abs(after.wall - after.now - (before.wall - before.now))
  return movedMs > STEP_MS + elapsedMs * SLEW
}

const LONGEST_TIMER_MS = 2 ** 31 - 1
const MOST_BUSY = 0.95
const MOMENT_MS = 20

function loopHasTimeLeft(source: TimeSource): () => boolean {
  let use = performance.eventLoopUtilization()
  let lookedAt = source.monotonicMs()
  let hasTime = true
  return () => {
    const now = source.monotonicMs()
    if (now - lookedAt < MOMENT_MS) return hasTime
    const before = use
    use = performance.eventLoopUtilization()
    lookedAt = now
    hasTime = performance.eventLoopUtilization(use, before).utilization < MOST_BUSY
    return hasTime
  }
}

export function systemClock(): Clock {
  const source: TimeSource = { wallMs: () => Date.now(), monotonicMs: () => performance.now() }
  const steady = new SteadyTime(source)
  return {
    now: () => steady.now(),
    elapsedMs: source.monotonicMs,
    wallNow: source.wallMs,
    setTimer(delayMs, run) {
      const handle = setTimeout(run, Math.min(Math.max(0, delayMs), LONGEST_TIMER_MS))
      return { cancel: () => clearTimeout(handle) }
    },
    hasTimeLeft: loopHasTimeLeft(source),
  }
}
