/** Sums of attempts over the last minutes: differences between samples of the hourly roll-ups. */
import type { RollupSum } from "../store/store.ts"

interface HourSums {
  readonly hour: number
  readonly attempts: number
  /** Attempts after the first. */
  readonly retries: number
  /** Deliveries that were given up. */
  readonly dead: number
}

/** The roll-ups of the current hour and the one before, as they were at one time. */
export interface Sample {
  readonly at: number
  readonly hours: readonly HourSums[]
}

/** The leader's memory, which its successor continues. */
export interface History {
  /** The oldest first. */
  readonly samples: readonly Sample[]
  /** All deliveries that were given up since the hour before the first sample. It never goes down. */
  readonly dead: number
}

export const NO_HISTORY: History = { samples: [], dead: 0 }
const NOTHING: Sample = { at: 0, hours: [] }

/** How long samples are kept, and the longest window that can be asked for. */
export const LONGEST_WINDOW_MS = 600_000
/** Samples are kept at least this far apart, so that the leader writes little. */
const APART_MS = 30_000

/** `sums` are grouped by hour and attempt number. */
export function toSample(at: number, sums: readonly RollupSum[]): Sample {
  const hours = Map.groupBy(sums, ({ hour }) => hour!)
  const total = (some: readonly RollupSum[], field: "attempts" | "dead") =>
    some.reduce((sum, one) => sum + one[field], 0)
  return {
    at,
    hours: [...hours].map(([hour, all]) => ({
      hour,
      attempts: total(all, "attempts"),
      retries: total(
        all.filter(({ attemptNumber }) => attemptNumber! > 1),
        "attempts",
      ),
      dead: total(all, "dead"),
    })),
  }
}

/** The newest sample is always replaced or added; of the others, those within the longest window stay. */
export function withSample({ samples, dead }: History, sample: Sample): History {
  const newest = samples.at(-1)
  const before = samples.at(-2)
  const isClose = newest !== undefined && before !== undefined && newest.at - before.at < APART_MS
  const kept = isClose ? samples.slice(0, -1) : samples
  const oldestAt = sample.at - LONGEST_WINDOW_MS - 2 * APART_MS
  return {
    samples: [...kept.filter(({ at }) => at >= oldestAt && at < sample.at), sample],
    dead: dead + difference(newest ?? NOTHING, sample).dead,
  }
}

export interface WindowSums extends Omit<HourSums, "hour"> {
  /** The length of the time that the samples cover; at most about the window. */
  readonly overMs: number
}

/** The attempts of the window that ends with the newest sample. */
export function sumsOfWindow({ samples }: History, windowMs: number): WindowSums {
  const newest = samples.at(-1)
  const first =
    newest &&
    samples.findLast(({ at }) => newest.at - at >= windowMs && newest.at - at <= windowMs + APART_MS * 2)
  const base = first ?? samples.find(({ at }) => newest !== undefined && newest.at - at <= windowMs)
  if (newest === undefined || base === undefined) return { attempts: 0, retries: 0, dead: 0, overMs: 0 }
  return { ...difference(base, newest), overMs: newest.at - base.at }
}

function difference(from: Sample, to: Sample): Omit<HourSums, "hour"> {
  const sums = { attempts: 0, retries: 0, dead: 0 }
  for (const now of to.hours) {
    const then = from.hours.find(({ hour }) => hour === now.hour)
    // A sum can only shrink by an operator's hand.
    for (const field of ["attempts", "retries", "dead"] as const)
      sums[field] += Math.max(0, now[field] - (then?.[field] ?? 0))
  }
  return sums
}
