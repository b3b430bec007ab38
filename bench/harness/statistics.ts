/** Median, percentiles and ratios. */

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other)
  return (sorted[(sorted.length - 1) >> 1]! + sorted[sorted.length >> 1]!) / 2
}

/** The smallest value that at least this share of all values, from 0 to 100, does not exceed. */
export function percentile(values: Iterable<number>, percent: number): number {
  const sorted = Float64Array.from(values).sort()
  return sorted[Math.max(0, Math.ceil((sorted.length * percent) / 100) - 1)] ?? Number.NaN
}

/** The median of the ratios of neighbouring rounds: a disturbance of the machine reaches both, or only one pair of many. */
export function medianRatio(ones: readonly number[], others: readonly number[]): number {
  return median(ones.map((one, round) => one / others[round]!))
}
