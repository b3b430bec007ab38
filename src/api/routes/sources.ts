/** Sources: `/app/{app_id}/source`. The operator's: they let strangers send messages. An application's keys may look at them. */
import type { FastifyRequest } from "fastify"
import type { Source, SourceInput } from "../../sources/sources.ts"
import { hasCapability, seesInbound } from "../access.ts"
import { requireCaller } from "../auth.ts"
import type { Routes } from "../context.ts"
import { operation } from "../operation.ts"
import { originOf } from "../origin.ts"
import { omitNullish, pageQuery } from "../query-params.ts"
import { NoContent, Type } from "../schema.ts"
import { ListResponse, Order, PageQuery } from "../schemas/common.ts"
import { AppId } from "../schemas/fields.ts"
import {
  SourceActivityOut,
  SourceId,
  SourceIn,
  SourceOut,
  SourcePatch,
  SourceSecretRotateIn,
} from "../schemas/source.ts"
import { listOut } from "../views/views.ts"

const tags = ["Source"]
const LIST = "/app/:app_id/source"
const ONE = `${LIST}/:source_id`
const params = Type.Object(SourceId)
const querystring = Type.Object({ ...PageQuery, order: Type.Optional(Order) })
const response = { 200: ListResponse("ListResponseSourceOut", SourceOut) }

export const sourceRoutes: Routes = (app, { tenant, publicUrl }) => {
  const shownTo = (request: FastifyRequest) => {
    const base = hasCapability(requireCaller(request), "ManageEndpoint")
      ? (publicUrl ?? originOf(request))
      : null
    return (source: Source) => sourceOut(source, base)
  }

  app.get(
    LIST,
    operation("v1.source.list", "List sources, without their secrets", {
      auth: "app",
      tags,
      params: Type.Object(AppId),
      querystring,
      response,
    }),
    async (request) => {
      const page = await tenant(request).sources.list(request.params.app_id, pageQuery(request.query))
      return listOut(page, shownTo(request))
    },
  )

  app.get(
    "/source",
    operation("v1.source.list-all", "List the sources of all applications, without their secrets", {
      auth: "org",
      tags,
      querystring,
      response,
    }),
    async (request) =>
      listOut(await tenant(request).sources.list(null, pageQuery(request.query)), shownTo(request)),
  )

  app.post(
    LIST,
    operation("v1.source.create", "Create a source: a URL that takes webhooks in from a provider", {
      auth: "org",
      description:
        "Any method, path, query and bytes behind the URL are taken in. A request is verified, stored as a message of the application, " +
        "and only then answered with 202.",
      tags,
      params: Type.Object(AppId),
      body: SourceIn,
      response: { 201: SourceOut },
    }),
    async (request, reply) => {
      const made = await tenant(request).sources.create(request.params.app_id, request.body as SourceInput)
      return reply.code(201).send(shownTo(request)(made))
    },
  )

  app.get(
    ONE,
    operation("v1.source.get", "Get a source, without its secrets", {
      auth: "app",
      tags,
      params,
      response: { 200: SourceOut },
    }),
    async (request) => {
      const { app_id, source_id } = request.params
      return shownTo(request)(await tenant(request).sources.get(app_id, source_id))
    },
  )

  app.patch(
    ONE,
    operation("v1.source.patch", "Change a source; its URL stays", {
      auth: "org",
      description: "A secret replaces all others at once; a rotation accepts the old one for a while.",
      tags,
      params,
      body: SourcePatch,
      response: { 200: SourceOut },
    }),
    async (request) => {
      const { app_id, source_id } = request.params
      const input = request.body as Partial<SourceInput>
      return shownTo(request)(await tenant(request).sources.update(app_id, source_id, input))
    },
  )

  app.delete(
    ONE,
    operation("v1.source.delete", "Delete a source; its URL ends at once, its messages stay", {
      auth: "org",
      tags,
      params,
      response: { 204: NoContent },
    }),
    async (request, reply) => {
      const { app_id, source_id } = request.params
      await tenant(request).sources.delete(app_id, source_id)
      return reply.code(204).send()
    },
  )

  app.post(
    `${ONE}/secret/rotate`,
    operation(
      "v1.source.rotate-secret",
      "Verify with a new secret from now on, and with the old one for a day unless told",
      { auth: "org", tags, params, body: SourceSecretRotateIn, response: { 200: SourceOut } },
    ),
    async (request) => {
      const { app_id, source_id } = request.params
      const { secret, gracePeriodSeconds } = request.body
      const input = { secret, ...omitNullish<{ gracePeriodSeconds: number }>({ gracePeriodSeconds }) }
      return shownTo(request)(await tenant(request).sources.rotateSecret(app_id, source_id, input))
    },
  )

  app.get(
    `${ONE}/activity`,
    operation("v1.source.activity", "What came to a source lately, and what was refused", {
      auth: "app",
      description:
        "Up to two seconds old. It is kept for 30 days after the last request. Only keys of the whole organization see `recent`, " +
        "the requests that were refused; for others it is empty.",
      tags,
      params,
      response: { 200: SourceActivityOut },
    }),
    async (request) => {
      const { app_id, source_id } = request.params
      const activity = (await tenant(request).sources.activity(app_id, source_id)) as SourceActivityOut
      return seesInbound(requireCaller(request)) ? activity : { ...activity, recent: [] }
    },
  )
}

/** `base`: the address of the server; null hides the URL, whose token is secret. */
function sourceOut({ token: _token, path, ...source }: Source, base: string | null): SourceOut {
  return { ...source, ...(base === null ? {} : { url: base + path }) }
}
