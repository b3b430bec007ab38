/** The query of a cost report, validated. */
import { invalid } from "../core/errors.ts"
import {
  ifGiven,
  optionalOneOf,
  refuseUnknown,
  requireBoolean,
  requireNumber,
  requireObject,
  requireText,
  wholeNumber,
} from "../core/input.ts"
import { HOUR_MS, LAST_ATTEMPT_NUMBER, ROLLUP_KEPT_MS } from "../store/rollups.ts"
import { COST_GROUPINGS, type CostGrouping } from "./cost-groups.ts"
import { parseSpan, type SpanQuery } from "./query.ts"

export interface CostQuery extends SpanQuery {
  /** Of this application, by id or uid; without it, of all. */
  app?: string
  /** Of this endpoint of the application, by id or uid. */
  endpoint?: string
  eventType?: string
  /** Also one cost for each group. */
  by?: CostGrouping
  /** Groups are the endpoints that are degraded, failing, open or disabled now. */
  failing?: boolean
  /** The most groups, at most 250; 50 by default, 10 with `failing`. */
  limit?: number
  /** What if deliveries were given up after this number of attempts? At most 19. */
  maxAttempts?: number
  /** What if deliveries were given up at this age in seconds? */
  maxAge?: number
}

export interface ParsedCostQuery {
  readonly app: string | undefined
  readonly endpoint: string | undefined
  readonly eventType: string | undefined
  readonly since: number
  readonly until: number
  readonly by: CostGrouping | null
  readonly failing: boolean
  readonly limit: number
  readonly maxAttempts: number | null
  readonly maxAge: number | null
}

const FIELDS = [
  ...["app", "endpoint", "eventType", "since", "until", "by", "failing", "limit", "maxAttempts", "maxAge"],
] as const
const DEFAULT_SPAN_MS = 7 * 24 * HOUR_MS
const LONGEST_AGE_SECONDS = 3650 * 86_400

export function parseCostQuery(query: CostQuery, now: number): ParsedCostQuery {
  requireObject(query, "query")
  refuseUnknown(query, FIELDS, "")
  const { app, endpoint, eventType, by, failing, limit, maxAttempts, maxAge } = query
  if (endpoint !== undefined && app === undefined) throw invalid("app", "is required with endpoint")
  const isFailing = ifGiven(failing, "failing", requireBoolean) ?? false
  const grouping = optionalOneOf(by, "by", COST_GROUPINGS) ?? (isFailing ? "endpoint" : null)
  if (isFailing && grouping !== "endpoint") throw invalid("by", "must be endpoint, or left out, with failing")
  return {
    app: ifGiven(app, "app", (value, field) => requireText(value, field, 256)),
    endpoint: ifGiven(endpoint, "endpoint", (value, field) => requireText(value, field, 256)),
    eventType: ifGiven(eventType, "eventType", (value, field) => requireText(value, field, 256)),
    ...spanOf(query, now),
    by: grouping,
    failing: isFailing,
    limit:
      ifGiven(limit, "limit", (value, field) => wholeNumber(value, field, 1, 250)) ?? (isFailing ? 10 : 50),
    maxAttempts:
      ifGiven(maxAttempts, "maxAttempts", (value, field) =>
        wholeNumber(value, field, 1, LAST_ATTEMPT_NUMBER - 1),
      ) ?? null,
    maxAge:
      ifGiven(maxAge, "maxAge", (value, field) => requireNumber(value, field, 0.001, LONGEST_AGE_SECONDS)) ??
      null,
  }
}

/** In whole hours, as the sums are: the span begins at the start of its first hour and ends at the end of its last one. */
function spanOf(
  { since, until }: CostQuery,
  now: number,
): { readonly since: number; readonly until: number } {
  const span = parseSpan({
    ...(since === undefined ? {} : { since }),
    ...(until === undefined ? {} : { until }),
  })
  const end = Math.ceil((span.until ?? now) / HOUR_MS) * HOUR_MS
  const begin = Math.floor((span.since ?? end - DEFAULT_SPAN_MS) / HOUR_MS) * HOUR_MS
  if (begin >= end) throw invalid("since", "must be before until")
  // The first hour whose sums are kept. The answer names it instead of an earlier `since`.
  const kept = (Math.floor((now - ROLLUP_KEPT_MS) / HOUR_MS) + 1) * HOUR_MS
  if (end <= kept) throw invalid("until", "must be within the last 90 days: older sums are removed")
  return { since: Math.max(begin, kept), until: end }
}
