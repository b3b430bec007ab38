/** The attempts of the last hours, estimated from hourly sums. */
import { percentile } from "./latency.ts"

export const HOUR_MS = 3_600_000
export const DAY_HOURS = 24

export interface HourlySum {
  /** When the hour began. */
  readonly hour: number
  readonly attempts: number
  readonly succeeded: number
  /** Attempts by the buckets of `LATENCY_BOUNDS_MS`. */
  readonly latencies: readonly number[]
}

export interface AttemptWindow {
  /** With the window's part of its first hour, rounded up. */
  readonly attempts: number
  /** Between 0 and 1; null without attempts. */
  readonly successRate: number | null
  /** 95 % of the attempts took no longer; null without attempts. */
  readonly p95Ms: number | null
}

/** The first hour whose sum belongs to a window. */
export function firstHourOf(now: number, hours: number): number {
  const from = now - hours * HOUR_MS
  return from - (from % HOUR_MS)
}

/** The window begins within an hour: as much of that hour's sum counts as the window has of the hour, as if attempts were evenly spread. */
export function windowOf(sums: readonly HourlySum[], now: number, hours: number): AttemptWindow {
  const from = now - hours * HOUR_MS
  let attempts = 0
  let succeeded = 0
  const latencies: number[] = []
  for (const sum of sums) {
    const part = Math.min(Math.max((sum.hour + HOUR_MS - from) / HOUR_MS, 0), 1)
    attempts += part * sum.attempts
    succeeded += part * sum.succeeded
    for (const [i, count] of sum.latencies.entries()) latencies[i] = (latencies[i] ?? 0) + part * count
  }
  if (attempts === 0) return { attempts: 0, successRate: null, p95Ms: null }
  const p95Ms = percentile(latencies, 0.95)
  return {
    attempts: Math.ceil(attempts),
    // Sums of fractions may exceed 1 by a rounding error.
    successRate: Math.min(succeeded / attempts, 1),
    p95Ms: p95Ms === null ? null : Math.round(p95Ms),
  }
}
