/** Dead letters: `/dead-letter`. */

import type { DeadGroup } from "../../resources/dead-letters.ts"
import type { Routes } from "../context.ts"
import { operation } from "../operation.ts"
import { pageQuery } from "../query-params.ts"
import { Type } from "../schema.ts"
import { Bounded, BoundedListResponse, HttpErrorOut, PageQuery, searchedTo } from "../schemas/common.ts"
import { DeadGroupOut, DeliveryOut, TaskStartedOut } from "../schemas/delivery.ts"
import { deliveryOut, listOut, taskStartedOut } from "../views/views.ts"
import { deliveryQuery, which } from "./deliveries.ts"

const tags = ["Dead Letter"]
const params = Type.Object({ delivery_id: Type.String({ minLength: 1, maxLength: 64 }) })
const Filter = Type.Named("DeadLetterFilter", Type.Filter(Type.Object(which)))

function groupOut({ errorDetail, ...group }: DeadGroup) {
  return { ...group, error: errorDetail }
}

export const deadLetterRoutes: Routes = (app, { tenant }) => {
  app.get(
    "/dead-letter",
    operation("v1.dead-letter.list", "List what was given up and not discarded, the newest first", {
      auth: "org",
      tags,
      querystring: Type.Object({ ...PageQuery, ...Bounded, ...which }),
      response: { 200: BoundedListResponse("ListResponseDeadLetterOut", DeliveryOut), 404: HttpErrorOut },
    }),
    async (request) => {
      const query = { ...deliveryQuery(request.query), ...pageQuery(request.query) }
      return listOut(await tenant(request).dead.list(query), deliveryOut)
    },
  )

  app.get(
    "/dead-letter/count",
    operation(
      "v1.dead-letter.count",
      "How many a retry or discard with the same filter would take: the preview",
      {
        auth: "org",
        tags,
        querystring: Type.Object({ ...Bounded, ...which }),
        response: {
          200: Type.Named("DeadLetterCountOut", Type.Object({ count: Type.Integer(), ...searchedTo })),
          404: HttpErrorOut,
        },
      },
    ),
    async (request) => {
      const { dead } = tenant(request)
      const query = deliveryQuery(request.query)
      return request.query.bounded ? dead.countNewest(query) : { count: await dead.count(query) }
    },
  )

  app.get(
    "/dead-letter/group",
    operation("v1.dead-letter.group", "Dead letters by endpoint, reason and error, the largest group first", {
      auth: "org",
      tags,
      querystring: Type.Object({
        limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 250 })),
        by: Type.Optional(
          Type.Enum(["error", "cause"], {
            description: "`cause` takes errors with the same start, up to a colon, together: `HTTP 500`.",
          }),
        ),
        ...Bounded,
        ...which,
      }),
      response: {
        200: Type.Named("DeadGroupList", Type.Object({ data: Type.Array(DeadGroupOut), ...searchedTo })),
        404: HttpErrorOut,
      },
    }),
    async (request) => {
      const { dead } = tenant(request)
      const { bounded, by = "error", limit = 100 } = request.query
      const query = deliveryQuery(request.query)
      if (!bounded) return { data: (await dead.groups(query, limit, { by })).map(groupOut) }
      const { groups, searchedTo } = await dead.groupsOfNewest(query, limit, { by })
      return { data: groups.map(groupOut), searchedTo }
    },
  )

  for (const action of ["retry", "discard"] as const) {
    app.post(
      `/dead-letter/:delivery_id/${action}`,
      operation(
        `v1.dead-letter.${action}`,
        action === "retry" ? "Send one again" : "Take one off the list; its record stays",
        { auth: "org", tags, params, response: { 200: DeliveryOut } },
      ),
      async (request) => deliveryOut(await tenant(request).dead[action](request.params.delivery_id)),
    )

    app.post(
      `/dead-letter/${action}`,
      operation(
        `v1.dead-letter.${action}-many`,
        action === "retry" ? "Send what fits again" : "Take what fits off the list",
        { auth: "org", tags, body: Filter, response: { 202: TaskStartedOut, 404: HttpErrorOut } },
      ),
      async (request, reply) => {
        const task = await tenant(request).dead[`${action}Many`](deliveryQuery(request.body))
        return reply.code(202).send(taskStartedOut(task))
      },
    )
  }
}
