import fc from "fast-check"
import { expect, test } from "vitest"
import type { RollupSum } from "../store/store.ts"
import { type History, NO_HISTORY, sumsOfWindow, toSample, withSample } from "./history.ts"

const HOUR_MS = 3_600_000
const TICK_MS = 15_000
const WINDOW_MS = 600_000

interface Happened {
  readonly at: number
  readonly attemptNumber: number
  readonly isDead: boolean
}

/** The roll-ups of the current hour and the one before, by hour and attempt number. */
function sumsAt(now: number, happened: readonly Happened[]): RollupSum[] {
  const since = now - (now % HOUR_MS) - HOUR_MS
  const past = happened.filter(({ at }) => at <= now && at >= since)
  const groups = Map.groupBy(past, ({ at, attemptNumber }) => `${at - (at % HOUR_MS)} ${attemptNumber}`)
  return [...groups].map(([key, all]) => {
    const [hour, attemptNumber] = key.split(" ").map(Number)
    const dead = all.filter(({ isDead }) => isDead).length
    return { hour, attemptNumber, attempts: all.length, dead } as unknown as RollupSum
  })
}

function historyOf(happened: readonly Happened[], ticks: number): History {
  let history = NO_HISTORY
  for (let tick = 0; tick <= ticks; tick++)
    history = withSample(history, toSample(tick * TICK_MS, sumsAt(tick * TICK_MS, happened)))
  return history
}

test("a window has the attempts of its time, across the change of the hour", () => {
  const event = fc.record({
    at: fc.integer({ min: 1, max: 2 * HOUR_MS }),
    attemptNumber: fc.integer({ min: 1, max: 3 }),
    isDead: fc.boolean(),
  })
  fc.assert(
    fc.property(fc.array(event, { maxLength: 200 }), fc.integer({ min: 50, max: 480 }), (happened, ticks) => {
      const now = ticks * TICK_MS
      const history = historyOf(happened, ticks)
      const { attempts, retries, dead, overMs } = sumsOfWindow(history, WINDOW_MS)
      expect(overMs).toBeGreaterThanOrEqual(WINDOW_MS)
      expect(overMs).toBeLessThanOrEqual(WINDOW_MS + 60_000)
      const within = happened.filter(({ at }) => at <= now && at > now - overMs)
      expect(attempts).toBe(within.length)
      expect(retries).toBe(within.filter(({ attemptNumber }) => attemptNumber > 1).length)
      expect(dead).toBe(within.filter(({ isDead }) => isDead).length)
      expect(history.dead).toBe(happened.filter(({ at, isDead }) => isDead && at <= now).length)
      expect(history.samples.length).toBeLessThan(30)
    }),
  )
})

test("a young history covers the time since its first sample", () => {
  const happened = [{ at: 20_000, attemptNumber: 2, isDead: true }]
  expect(sumsOfWindow(NO_HISTORY, WINDOW_MS)).toEqual({ attempts: 0, retries: 0, dead: 0, overMs: 0 })
  expect(sumsOfWindow(historyOf(happened, 0), WINDOW_MS)).toMatchObject({ attempts: 0, overMs: 0 })
  const sums = sumsOfWindow(historyOf(happened, 4), WINDOW_MS)
  expect(sums).toEqual({ attempts: 1, retries: 1, dead: 1, overMs: 60_000 })
})

test("after hours without a leader, a window begins with the first new sample", () => {
  const before = historyOf([], 4)
  const later = 5 * HOUR_MS
  const happened = [{ at: later - 1, attemptNumber: 1, isDead: true }]
  const history = withSample(before, toSample(later, sumsAt(later, happened)))
  expect(sumsOfWindow(history, WINDOW_MS)).toMatchObject({ attempts: 0, overMs: 0 })
  expect(history.dead).toBe(1)
})

test("a roll-up that an operator removed counts as nothing", () => {
  const history = historyOf([{ at: 1, attemptNumber: 1, isDead: true }], 1)
  const after = withSample(history, toSample(30_000, []))
  expect(sumsOfWindow(after, WINDOW_MS)).toMatchObject({ attempts: 0, dead: 0 })
  expect(after.dead).toBe(history.dead)
})
