/** A tenant's usage: `/stats`. */
import type { UsageQuery } from "../../resources/usage.ts"
import type { Routes } from "../context.ts"
import { operation } from "../operation.ts"
import { omitNullish } from "../query-params.ts"
import { Type } from "../schema.ts"
import { TaskStartedOut } from "../schemas/delivery.ts"
import { ActiveAppCount, AppUsageStatsIn, AppUsageStatsOut, EndpointCountOut } from "../schemas/usage.ts"
import { taskStartedOut } from "../views/views.ts"

const tags = ["Statistics"]

export const usageRoutes: Routes = (app, { tenant }) => {
  app.post(
    "/stats/usage/app",
    operation(
      "v1.statistics.aggregate-app-stats",
      "How many messages each application sent, and to how many endpoints",
      {
        auth: "org",
        isRecorded: false,
        description: "The answer is a task; its data have `appStats`.",
        tags,
        body: AppUsageStatsIn,
        response: { 202: AppUsageStatsOut },
      },
    ),
    async (request, reply) => {
      const { since, until, appIds } = request.body
      const { task, unresolved } = await tenant(request).usage.applications({
        since: new Date(since),
        until: new Date(until),
        ...omitNullish<UsageQuery>({ appIds }),
      })
      return reply.code(202).send({ ...taskStartedOut(task), unresolvedAppIds: unresolved })
    },
  )

  app.put(
    "/stats/usage/event-types",
    operation(
      "v1.statistics.aggregate-event-types",
      "Which event types the endpoints of each application ask for",
      {
        auth: "org",
        isRecorded: false,
        description: "The answer is a task; its data have `event_types`.",
        tags,
        response: { 202: TaskStartedOut },
      },
    ),
    async (request, reply) => reply.code(202).send(taskStartedOut(await tenant(request).usage.eventTypes())),
  )

  app.get(
    "/stats/endpoint/count",
    operation("v1.statistics.endpoint-count", "How many endpoints there are", {
      auth: "org",
      tags,
      response: { 200: EndpointCountOut },
    }),
    async (request) => tenant(request).usage.endpoints(),
  )

  app.get(
    "/app/stats/count-active",
    operation("v1.application.count-active", "How many applications have an endpoint that is not disabled", {
      auth: "org",
      tags,
      querystring: Type.Object({
        exclude_disabled: Type.Optional(
          Type.Boolean({ default: true, description: "Without it, those that have any endpoint." }),
        ),
      }),
      response: { 200: ActiveAppCount },
    }),
    async (request) => {
      const withDisabled = !(request.query.exclude_disabled ?? true)
      return { count: await tenant(request).usage.activeApplications({ withDisabled }) }
    },
  )
}
