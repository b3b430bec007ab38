/** Messages: `/app/{app_id}/msg`. */
import { hasCode } from "../../core/errors.ts"
import { seesInbound } from "../access.ts"
import { requireCaller } from "../auth.ts"
import type { Routes } from "../context.ts"
import { operation } from "../operation.ts"
import { readPayloadPage } from "../payload-pages.ts"
import { contentQuery, pageQuery, viewOptions } from "../query-params.ts"
import { NoContent, Type } from "../schema.ts"
import { Bounded, BoundedListResponse, PageQuery } from "../schemas/common.ts"
import { TaskStartedOut } from "../schemas/delivery.ts"
import { AppId, Channels, content, EventTypeName, MessageId, Uid } from "../schemas/fields.ts"
import { MessageIn, MessageOut } from "../schemas/message.ts"
import { idempotencyKeyOf, postMessage, SEND_ACCESS, traceOf } from "../send-message.ts"
import { listOut, messageOut, taskStartedOut } from "../views/views.ts"

const tags = ["Message"]
const params = Type.Object(MessageId)
export const withContent = {
  with_content: Type.Optional(
    Type.Boolean({
      description: "False leaves the payload, and the request of a source, out of the answer.",
    }),
  ),
}

export const messageRoutes: Routes = (app, { tenant }) => {
  app.post(
    "/app/:app_id/msg",
    operation("v1.message.create", "Send a message: answered when it is written down", {
      ...SEND_ACCESS,
      tags,
      params: Type.Object(AppId),
      querystring: Type.Object(withContent),
      body: MessageIn,
      response: { 202: MessageOut },
    }),
    async (request, reply) => {
      const answer = await postMessage(tenant(request), {
        app: request.params.app_id,
        body: request.body,
        rawBody: request.rawBody!,
        idempotencyKey: idempotencyKeyOf(request),
        trace: traceOf(request),
        withContent: request.query.with_content !== false,
      })
      return reply.code(202).send(answer)
    },
  )

  app.get(
    "/app/:app_id/msg",
    operation("v1.message.list", "List messages, the newest first", {
      auth: "app",
      tags,
      params: Type.Object(AppId),
      querystring: Type.Object({ ...PageQuery, ...Bounded, ...content, ...withContent }),
      response: { 200: BoundedListResponse("ListResponseMessageOut", MessageOut) },
    }),
    async (request) => {
      const view = { ...viewOptions(request.query), inbound: seesInbound(requireCaller(request)) }
      const query = { ...contentQuery(request.query), ...pageQuery(request.query), withPayload: false }
      const read = (asked: object) =>
        tenant(request).messages.list(request.params.app_id, { ...query, ...asked })
      if (!view.content) return listOut(await read({}), (message) => messageOut(message, view))
      const { list, found } = await readPayloadPage(tenant(request), query, read, ({ id }) => id)
      return listOut(list, (message) => messageOut(found.get(message.id) ?? message, view))
    },
  )

  app.get(
    "/app/:app_id/msg/:msg_id",
    operation("v1.message.get", "Get a message", {
      auth: "app",
      tags,
      params,
      querystring: Type.Object(withContent),
      response: { 200: MessageOut },
    }),
    async (request) => {
      const { app_id, msg_id } = request.params
      const view = { ...viewOptions(request.query), inbound: seesInbound(requireCaller(request)) }
      return messageOut(await tenant(request).messages.get(app_id, msg_id), view)
    },
  )

  app.delete(
    "/app/:app_id/msg/:msg_id/content",
    operation(
      "v1.message.expunge-content",
      "Remove the payload for good; what still waits to be sent ends as dead",
      { auth: "org", tags, params, response: { 204: NoContent } },
    ),
    async (request, reply) => {
      const { app_id, msg_id } = request.params
      await tenant(request).messages.expunge(app_id, msg_id)
      return reply.code(204).send()
    },
  )

  app.post(
    "/app/:app_id/msg/expunge-all-contents",
    operation("v1.message.expunge-all-contents", "Remove the payloads of all the application's messages", {
      auth: "org",
      tags,
      params: Type.Object(AppId),
      response: { 202: TaskStartedOut },
    }),
    async (request, reply) =>
      reply.code(202).send(taskStartedOut(await tenant(request).messages.expungeMany(request.params.app_id))),
  )

  app.post(
    "/app/:app_id/msg/bulk-expunge",
    operation("v1.message.bulk-expunge", "Remove the payloads of these messages", {
      auth: "org",
      tags,
      params: Type.Object(AppId),
      body: Type.Named(
        "BulkExpungeContentsIn",
        Type.Object({ ids: Type.Optional(Type.Array(Uid, { maxItems: 250, uniqueItems: true })) }),
      ),
      response: {
        200: Type.Named(
          "BulkExpungeContentsOut",
          Type.Object({ results: Type.Record(Type.Enum(["expunged", "not-found"])) }),
        ),
      },
    }),
    async (request) => {
      const { messages, applications } = tenant(request)
      const { id: app } = await applications.get(request.params.app_id)
      // An id may be the name of an inherited property.
      const results: { [id: string]: "expunged" | "not-found" } = Object.create(null)
      for (const id of request.body.ids ?? [])
        results[id] = await messages.expunge(app, id).then(() => "expunged" as const, notFound)
      return { results }
    },
  )

  app.post(
    "/app/:app_id/msg/precheck/active",
    operation("v1.message.precheck", "Whether any enabled endpoint would get such a message", {
      auth: "org",
      isRecorded: false,
      tags,
      params: Type.Object(AppId),
      body: Type.Named(
        "MessagePrecheckIn",
        Type.Object({ eventType: EventTypeName, channels: Type.Optional(Type.Nullable(Channels)) }),
      ),
      response: { 200: Type.Named("MessagePrecheckOut", Type.Object({ active: Type.Boolean() })) },
    }),
    async (request) => {
      const { eventType, channels } = request.body
      return {
        active: await tenant(request).endpoints.wanted(request.params.app_id, eventType, channels ?? []),
      }
    },
  )
}

function notFound(error: unknown): "not-found" {
  if (hasCode(error, "not_found")) return "not-found"
  throw error
}
