/** Counts of deliveries by status: `/stats/delivery`. */
import type { SpanQuery } from "../../resources/query.ts"
import type { Routes } from "../context.ts"
import { ApiError } from "../errors.ts"
import { operation } from "../operation.ts"
import { omitNullish, toDate } from "../query-params.ts"
import { Timestamp, Type } from "../schema.ts"
import { Bounded, HttpErrorOut, searchedTo } from "../schemas/common.ts"
import { which } from "./deliveries.ts"

const DeliveryStatsOut = Type.Named(
  "DeliveryStatsOut",
  Type.Object({
    pending: Type.Integer({ description: "Not tried yet." }),
    failed: Type.Integer({ description: "The last attempt failed, and another is due." }),
    delivered: Type.Integer(),
    dead: Type.Integer({ description: "No further attempt, for any reason." }),
    calledOff: Type.Integer({ description: "Those of the dead that somebody cancelled or expunged." }),
    ...searchedTo,
  }),
)

export const deliveryStatsRoutes: Routes = (app, { tenant }) => {
  app.get(
    "/stats/delivery",
    operation(
      "v1.statistics.deliveries",
      "How many deliveries are in each state, in all, of one application or of one endpoint",
      {
        auth: "org",
        description:
          "It counts rows: with many millions of them it takes its time. With `bounded=true` it counts the newest 10 000.",
        tags: ["Statistics"],
        querystring: Type.Object({
          app_id: which.app_id,
          endpoint_id: which.endpoint_id,
          since: Type.Optional(Timestamp),
          until: Type.Optional(Timestamp),
          ...Bounded,
        }),
        response: { 200: DeliveryStatsOut, 404: HttpErrorOut },
      },
    ),
    async (request) => {
      const { app_id: appId, endpoint_id: endpointId, since, until, bounded } = request.query
      const stats = bounded ? "statsOfNewest" : "stats"
      const span = omitNullish<SpanQuery>({ since: toDate(since), until: toDate(until) })
      if (endpointId === undefined) return tenant(request)[stats](appId, span)
      if (appId !== undefined) return tenant(request).endpoints[stats](appId, endpointId, span)
      throw ApiError.invalidAt(["query", "app_id"], "app_id is required with endpoint_id")
    },
  )
}
