/** The events that one reader of the live stream gets. */
import { DEFAULT_ORG } from "../../core/org.ts"
import { EVENT_NAMES, type PublicEvent, TOPIC } from "../public-events.ts"

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
}

/** Filters with the same text let the same events through. */
export function filterKey({ orgId, appIds, endpointIds, kinds, seesCounts }: LiveFilter): string {
  return JSON.stringify([
    orgId,
    seesCounts,
    ...[appIds, endpointIds, kinds].map((list) => list && [...list].sort()),
  ])
}

export function matches({ orgId, appIds, endpointIds, kinds }: LiveFilter, event: PublicEvent): boolean {
  if (event.type === "gap") return true
  if (kinds !== null && !kinds.includes(event.type)) return false
  // Events of the process are the operator's, whose keys are of the default tenant.
  if (!("app_id" in event)) return orgId === DEFAULT_ORG && appIds === null && endpointIds === null
  if (event.org_id !== orgId) return false
  if (appIds !== null && !appIds.includes(event.app_id)) return false
  return endpointIds === null || ("webhook_id" in event && endpointIds.includes(event.webhook_id))
}
