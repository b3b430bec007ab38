import { expect, test } from "vitest"
import { LATENCY_BOUNDS_MS, latencyBucketOf, percentile } from "./latency.ts"

/** Counts by bucket; the others are 0. */
function buckets(counts: { readonly [bucket: number]: number }): number[] {
  return Array.from({ length: LATENCY_BOUNDS_MS.length + 1 }, (_, i) => counts[i] ?? 0)
}

test.each([
  [0, 0],
  [49, 0],
  [50, 1],
  [999, 4],
  [1000, 5],
  [29_999, 8],
  [30_000, 9],
  [86_400_000, 9],
])("a request of %i ms is in bucket %i", (durationMs, bucket) => {
  expect(latencyBucketOf(durationMs)).toBe(bucket)
})

test.each<[string, number[], number, number | null]>([
  ["no requests", buckets({}), 0.95, null],
  ["the middle of the first bucket", buckets({ 0: 10 }), 0.5, 25],
  ["nineteen twentieths of a later bucket", buckets({ 2: 100 }), 0.95, 100 + 150 * 0.95],
  ["the bucket in which the rank falls", buckets({ 0: 90, 4: 10 }), 0.95, 750],
  ["the upper bound, when the rank ends a bucket", buckets({ 0: 95, 9: 5 }), 0.95, 50],
  ["empty buckets in between", buckets({ 0: 1, 8: 1 }), 0.75, 20_000],
  ["the lower bound of the last bucket", buckets({ 9: 3 }), 0.95, 30_000],
  ["the fastest request", buckets({ 3: 2 }), 0, 250],
  ["the slowest request", buckets({ 0: 1, 3: 2 }), 1, 500],
])("percentile: %s", (_what, counts, share, expected) => {
  const found = percentile(counts, share)
  if (expected === null) expect(found).toBeNull()
  else expect(found).toBeCloseTo(expected, 9)
})
