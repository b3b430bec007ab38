/** Secret, headers and statistics of an endpoint. */

import type { SpanQuery } from "../../resources/query.ts"
import type { Routes } from "../context.ts"
import { ApiError } from "../errors.ts"
import { operation } from "../operation.ts"
import { omitNullish, toDate } from "../query-params.ts"
import { NoContent, Timestamp, Type } from "../schema.ts"
import { EndpointAttemptStats, EndpointHeadersPatchIn, EndpointStatsOut } from "../schemas/endpoint.ts"
import { EndpointSeriesOut } from "../schemas/endpoint-health.ts"
import { EndpointId } from "../schemas/fields.ts"
import { attemptCountsOut, countsOut } from "../views/status.ts"
import { secretRoutes } from "./endpoint-secret.ts"

const tags = ["Endpoint"]
const params = Type.Object(EndpointId)
const PATH = "/app/:app_id/endpoint/:endpoint_id"
const span = { since: Type.Optional(Timestamp), until: Type.Optional(Timestamp) }
const HOUR_MS = 3_600_000
const LONGEST_STATS_MS = 28 * 24 * HOUR_MS

export const endpointDetailRoutes: Routes = (app, { tenant }) => {
  secretRoutes(app, {
    path: PATH,
    tags,
    params,
    auth: "app",
    prefix: "v1.endpoint",
    putHeaders: "update-headers",
    secretSummary: "The secret that receivers verify with",
    // Svix's clients before 2.6 expect no body here; the Java one fails on one.
    answersSecret: ({ headers }) => !/^svix-libs\/([01]|2\.[0-5])\./i.test(headers["user-agent"] ?? ""),
    async find(request) {
      const { app_id, endpoint_id } = request.params as { app_id: string; endpoint_id: string }
      return { endpoints: tenant(request).endpoints, names: [app_id, endpoint_id] }
    },
  })

  app.patch(
    `${PATH}/headers`,
    operation("v1.endpoint.patch-headers", "Add or replace headers; null and deleteHeaders take them away", {
      auth: "app",
      capability: "ManageEndpoint",
      tags,
      params,
      body: EndpointHeadersPatchIn,
      response: { 204: NoContent },
    }),
    async (request, reply) => {
      const { app_id, endpoint_id } = request.params
      const { headers = {}, deleteHeaders = [] } = request.body
      const gone = Object.fromEntries(deleteHeaders.map((name) => [name, null]))
      await tenant(request).endpoints.patchHeaders(app_id, endpoint_id, { ...headers, ...gone })
      return reply.code(204).send()
    },
  )

  app.get(
    `${PATH}/stats`,
    operation("v1.endpoint.get-stats", "What became of the messages of up to 28 days", {
      auth: "app",
      tags,
      params,
      querystring: Type.Object(span),
      response: { 200: EndpointStatsOut },
    }),
    async (request) => {
      const { app_id, endpoint_id } = request.params
      const span = spanOf(request.query, tenant(request).context.clock.now())
      return countsOut(await tenant(request).endpoints.stats(app_id, endpoint_id, span))
    },
  )

  app.get(
    `${PATH}/attempt-stats`,
    operation(
      "v1.endpoint.get-attempt-stats",
      "How many attempts of up to 28 days succeeded and failed, in whole hours",
      { auth: "app", tags, params, querystring: Type.Object(span), response: { 200: EndpointAttemptStats } },
    ),
    async (request) => {
      const { app_id, endpoint_id } = request.params
      const { since, until } = spanOf(request.query, tenant(request).context.clock.now())
      const hours = {
        since: HOUR_MS * Math.floor(since.getTime() / HOUR_MS),
        until: HOUR_MS * Math.ceil(until.getTime() / HOUR_MS),
      }
      return attemptCountsOut(await tenant(request).endpoints.attemptStats(app_id, endpoint_id, hours))
    },
  )

  app.get(
    `${PATH}/series`,
    operation(
      "v1.endpoint.series",
      "An endpoint's attempts and latency by the hour, and the status codes of the newest attempts",
      {
        auth: "app",
        description: "The last 24 hours, or a span of up to 90 days, in whole hours.",
        tags,
        params,
        querystring: Type.Object(span),
        response: { 200: EndpointSeriesOut },
      },
    ),
    async (request) => {
      const { app_id, endpoint_id } = request.params
      const { since, until } = request.query
      const span = omitNullish<SpanQuery>({ since: toDate(since), until: toDate(until) })
      const { hours, statusCodes, sampled } = await tenant(request).endpoints.series(
        app_id,
        endpoint_id,
        span,
      )
      return { hours: [...hours], statusCodes: [...statusCodes], sampled }
    },
  )
}

/** The last 28 days by default. */
function spanOf(asked: { readonly since?: Date | string; readonly until?: Date | string }, now: number) {
  const until = new Date(asked.until ?? now + 60_000)
  const since = new Date(asked.since ?? until.getTime() - LONGEST_STATS_MS)
  if (until < since || until.getTime() - since.getTime() > LONGEST_STATS_MS)
    throw ApiError.of(400, "invalid_range", "since must be before until, and at most 28 days before it")
  return { since, until }
}
