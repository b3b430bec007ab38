import { expect, test } from "vitest"
import { RecentCount } from "./limits.ts"

/** Ten counts a second, from the first time to the second, which is left out. */
function steady(fromMs: number, toMs: number): RecentCount {
  const count = new RecentCount(300_000, 5)
  for (let at = fromMs; at < toMs; at += 100) count.add(at)
  return count
}

test.each([
  ["at the start of a bucket", 600_000, 1_200_000],
  ["within a bucket", 600_000, 1_230_000],
  ["soon after the first count", 600_000, 690_000],
  ["when the buckets of before are forgotten", 600_000, 3_600_000],
])("a steady rate is measured as it is, %s", (_name, fromMs, toMs) => {
  expect(steady(fromMs, toMs).perSecond(toMs)).toBe(10)
})

test("a burst is averaged over a bucket", () => {
  expect(steady(600_000, 606_000).perSecond(606_000)).toBe(1)
})

test("without counts the rate is zero", () => {
  expect(new RecentCount(300_000, 5).perSecond(600_000)).toBe(0)
})
