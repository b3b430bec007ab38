/** Latency histograms: how many requests took how long, and the percentiles that follow. */

/** Upper bounds of the buckets, exclusive; the last bucket, for slower requests, has none. Each is a column of `attempt_rollups`. */
export const LATENCY_BOUNDS_MS: readonly number[] = [50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000]

export function latencyBucketOf(durationMs: number): number {
  const bucket = LATENCY_BOUNDS_MS.findIndex((bound) => durationMs < bound)
  return bucket === -1 ? LATENCY_BOUNDS_MS.length : bucket
}

/**
 * The latency in milliseconds that `share` of the requests did not exceed, estimated by linear interpolation within its bucket. The last
 * bucket gives its lower bound. Null without requests.
 */
export function percentile(buckets: readonly number[], share: number): number | null {
  const rank = share * buckets.reduce((sum, count) => sum + count, 0)
  let below = 0
  for (const [i, count] of buckets.entries()) {
    if (count > 0 && below + count >= rank) {
      const from = LATENCY_BOUNDS_MS[i - 1] ?? 0
      const to = LATENCY_BOUNDS_MS[i] ?? from
      return from + ((to - from) * (rank - below)) / count
    }
    below += count
  }
  return null
}
