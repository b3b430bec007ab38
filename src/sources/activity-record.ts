/** What came to a source lately: counts, and the newest requests that were refused, without their bodies. */
import type { RefusalReason } from "../core/inbound-results.ts"
import { date } from "../resources/resource-context.ts"
import type { Entry } from "../store/store.ts"

export interface RefusedRequest {
  readonly at: Date
  readonly reason: RefusalReason
  /** The result of the verification, or why the server could not take the request, for the operator alone. */
  readonly detail: string | null
  readonly method: string
  /** Behind the source's URL, cut. */
  readonly path: string
  readonly remoteAddress: string | null
  readonly userAgent: string | null
}

interface RefusedRecord extends Omit<RefusedRequest, "at"> {
  readonly at: number
}

export interface SourceActivity {
  readonly accepted: number
  /** Repetitions of a delivery that was accepted before. */
  readonly duplicates: number
  readonly handshakes: number
  /** By reason; those that did not happen are left out. */
  readonly refused: { readonly [R in RefusalReason]?: number }
  readonly lastAcceptedAt: Date | null
  readonly lastRefusedAt: Date | null
  /** The newest first, at most 20. */
  readonly recent: readonly RefusedRequest[]
}

export interface ActivityRecord extends Omit<SourceActivity, "lastAcceptedAt" | "lastRefusedAt" | "recent"> {
  readonly lastAcceptedAt: number | null
  readonly lastRefusedAt: number | null
  readonly recent: readonly RefusedRecord[]
}

export const ACTIVITY_KIND = "source-activity"
const MOST_RECENT = 20
const KEPT_MS = 30 * 86_400_000

export const NO_ACTIVITY: ActivityRecord = {
  accepted: 0,
  duplicates: 0,
  handshakes: 0,
  refused: {},
  lastAcceptedAt: null,
  lastRefusedAt: null,
  recent: [],
}

/** Of two spans of time, or of two processes. */
export function merge(a: ActivityRecord, b: ActivityRecord): ActivityRecord {
  const reasons = [...new Set([...Object.keys(a.refused), ...Object.keys(b.refused)])] as RefusalReason[]
  const later = (x: number | null, y: number | null) => (x === null || y === null ? (x ?? y) : Math.max(x, y))
  return {
    accepted: a.accepted + b.accepted,
    duplicates: a.duplicates + b.duplicates,
    handshakes: a.handshakes + b.handshakes,
    refused: Object.fromEntries(
      reasons.map((reason) => [reason, (a.refused[reason] ?? 0) + (b.refused[reason] ?? 0)]),
    ),
    lastAcceptedAt: later(a.lastAcceptedAt, b.lastAcceptedAt),
    lastRefusedAt: later(a.lastRefusedAt, b.lastRefusedAt),
    recent: [...a.recent, ...b.recent].sort((x, y) => y.at - x.at).slice(0, MOST_RECENT),
  }
}

export function activityOf(entry: Entry | null): ActivityRecord {
  return entry === null ? NO_ACTIVITY : JSON.parse(entry.body)
}

export function showActivity(entry: Entry | null): SourceActivity {
  const record = activityOf(entry)
  return {
    ...record,
    lastAcceptedAt: date(record.lastAcceptedAt),
    lastRefusedAt: date(record.lastRefusedAt),
    recent: record.recent.map((one) => ({ ...one, at: date(one.at) })),
  }
}

/** Expires after 30 days without a request. */
export function activityEntry(
  source: { readonly id: string; readonly orgId: string; readonly appId: string },
  before: Entry | null,
  record: ActivityRecord,
  now: number,
): Entry {
  return {
    kind: ACTIVITY_KIND,
    orgId: source.orgId,
    name: source.id,
    owner: source.appId,
    body: JSON.stringify(record),
    version: (before?.version ?? 0) + 1,
    createdAt: before?.createdAt ?? now,
    updatedAt: now,
    expiresAt: now + KEPT_MS,
  }
}
