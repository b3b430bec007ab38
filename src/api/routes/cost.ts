/** What retries cost: `/statistics/cost`, of the organization and of an application. */
import type { CostGrouping, CostQuery } from "../../resources/cost.ts"
import { COST_GROUPINGS } from "../../resources/cost-groups.ts"
import type { Routes } from "../context.ts"
import { operation } from "../operation.ts"
import { omitNullish, toDate } from "../query-params.ts"
import { Timestamp, Type } from "../schema.ts"
import { CostReportOut } from "../schemas/cost.ts"
import { AppId, EventTypeName } from "../schemas/fields.ts"
import { which } from "./deliveries.ts"

const tags = ["Statistics"]
const response = { 200: CostReportOut }
const description =
  "From hourly sums, which are kept for 90 days: `since` and `until` are widened to whole hours. Prices are a setting of the server."

const QUERY = {
  since: Type.Optional({ ...Timestamp, description: "7 days before `until` unless told." }),
  until: Type.Optional(Timestamp),
  event_type: Type.Optional(EventTypeName),
  by: Type.Optional(Type.Enum(COST_GROUPINGS, { description: "Also one cost for each group." })),
  failing: Type.Optional(
    Type.Boolean({
      description: "Groups are the endpoints that are degraded, failing, open or disabled now.",
    }),
  ),
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 250, description: "The most groups: 50, or 10 with `failing`." }),
  ),
  max_attempts: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 19,
      description: "What if deliveries were given up after this number of attempts?",
    }),
  ),
  max_age: Type.Optional(
    Type.Number({
      minimum: 0.001,
      maximum: 315_360_000,
      description: "What if deliveries were given up at this age in seconds?",
    }),
  ),
}

interface CostParams {
  readonly since?: Date | string
  readonly until?: Date | string
  readonly endpoint_id?: string
  readonly event_type?: string
  readonly by?: CostGrouping
  readonly failing?: boolean
  readonly limit?: number
  readonly max_attempts?: number
  readonly max_age?: number
}

function costQuery(query: CostParams): CostQuery {
  const { since, until, endpoint_id: endpoint, event_type: eventType, by, failing, limit } = query
  return omitNullish<CostQuery>({
    since: toDate(since),
    until: toDate(until),
    endpoint,
    eventType,
    by,
    failing,
    limit,
    maxAttempts: query.max_attempts,
    maxAge: query.max_age,
  })
}

export const costRoutes: Routes = (app, { tenant }) => {
  app.get(
    "/statistics/cost",
    operation("v1.statistics.cost", "What the attempts of all applications cost, and what fewer would", {
      auth: "org",
      description,
      tags,
      querystring: Type.Object(QUERY),
      response,
    }),
    async (request) => tenant(request).cost.report(costQuery(request.query)),
  )

  app.get(
    "/app/:app_id/statistics/cost",
    operation("v1.statistics.app-cost", "What an application's attempts cost, and what fewer would", {
      auth: "org",
      description,
      tags,
      params: Type.Object(AppId),
      querystring: Type.Object({ ...QUERY, endpoint_id: which.endpoint_id }),
      response,
    }),
    async (request) =>
      tenant(request).cost.report({ ...costQuery(request.query), app: request.params.app_id }),
  )
}
