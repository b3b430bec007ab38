/** The overview of the whole store: the leader makes it from each snapshot, and every process shows it. */
import { DAY_HOURS, HOUR_MS } from "../core/attempt-window.ts"
import type { HealthState } from "../core/health.ts"
import type { DeadReason } from "../core/policy.ts"
import type { RollupSum, Survey } from "../store/store.ts"
import type { Snapshot } from "./snapshot.ts"

export interface OverviewEndpoint {
  readonly endpointId: string
  readonly orgId: string
  readonly appId: string
  /** Empty: the application was deleted meanwhile. */
  readonly appName: string
  readonly url: string
  readonly health: HealthState
  /** A sentence for an operator. */
  readonly why: string
  readonly since: number | null
  /** Deliveries that wait for it, for any reason. */
  readonly waiting: number
}

/** The attempts of an hour with the same number; those of `RollupSum.attemptNumber`. */
export interface NumberCounts {
  readonly number: number
  readonly attempts: number
  readonly succeeded: number
  readonly dead: number
}

export interface HourCounts {
  /** When the hour began. */
  readonly hour: number
  readonly byNumber: readonly NumberCounts[]
}

/** Of all tenants but Posthorn's own. */
export interface Overview {
  readonly surveyedAt: number
  readonly deliveries: Survey["deliveries"]
  readonly oldestDue: {
    readonly at: number
    readonly endpointId: string
    /** Null: the endpoint is gone. */
    readonly appId: string | null
  } | null
  readonly endpoints: Snapshot["endpoints"]
  /** The most urgent first. */
  readonly troubled: readonly OverviewEndpoint[]
  readonly deadLetters: readonly {
    readonly reason: DeadReason
    readonly count: number
    readonly oldestAt: number
  }[]
  /** Those of the last 24 hours that have attempts, the oldest first. */
  readonly hours: readonly HourCounts[]
}

/** The first of the hours that an overview shows. */
export function firstShownHour(now: number): number {
  return now - (now % HOUR_MS) - (DAY_HOURS - 1) * HOUR_MS
}

/** Hours of an earlier overview, with those that were read anew in their place. `sums` are grouped by hour and attempt number. */
export function withHours(
  before: readonly HourCounts[],
  sums: readonly RollupSum[],
  now: number,
): HourCounts[] {
  const read = [...Map.groupBy(sums, ({ hour }) => hour!)].map(([hour, all]) => ({
    hour,
    byNumber: all.map(({ attemptNumber, attempts, succeeded, dead }) => ({
      number: attemptNumber!,
      ...{ attempts, succeeded, dead },
    })),
  }))
  const isRead = new Set(read.map(({ hour }) => hour))
  return [...before.filter(({ hour }) => !isRead.has(hour)), ...read]
    .filter(({ hour }) => hour >= firstShownHour(now))
    .toSorted((a, b) => a.hour - b.hour)
}

export interface HourTotals {
  readonly hour: number
  readonly attempts: number
  readonly succeeded: number
  /** Deliveries that were given up. */
  readonly dead: number
  /** Attempts after the first. */
  readonly retries: number
}

/** Each of the 24 hours up to now, also those without attempts. */
export function totalsOfHours(hours: readonly HourCounts[], now: number): HourTotals[] {
  const byHour = new Map(hours.map((one) => [one.hour, one.byNumber]))
  return Array.from({ length: DAY_HOURS }, (_, n) => {
    const hour = firstShownHour(now) + n * HOUR_MS
    const totals = { hour, attempts: 0, succeeded: 0, dead: 0, retries: 0 }
    for (const { number, attempts, succeeded, dead } of byHour.get(hour) ?? []) {
      totals.attempts += attempts
      totals.succeeded += succeeded
      totals.dead += dead
      if (number > 1) totals.retries += attempts
    }
    return totals
  })
}

/** The attempts of the 24 hours by their number, the first attempts first. */
export function totalsByNumber(hours: readonly HourCounts[], now: number): Omit<NumberCounts, "dead">[] {
  const totals = new Map<number, { number: number; attempts: number; succeeded: number }>()
  for (const { byNumber } of hours.filter(({ hour }) => hour >= firstShownHour(now))) {
    for (const { number, attempts, succeeded } of byNumber) {
      const total = totals.get(number) ?? { number, attempts: 0, succeeded: 0 }
      totals.set(number, total)
      total.attempts += attempts
      total.succeeded += succeeded
    }
  }
  // 0 stands for deliveries that were given up without an attempt.
  return [...totals.values()].filter(({ number }) => number > 0).sort((a, b) => a.number - b.number)
}
