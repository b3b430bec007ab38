/** Translates the overview into the API's object. */
import { HEALTH_STATES } from "../../core/health.ts"
import { type Overview, totalsByNumber, totalsOfHours } from "../../monitor/overview.ts"
import { validDate } from "../../resources/endpoint-health.ts"
import type { OverviewOut } from "../schemas/overview.ts"

const NOTHING: Omit<Overview, "surveyedAt"> = {
  deliveries: { due: 0, scheduled: 0, retrying: 0, held: 0 },
  oldestDue: null,
  endpoints: Object.fromEntries(HEALTH_STATES.map((state) => [state, 0])) as Overview["endpoints"],
  troubled: [],
  deadLetters: [],
  hours: [],
}

export function overviewOut(overview: Overview | null, now: number): OverviewOut {
  const { deliveries, oldestDue, endpoints, troubled, deadLetters, hours } = overview ?? NOTHING
  return {
    at: new Date(now),
    surveyedAt: overview && new Date(overview.surveyedAt),
    deliveries,
    oldestDue: oldestDue && { ...oldestDue, at: new Date(oldestDue.at) },
    endpoints,
    troubled: troubled.map((one) => ({ ...one, since: validDate(one.since) })),
    deadLetters: deadLetters.map((one) => ({ ...one, oldestAt: new Date(one.oldestAt) })),
    hours: totalsOfHours(hours, now).map((one) => ({ ...one, hour: new Date(one.hour) })),
    attempts: totalsByNumber(hours, now),
  }
}
