/** Event types: `/event-type`. */
import { hasCode, notFound } from "../../core/errors.ts"
import { requireCaller } from "../auth.ts"
import type { Routes } from "../context.ts"
import { ApiError } from "../errors.ts"
import { eventTypeInput, isVisibleTo } from "../event-type-input.ts"
import { operation } from "../operation.ts"
import { pageQuery } from "../query-params.ts"
import { NoContent, Type } from "../schema.ts"
import { ListResponse, Order, PageQuery } from "../schemas/common.ts"
import { EventTypeIn, EventTypeOut, EventTypePatch, EventTypeUpdate } from "../schemas/event-type.ts"
import { EventTypeName } from "../schemas/fields.ts"
import { eventTypeOut, listOut } from "../views/views.ts"

const tags = ["Event Type"]
const params = Type.Object({ event_type_name: EventTypeName })
const PATH = "/event-type/:event_type_name"

export const eventTypeRoutes: Routes = (app, { tenant }) => {
  app.get(
    "/event-type",
    operation(
      "v1.event-type.list",
      "List event types by name; a portal sees those without flags, and those with one of its own",
      {
        auth: "read",
        tags,
        querystring: Type.Object({
          ...PageQuery,
          order: Type.Optional(Order),
          include_archived: Type.Optional(Type.Boolean({ default: false })),
          with_content: Type.Optional(
            Type.Boolean({ default: false, description: "With their schemas, which are null otherwise." }),
          ),
        }),
        response: { 200: ListResponse("ListResponseEventTypeOut", EventTypeOut) },
      },
    ),
    async (request) => {
      const { include_archived: includeArchived = false, with_content: content = false } = request.query
      const caller = requireCaller(request)
      const list = await tenant(request).eventTypes.list({
        ...pageQuery(request.query),
        includeArchived,
        visible: (type) => isVisibleTo(caller, type),
      })
      return listOut(list, (type) => eventTypeOut(type, content))
    },
  )

  app.post(
    "/event-type",
    operation("v1.event-type.create", "Create an event type, or bring back one that was archived", {
      auth: "org",
      tags,
      body: EventTypeIn,
      response: { 201: EventTypeOut },
    }),
    async (request, reply) => {
      try {
        const made = await tenant(request).eventTypes.create(eventTypeInput(request.body))
        return reply.code(201).send(eventTypeOut(made, true))
      } catch (error) {
        if (!hasCode(error, "conflict")) throw error
        throw ApiError.of(409, "event_type_exists", error.message)
      }
    },
  )

  app.get(
    PATH,
    operation("v1.event-type.get", "Get an event type", {
      auth: "read",
      tags,
      params,
      response: { 200: EventTypeOut },
    }),
    async (request) => {
      const { event_type_name: name } = request.params
      const type = await tenant(request).eventTypes.get(name)
      if (!isVisibleTo(requireCaller(request), type)) throw notFound("event type", name)
      return eventTypeOut(type, true)
    },
  )

  app.put(
    PATH,
    operation("v1.event-type.update", "Replace an event type, or create it", {
      auth: "org",
      tags,
      params,
      body: EventTypeUpdate,
      response: { 200: EventTypeOut, 201: EventTypeOut },
    }),
    async (request, reply) => {
      const { event_type_name: name } = request.params
      const { name: _name, ...input } = eventTypeInput({ name, ...request.body })
      const { type, created } = await tenant(request).eventTypes.put(name, input)
      return reply.code(created ? 201 : 200).send(eventTypeOut(type, true))
    },
  )

  app.patch(
    PATH,
    operation("v1.event-type.patch", "Change what is given", {
      auth: "org",
      tags,
      params,
      body: EventTypePatch,
      response: { 200: EventTypeOut },
    }),
    async (request) => {
      const changes = eventTypeInput(request.body)
      return eventTypeOut(
        await tenant(request).eventTypes.update(request.params.event_type_name, changes),
        true,
      )
    },
  )

  app.delete(
    PATH,
    operation("v1.event-type.delete", "Archive an event type, or remove it for good", {
      auth: "org",
      tags,
      params,
      querystring: Type.Object({
        expunge: Type.Optional(Type.Boolean({ default: false, description: "Removes it for good." })),
      }),
      response: { 204: NoContent },
    }),
    async (request, reply) => {
      const { expunge = false } = request.query
      await tenant(request).eventTypes.delete(request.params.event_type_name, { expunge })
      return reply.code(204).send()
    },
  )
}
