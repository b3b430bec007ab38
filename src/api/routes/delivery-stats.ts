/** How many deliveries are in each state: `/stats/delivery`. */
import type { Routes } from "../context.ts"
import { Type } from "../schema.ts"
import { HttpErrorOut } from "../shapes.ts"
import { which } from "./deliveries.ts"

const DeliveryStatsOut = Type.Named(
  "DeliveryStatsOut",
  Type.Object({
    pending: Type.Integer({ description: "Not tried yet." }),
    failed: Type.Integer({ description: "Failed, and tried again." }),
    delivered: Type.Integer(),
    dead: Type.Integer({ description: "Given up, for whatever reason." }),
    calledOff: Type.Integer({ description: "Those of the dead that somebody cancelled or expunged." }),
  }),
)

export const deliveryStatsRoutes: Routes = (app, { tenant }) => {
  app.get(
    "/stats/delivery",
    {
      config: { auth: "org" },
      schema: {
        operationId: "v1.statistics.deliveries",
        summary: "How many deliveries are in each state, in all or of one application",
        description: "It counts rows: with many millions of them it takes its time.",
        tags: ["Statistics"],
        querystring: Type.Object({ app_id: which.app_id }),
        response: { 200: DeliveryStatsOut, 404: HttpErrorOut },
      },
    },
    async (request) => tenant(request).stats(request.query.app_id),
  )
}
