/** Live events: `/events`. */
import type { FastifyRequest } from "fastify"
import { hasCode, invalid, notFound } from "../../core/errors.ts"
import { isId } from "../../core/ids.ts"
import { DEFAULT_ORG } from "../../core/org.ts"
import { parseEventId } from "../../observe/event-id.ts"
import { LIVE_KINDS, type LiveFilter } from "../../observe/live/live-filter.ts"
import type { Tenant } from "../../tenant.ts"
import { requireCaller } from "../auth.ts"
import type { Caller } from "../caller.ts"
import type { Routes } from "../context.ts"
import { ApiError } from "../errors.ts"
import { STREAM_HEADERS, streamEvents } from "../event-connection.ts"
import { operation } from "../operation.ts"
import { Type } from "../schema.ts"
import { HttpErrorOut } from "../schemas/common.ts"

const Name = Type.String({ minLength: 1, maxLength: 256 })
const MOST_NAMES = 50

const querystring = Type.Object({
  app_id: Type.Optional(
    Type.Array(Name, { maxItems: MOST_NAMES, description: "Only of these applications, by id or uid." }),
  ),
  endpoint_id: Type.Optional(
    Type.Array(Name, {
      maxItems: MOST_NAMES,
      description: "Only of these endpoints, by id; by uid together with one application.",
    }),
  ),
  kind: Type.Optional(
    Type.Array(Type.Enum(LIVE_KINDS as [string, ...string[]]), {
      description: "Only events of these kinds.",
    }),
  ),
  summary_ms: Type.Optional(
    Type.Integer({
      minimum: 250,
      maximum: 60_000,
      description:
        "In place of events, at most one event `summary` in so many milliseconds: counts by kind, accepted messages, failed attempts, and the rarer events in full.",
    }),
  ),
  last_event_id: Type.Optional(
    Type.String({ maxLength: 64, description: "For clients that cannot set the header Last-Event-ID." }),
  ),
})

const headers = Type.Object(
  {
    "last-event-id": Type.Optional(
      Type.String({ description: "The id of the last event that was read: the stream goes on after it." }),
    ),
  },
  { additionalProperties: true },
)

const Stream = Type.Unsafe<never>({
  description: "OK",
  content: {
    "text/event-stream": {
      schema: {
        type: "string",
        description:
          "Server-sent events. `event` is the kind, `data` its fields as JSON, `id` the place to resume from. An event `gap` says that events are missing. With `summary_ms`, an event `summary` has `from`, `to`, `accepted`, `counts`, `failedAttempts`, `events` and `dropped`.",
      },
    },
  },
})

interface EventQuery {
  readonly app_id?: readonly string[]
  readonly endpoint_id?: readonly string[]
  readonly kind?: readonly string[]
  readonly summary_ms?: number
}

export const eventRoutes: Routes = (app, context) => {
  const { posthorn, tenant } = context
  app.addHook("preClose", async () => posthorn.liveEvents?.close())

  app.get(
    "/events",
    operation("v1.events.stream", "Follow what happens, as server-sent events", {
      auth: "read",
      capability: "ViewBase",
      tags: ["Events"],
      description:
        "Attempts, deliveries, dead letters and changes of endpoints, while they happen. A key of the whole organization sees all of its applications, another key its own. " +
        "Nothing is stored: the stream resumes from a buffer in memory, and a `gap` event takes the place of events that it no longer has.",
      querystring,
      headers,
      response: { 200: Stream, 404: HttpErrorOut, 409: HttpErrorOut },
    }),
    async (request, reply) => {
      const { liveEvents } = posthorn
      if (liveEvents === null) throw elsewhere()
      const filter = await filterOf(requireCaller(request), tenant(request), request.query)
      const lastEventId = lastEventIdOf(request, request.query.last_event_id)
      if (request.method === "HEAD") return reply.headers(STREAM_HEADERS).send("" as never)
      try {
        streamEvents(liveEvents, context, { filter, lastEventId }, request, reply)
      } catch (error) {
        if (!hasCode(error, "limit_reached")) throw error
        throw ApiError.of(503, "overloaded", `${(error as Error).message}; try again`, 5)
      }
      return reply
    },
  )
}

function elsewhere(): ApiError {
  return ApiError.of(
    409,
    "events_elsewhere",
    "this process does not deliver, and on SQLite only the process that delivers sees the events: ask its server",
  )
}

/** The header that clients send by themselves is newer than the address that they were given. */
function lastEventIdOf({ headers: given }: FastifyRequest, parameter: string | undefined): string | null {
  const header = given["last-event-id"]
  const id = typeof header === "string" && header !== "" ? header : parameter
  if (id === undefined || parseEventId(id) !== null) return id ?? null
  const loc = id === parameter ? ["query", "last_event_id"] : ["header", "last-event-id"]
  throw ApiError.invalidAt(loc, "must be the id of an event of this stream")
}

/** Rejects with `not_found` for names that the caller's tenant, or application, does not have. */
async function filterOf({ orgId, appId }: Caller, tenant: Tenant, query: EventQuery): Promise<LiveFilter> {
  const { app_id: apps = [], endpoint_id: endpoints = [], kind: kinds = [], summary_ms: summaryMs } = query
  const named = await Promise.all(apps.map(async (app) => idOfApplication(tenant, app, appId)))
  const appIds = appId === null ? unlessEmpty(named) : [appId]
  const endpointIds = await Promise.all(endpoints.map((one) => idOfEndpoint(tenant, one, appIds)))
  const seesCounts = orgId === DEFAULT_ORG && appId === null
  const narrowed = { appIds, endpointIds: unlessEmpty(endpointIds), kinds: unlessEmpty(kinds) }
  return { orgId, ...narrowed, seesCounts, summaryMs }
}

async function idOfApplication(tenant: Tenant, name: string, only: string | null): Promise<string> {
  const { id } = await tenant.applications.get(name)
  if (only !== null && id !== only) throw notFound("application", name)
  return id
}

/** By uid, if one application is named; by id, among all that the caller reaches. */
async function idOfEndpoint(tenant: Tenant, name: string, appIds: LiveFilter["appIds"]): Promise<string> {
  if (appIds?.length === 1) return (await tenant.endpoints.get(appIds[0]!, name)).id
  if (!isId("ep", name))
    throw invalid("endpoint", "must be an endpoint's id: a uid names one only together with one application")
  const endpoint = (await tenant.endpoints.getMany([name])).get(name)
  if (endpoint === undefined || appIds?.includes(endpoint.appId) === false) throw notFound("endpoint", name)
  return endpoint.id
}

/** Each once: a uid and an id may name the same. */
function unlessEmpty(names: readonly string[]): readonly string[] | null {
  return names.length === 0 ? null : [...new Set(names)]
}
