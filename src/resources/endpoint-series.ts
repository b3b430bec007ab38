/** An endpoint over time: its attempts by the hour, from the hourly sums, and the status codes of the newest attempts. */
import { HOUR_MS } from "../core/attempt-window.ts"
import { invalid } from "../core/errors.ts"
import { percentile } from "../core/latency.ts"
import type { RollupSum, StatusCodeCount } from "../store/store.ts"
import { parseSpan, type SpanQuery } from "./query.ts"
import { date, type ResourceContext } from "./resource-context.ts"

export interface EndpointSeries {
  /** Every hour of the span, also those without attempts; the oldest first. */
  readonly hours: readonly SeriesHour[]
  /** Of the newest attempts, the most frequent first. */
  readonly statusCodes: readonly StatusCodeCount[]
  /** The number of attempts in `statusCodes`: those of the newest 1000 that began in the span. */
  readonly sampled: number
}

export interface SeriesHour {
  /** Its start. An attempt belongs to the hour in which it ended. */
  readonly hour: Date
  readonly attempts: number
  readonly succeeded: number
  /** Attempts after the first of their delivery. */
  readonly retries: number
  /** Deliveries that were given up. */
  readonly dead: number
  /** Attempts without an HTTP status. */
  readonly noResponse: number
  /** Estimated from the buckets of a histogram; null without attempts. */
  readonly p50Ms: number | null
  readonly p95Ms: number | null
}

const MOST_SAMPLED = 1000
const DEFAULT_SPAN_MS = 24 * HOUR_MS
/** As long as the sums are kept. */
const LONGEST_SPAN_MS = 90 * 24 * HOUR_MS

export async function readSeries(
  { store, clock }: Pick<ResourceContext, "store" | "clock">,
  endpointId: string,
  query: SpanQuery,
): Promise<EndpointSeries> {
  const { since, until } = hoursOf(query, clock.now())
  const [sums, statusCodes] = await Promise.all([
    store.sumRollups({ endpointIds: [endpointId], since, until }, ["hour", "retries"]),
    store.countStatusCodes({ endpointId, since, until }, MOST_SAMPLED),
  ])
  const sumsOf = Map.groupBy(sums, ({ hour }) => hour!)
  const length = (until - since) / HOUR_MS
  const starts = Array.from({ length }, (_, i) => since + i * HOUR_MS)
  return {
    hours: starts.map((hour) => toHour(hour, sumsOf.get(hour) ?? [])),
    statusCodes,
    sampled: statusCodes.reduce((all, { count }) => all + count, 0),
  }
}

/** Whole hours, as the sums are; at most the last 90 days of the span. */
function hoursOf(query: SpanQuery, now: number) {
  const { since, until = now + 1 } = parseSpan(query)
  const end = Math.ceil(until / HOUR_MS) * HOUR_MS
  const begin = Math.floor((since ?? end - DEFAULT_SPAN_MS) / HOUR_MS) * HOUR_MS
  if (begin >= end) throw invalid("since", "must be before until")
  return { since: Math.max(begin, end - LONGEST_SPAN_MS), until: end }
}

function toHour(hour: number, sums: readonly RollupSum[]): SeriesHour {
  const total = (of: (sum: RollupSum) => number) => sums.reduce((all, sum) => all + of(sum), 0)
  const latencies = (sums[0]?.latencies ?? []).map((_, i) => total((sum) => sum.latencies[i]!))
  const latency = (share: number) => {
    const ms = percentile(latencies, share)
    return ms === null ? null : Math.round(ms)
  }
  return {
    hour: date(hour),
    attempts: total(({ attempts }) => attempts),
    succeeded: total(({ succeeded }) => succeeded),
    retries: total(({ attemptNumber, attempts }) => (attemptNumber! > 1 ? attempts : 0)),
    dead: total(({ dead }) => dead),
    noResponse: total(({ noResponse }) => noResponse),
    p50Ms: latency(0.5),
    p95Ms: latency(0.95),
  }
}
