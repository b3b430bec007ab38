import fc from "fast-check"
import { expect, test } from "vitest"
import { firstHourOf, HOUR_MS, type HourlySum, windowOf } from "./attempt-window.ts"
import { LATENCY_BOUNDS_MS } from "./latency.ts"

const HOUR = 500_000 * HOUR_MS
const MINUTE = 60_000
const BUCKETS = LATENCY_BOUNDS_MS.length + 1

/** All of its attempts took between 100 and 250 ms. */
function sum(hoursAgo: number, attempts: number, succeeded: number): HourlySum {
  const latencies = Array.from({ length: BUCKETS }, (_, i) => (i === 2 ? attempts : 0))
  return { hour: HOUR - hoursAgo * HOUR_MS, attempts, succeeded, latencies }
}

test.each([
  ["at the start of the hour, the hour before counts whole", 0, [sum(0, 0, 0), sum(1, 60, 30)], 60, 0.5],
  ["a quarter later, three quarters of it", 15, [sum(0, 15, 15), sum(1, 60, 0)], 60, 0.25],
  ["at the end of the hour, nothing of it", 60, [sum(0, 10, 9), sum(1, 60, 0)], 10, 0.9],
  ["an older hour never counts", 30, [sum(0, 1, 1), sum(2, 60, 0)], 1, 1],
])("%s", (_what, minutes, sums, attempts, successRate) => {
  expect(windowOf(sums, HOUR + minutes * MINUTE, 1)).toMatchObject({ attempts, successRate })
})

test("without attempts there is no rate and no latency", () => {
  expect(windowOf([], HOUR, 1)).toEqual({ attempts: 0, successRate: null, p95Ms: null })
  expect(windowOf([sum(5, 60, 60)], HOUR, 1)).toEqual({ attempts: 0, successRate: null, p95Ms: null })
})

test("a window of a day has 23 whole hours, the current one, and a part of the first", () => {
  const sums = Array.from({ length: 30 }, (_, i) => sum(i, 60, i < 24 ? 60 : 0))
  const { attempts, successRate, p95Ms } = windowOf(sums, HOUR + 20 * MINUTE, 24)
  expect(attempts).toBe(24 * 60 + 40)
  expect(successRate).toBeCloseTo((24 * 60) / (24 * 60 + 40))
  expect(p95Ms).toBe(Math.round(100 + 0.95 * 150))
})

test("any sums: a rate between 0 and 1, and hours before the first one change nothing", () => {
  const anySum = fc
    .tuple(fc.integer({ min: 0, max: 40 }), fc.nat(1000), fc.nat(1000))
    .map(([hoursAgo, good, bad]) => sum(hoursAgo, good + bad, good))
  fc.assert(
    fc.property(fc.array(anySum), fc.nat(60), fc.constantFrom(1, 24), (sums, minutes, hours) => {
      const now = HOUR + minutes * MINUTE
      const window = windowOf(sums, now, hours)
      const first = firstHourOf(now, hours)
      expect(
        windowOf(
          sums.filter(({ hour }) => hour >= first),
          now,
          hours,
        ),
      ).toEqual(window)
      expect(window.successRate === null).toBe(window.attempts === 0)
      expect(window.p95Ms === null).toBe(window.attempts === 0)
      expect(window.successRate ?? 0).toBeGreaterThanOrEqual(0)
      expect(window.successRate ?? 0).toBeLessThanOrEqual(1)
    }),
  )
})
