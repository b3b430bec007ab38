/** What belongs to one endpoint: its secret, headers and figures. */
import type { FastifyRequest } from "fastify"
import type { RotateInput } from "../../resources/endpoints.ts"
import { given } from "../asked.ts"
import type { Routes } from "../context.ts"
import { headersOut, prefixed } from "../endpoint-input.ts"
import { ApiError } from "../errors.ts"
import { operation } from "../operation.ts"
import { NoContent, Timestamp, Type } from "../schema.ts"
import {
  EndpointAttemptStats,
  EndpointHeadersIn,
  EndpointHeadersOut,
  EndpointHeadersPatchIn,
  EndpointSecretOut,
  EndpointSecretRotateIn,
  EndpointStatsOut,
} from "../schemas/endpoint.ts"
import { EndpointId } from "../schemas/fields.ts"
import { attemptCountsOut, countsOut } from "../views/status.ts"

const tags = ["Endpoint"]
const params = Type.Object(EndpointId)
const PATH = "/app/:app_id/endpoint/:endpoint_id"
const span = { since: Type.Optional(Timestamp), until: Type.Optional(Timestamp) }
const HOUR_MS = 3_600_000
const LONGEST_STATS_MS = 28 * 24 * HOUR_MS

export const endpointDetailRoutes: Routes = (app, { tenant }) => {
  app.get(
    `${PATH}/secret`,
    operation("v1.endpoint.get-secret", "The secret that receivers verify with", {
      auth: "app",
      capability: "ViewEndpointSecret",
      tags,
      params,
      response: { 200: EndpointSecretOut },
    }),
    async (request) => {
      const { app_id, endpoint_id } = request.params
      return tenant(request).endpoints.secret(app_id, endpoint_id)
    },
  )

  app.post(
    `${PATH}/secret/rotate`,
    operation(
      "v1.endpoint.rotate-secret",
      "A new secret signs from now on, the old one beside it for a day unless told",
      {
        auth: "app",
        capability: "ManageEndpointSecret",
        tags,
        params,
        body: EndpointSecretRotateIn,
        response: { 200: EndpointSecretOut, 204: NoContent },
      },
    ),
    async (request, reply) => {
      const { app_id, endpoint_id } = request.params
      const { key, gracePeriodSeconds } = request.body
      const rotated = await tenant(request).endpoints.rotateSecret(
        app_id,
        endpoint_id,
        given<RotateInput>({ secret: key && prefixed(key), gracePeriodSeconds }),
      )
      return expectsNoSecret(request) ? reply.code(204).send() : rotated
    },
  )

  app.get(
    `${PATH}/headers`,
    operation(
      "v1.endpoint.get-headers",
      "Headers that are sent with every request; those that look like credentials by name only",
      { auth: "app", tags, params, response: { 200: EndpointHeadersOut } },
    ),
    async (request) => {
      const { app_id, endpoint_id } = request.params
      return headersOut((await tenant(request).endpoints.get(app_id, endpoint_id)).headers)
    },
  )

  app.put(
    `${PATH}/headers`,
    operation("v1.endpoint.update-headers", "Replace the headers", {
      auth: "app",
      capability: "ManageEndpoint",
      tags,
      params,
      body: EndpointHeadersIn,
      response: { 204: NoContent },
    }),
    async (request, reply) => {
      const { app_id, endpoint_id } = request.params
      await tenant(request).endpoints.update(app_id, endpoint_id, { headers: request.body.headers })
      return reply.code(204).send()
    },
  )

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
}

/** Svix's clients before 2.6 expect no body here; the Java one fails on one. */
function expectsNoSecret({ headers }: FastifyRequest): boolean {
  return /^svix-libs\/([01]|2\.[0-5])\./i.test(headers["user-agent"] ?? "")
}

/** The last 28 days unless told. */
function spanOf(asked: { readonly since?: Date | string; readonly until?: Date | string }, now: number) {
  const until = new Date(asked.until ?? now + 60_000)
  const since = new Date(asked.since ?? until.getTime() - LONGEST_STATS_MS)
  if (until < since || until.getTime() - since.getTime() > LONGEST_STATS_MS)
    throw ApiError.of(400, "invalid_range", "since must be before until, and at most 28 days before it")
  return { since, until }
}
