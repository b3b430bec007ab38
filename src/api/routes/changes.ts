/** The record of changes: `/change`. */
import type { ChangeQuery } from "../../resources/changes.ts"
import type { Routes } from "../context.ts"
import { operation } from "../operation.ts"
import { omitNullish, pageQuery } from "../query-params.ts"
import { Type } from "../schema.ts"
import { ChangeOut } from "../schemas/change.ts"
import { HttpErrorOut, ListResponse, PageQuery } from "../schemas/common.ts"
import { listOut } from "../views/views.ts"

export const changeRoutes: Routes = (app, { tenant, changes }) => {
  app.get(
    "/change",
    operation("v1.change.list", "List who changed what in the last 90 days, the newest first", {
      auth: "org",
      description:
        "Every call that changed something is recorded once, with the key, the login or the portal that made it. Messages, signing in and out, and calls that were " +
        "refused are not recorded. A change is recorded after it was made, without delaying the answer: a server that is killed in between loses the record of it.",
      tags: ["Change"],
      querystring: Type.Object({
        ...PageQuery,
        app_id: Type.Optional(
          Type.String({
            minLength: 1,
            maxLength: 256,
            description: "Of this application, by id or uid; by id also of a deleted one.",
          }),
        ),
        endpoint_id: Type.Optional(
          Type.String({
            minLength: 1,
            maxLength: 256,
            description: "Of this endpoint, by id; with app_id also by uid.",
          }),
        ),
      }),
      response: { 200: ListResponse("ListResponseChangeOut", ChangeOut), 404: HttpErrorOut },
    }),
    async (request) => {
      const { app_id, endpoint_id, ...page } = request.query
      // A caller sees the changes that this server has made before.
      await changes.settled()
      const query = omitNullish<ChangeQuery>({ app: app_id, endpoint: endpoint_id })
      return listOut(await tenant(request).changes.list({ ...query, ...pageQuery(page) }), (change) => change)
    },
  )
}
