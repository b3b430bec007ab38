/** Attempts, and the status of messages at endpoints. */

import type { AttemptQuery } from "../../resources/attempts.ts"
import type { DeliveryQuery } from "../../resources/deliveries.ts"
import type { Tenant } from "../../tenant.ts"
import type { Routes } from "../context.ts"
import { operation } from "../operation.ts"
import { readAttemptPage, readPayloadPage } from "../payload-pages.ts"
import { contentQuery, omitNullish, pageQuery, viewOptions } from "../query-params.ts"
import { NoContent, Type } from "../schema.ts"
import { Bounded, BoundedListResponse, ListResponse, PageQuery } from "../schemas/common.ts"
import { StatusCodeClass } from "../schemas/delivery.ts"
import { MessageEndpointOut, StatusNumber } from "../schemas/endpoint.ts"
import { AppId, content, EndpointId, MessageId } from "../schemas/fields.ts"
import { AttemptOut, EndpointMessageOut } from "../schemas/message.ts"
import { attemptStatuses, filterOf } from "../views/status.ts"
import {
  attemptOut,
  endpointMessageOut,
  listOut,
  messageEndpointOut,
  type ViewOptions,
} from "../views/views.ts"

const tags = ["Message Attempt"]
const viewQuery = {
  with_content: Type.Optional(Type.Boolean({ description: "False leaves payloads and answers out." })),
  expanded_statuses: Type.Optional(
    Type.Boolean({ description: "True shows canceled as such, not as success." }),
  ),
}
const status = { status: Type.Optional(StatusNumber) }
const AttemptList = BoundedListResponse("ListResponseMessageAttemptOut", AttemptOut)
const attemptQuery = {
  ...PageQuery,
  ...Bounded,
  ...content,
  ...viewQuery,
  ...status,
  status_code_class: Type.Optional(StatusCodeClass),
  with_msg: Type.Optional(Type.Boolean({ description: "Adds the message, without its payload." })),
}
const attemptId = { attempt_id: Type.String({ minLength: 1, maxLength: 64 }) }

export const attemptRoutes: Routes = (app, { tenant }) => {
  app.get(
    "/app/:app_id/attempt",
    operation(
      "v1.message-attempt.list-by-app",
      "List an application's attempts, the newest first: with status=2, its recent failures",
      {
        auth: "app",
        tags,
        params: Type.Object(AppId),
        querystring: Type.Object(attemptQuery),
        response: { 200: AttemptList },
      },
    ),
    async (request) => listAttempts(tenant(request), request.query, { app: request.params.app_id }),
  )

  app.get(
    "/app/:app_id/attempt/endpoint/:endpoint_id",
    operation("v1.message-attempt.list-by-endpoint", "List an endpoint's attempts, the newest first", {
      auth: "app",
      tags,
      params: Type.Object(EndpointId),
      querystring: Type.Object(attemptQuery),
      response: { 200: AttemptList },
    }),
    async (request) => {
      const { app_id, endpoint_id } = request.params
      const { endpoints } = tenant(request)
      const { id } = await endpoints.get(app_id, endpoint_id)
      return listAttempts(tenant(request), request.query, { endpoint: id })
    },
  )

  app.get(
    "/app/:app_id/attempt/msg/:msg_id",
    operation("v1.message-attempt.list-by-msg", "List a message's attempts, the newest first", {
      auth: "app",
      tags,
      params: Type.Object(MessageId),
      querystring: Type.Object({
        ...attemptQuery,
        endpoint_id: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
      }),
      response: { 200: AttemptList },
    }),
    async (request) => {
      const { app_id, msg_id } = request.params
      const { endpoint_id, ...query } = request.query
      const { messages, endpoints } = tenant(request)
      const { id } = await messages.get(app_id, msg_id)
      const endpoint = endpoint_id === undefined ? undefined : (await endpoints.get(app_id, endpoint_id)).id
      return listAttempts(tenant(request), query, omitNullish<AttemptQuery>({ message: id, endpoint }))
    },
  )

  app.get(
    "/app/:app_id/msg/:msg_id/attempt/:attempt_id",
    operation("v1.message-attempt.get", "Get an attempt", {
      auth: "app",
      tags,
      params: Type.Object({ ...MessageId, ...attemptId }),
      querystring: Type.Object({ expanded_statuses: viewQuery.expanded_statuses }),
      response: { 200: AttemptOut },
    }),
    async (request) => {
      const { app_id, msg_id, attempt_id } = request.params
      const { messages, attempts } = tenant(request)
      const message = await messages.get(app_id, msg_id)
      return attemptOut(await attempts.get(message.id, attempt_id), viewOptions(request.query))
    },
  )

  app.delete(
    "/app/:app_id/msg/:msg_id/attempt/:attempt_id/content",
    operation("v1.message-attempt.expunge-content", "Remove what the receiver answered", {
      auth: "org",
      tags,
      params: Type.Object({ ...MessageId, ...attemptId }),
      response: { 204: NoContent },
    }),
    async (request, reply) => {
      const { app_id, msg_id, attempt_id } = request.params
      const { messages, attempts } = tenant(request)
      const message = await messages.get(app_id, msg_id)
      await attempts.expunge(message.id, attempt_id)
      return reply.code(204).send()
    },
  )

  app.get(
    "/app/:app_id/endpoint/:endpoint_id/msg",
    operation(
      "v1.message-attempt.list-attempted-messages",
      "List the messages for an endpoint with what became of them, the newest first",
      {
        auth: "app",
        tags,
        params: Type.Object(EndpointId),
        querystring: Type.Object({ ...PageQuery, ...Bounded, ...content, ...viewQuery, ...status }),
        response: { 200: BoundedListResponse("ListResponseEndpointMessageOut", EndpointMessageOut) },
      },
    ),
    async (request) => {
      const { app_id, endpoint_id } = request.params
      const { deliveries, messages } = tenant(request)
      const view = viewOptions(request.query)
      const query = {
        app: app_id,
        endpoint: endpoint_id,
        ...contentQuery(request.query),
        ...pageQuery(request.query),
        ...omitNullish<DeliveryQuery>(filterOf(request.query.status)),
      }
      const read = (asked: object) => deliveries.list({ ...query, ...asked })
      const withoutPayloads = async () => {
        const list = await read({})
        const ids = list.data.map(({ messageId }) => messageId)
        return { list, found: await messages.getMany(ids, false) }
      }
      const { list, found } = view.content
        ? await readPayloadPage(tenant(request), query, read, ({ messageId }) => messageId)
        : await withoutPayloads()
      const kept = { ...list, data: list.data.filter(({ messageId }) => found.has(messageId)) }
      return listOut(kept, (one) => endpointMessageOut(found.get(one.messageId)!, one, view))
    },
  )

  app.get(
    "/app/:app_id/msg/:msg_id/endpoint",
    operation(
      "v1.message-attempt.list-attempted-destinations",
      "List the endpoints that a message is for, with what became of it there",
      {
        auth: "app",
        tags,
        params: Type.Object(MessageId),
        querystring: Type.Object({ ...PageQuery, expanded_statuses: viewQuery.expanded_statuses }),
        response: { 200: ListResponse("ListResponseMessageEndpointOut", MessageEndpointOut) },
      },
    ),
    async (request) => {
      const { app_id, msg_id } = request.params
      const { messages, deliveries, endpoints } = tenant(request)
      const { id } = await messages.get(app_id, msg_id)
      const page = { ...pageQuery(request.query), order: "ascending" as const }
      const list = await deliveries.list({ app: app_id, message: id, ...page })
      const found = await endpoints.getMany(list.data.map(({ endpointId }) => endpointId))
      return listOut(list, (delivery) =>
        messageEndpointOut(found.get(delivery.endpointId)!, delivery, viewOptions(request.query)),
      )
    },
  )
}

type AttemptParams = Parameters<typeof contentQuery>[0] &
  Parameters<typeof pageQuery>[0] &
  Parameters<typeof viewOptions>[0] & {
    readonly status?: number
    readonly status_code_class?: 0 | 100 | 200 | 300 | 400 | 500
    readonly with_msg?: boolean
    readonly bounded?: boolean
  }

async function listAttempts(tenant: Tenant, asked: AttemptParams, which: Partial<AttemptQuery>) {
  const wanted: ViewOptions = viewOptions(asked)
  if (asked.status !== undefined && attemptStatuses(asked.status).length === 0)
    return asked.bounded ? { ...EMPTY, searchedTo: null } : EMPTY
  const query = omitNullish<AttemptQuery>({
    ...which,
    ...contentQuery(asked),
    ...pageQuery(asked),
    status: asked.status === undefined ? undefined : attemptStatuses(asked.status),
    responseClass: asked.status_code_class,
  })
  const read = (part: object) => tenant.attempts.list({ ...query, ...part })
  const list = wanted.content ? await readAttemptPage(query, read) : await read({})
  const messages = asked.with_msg
    ? await tenant.messages.getMany(
        list.data.map(({ messageId }) => messageId),
        false,
      )
    : null
  return listOut(list, (attempt) => attemptOut(attempt, wanted, messages?.get(attempt.messageId) ?? null))
}

const EMPTY = { data: [], iterator: null, done: true }
