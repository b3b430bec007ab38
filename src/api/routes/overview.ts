/** The whole store at one look: `/overview`. */
import type { Routes } from "../context.ts"
import { operation } from "../operation.ts"
import { OverviewOut } from "../schemas/overview.ts"
import { overviewOut } from "../views/overview.ts"

export const overviewRoutes: Routes = (app, { posthorn }) => {
  app.get(
    "/overview",
    operation(
      "v1.overview.get",
      "What waits, which endpoints are in trouble, and the attempts of the last day",
      {
        auth: "operator",
        description:
          "Of all organizations. One process of those that deliver reads the store at intervals and saves the result, so that a request reads one row, from any process.",
        tags: ["Overview"],
        response: { 200: OverviewOut },
      },
    ),
    async () => overviewOut(await posthorn.overview(), posthorn.context.clock.now()),
  )
}
