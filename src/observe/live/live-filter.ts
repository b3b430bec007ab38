/** The events that one reader of the live stream gets. */
import { DEFAULT_ORG } from "../../core/org.ts"
import { EVENT_NAMES, TOPIC } from "../public-events.ts"
import type { LiveEvent } from "./event-buffer.ts"
import { acceptedOf, countsAccepted } from "./summary.ts"

/** A gap passes every filter: the lost events are unknown. */
export const LIVE_KINDS = EVENT_NAMES.filter((name) => name !== TOPIC && name !== "gap")
export type LiveKind = (typeof LIVE_KINDS)[number]

/** Null: all of them. */
export interface LiveFilter {
  readonly orgId: string
  /** Applications of the tenant, by id. */
  readonly appIds: readonly string[] | null
  readonly endpointIds: readonly string[] | null
  readonly kinds: readonly string[] | null
  /** Whether gaps say how many events are missing: events of all tenants are counted, which is only the operator's business. */
  readonly seesCounts: boolean
  /** The period of summaries; left out: every event by itself. */
  readonly summaryMs?: number | undefined
}

/** Filters with the same text let the same events through. */
export function filterKey({ orgId, appIds, endpointIds, kinds, seesCounts, summaryMs }: LiveFilter): string {
  return JSON.stringify([
    orgId,
    seesCounts,
    summaryMs,
    ...[appIds, endpointIds, kinds].map((list) => list && [...list].sort()),
  ])
}

export function matches(filter: LiveFilter, event: LiveEvent): boolean {
  const { orgId, appIds, endpointIds, kinds } = filter
  if (event.type === "gap") return true
  if (event.type === "accepted") return countsAccepted(filter) && acceptedOf(filter, event) > 0
  if (kinds !== null && !kinds.includes(event.type)) return false
  // Events of the process are the operator's, whose keys are of the default tenant.
  if (!("app_id" in event)) return orgId === DEFAULT_ORG && appIds === null && endpointIds === null
  if (event.org_id !== orgId) return false
  if (appIds !== null && !appIds.includes(event.app_id)) return false
  return endpointIds === null || ("webhook_id" in event && endpointIds.includes(event.webhook_id))
}
