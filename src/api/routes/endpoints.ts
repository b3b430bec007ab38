/** Endpoints: `/app/{app_id}/endpoint`. */
import type { EndpointInput } from "../../resources/endpoints.ts"
import { refuseOperatorFields } from "../access.ts"
import { requireCaller } from "../auth.ts"
import type { Routes } from "../context.ts"
import { DEFAULTS, endpointInput } from "../endpoint-input.ts"
import { operation } from "../operation.ts"
import { omitNullish, pageQuery } from "../query-params.ts"
import { NoContent, Type } from "../schema.ts"
import { ListResponse, Order, PageQuery } from "../schemas/common.ts"
import { EndpointIn, EndpointOut, EndpointPatch, EndpointUpdate } from "../schemas/endpoint.ts"
import { AppId, EndpointId } from "../schemas/fields.ts"
import { updateOrCreate } from "../upsert.ts"
import { endpointOut, listOut } from "../views/views.ts"

const tags = ["Endpoint"]
const params = Type.Object(EndpointId)

/** Changes of an endpoint's gate, by hand. */
const ACTIONS = {
  pause: "Hold waiting and new deliveries; nothing is discarded",
  resume: "Resume; also ends a Retry-After that the endpoint had asked for",
  trip: "Open the circuit breaker: nothing is sent for its open time, then one request probes the endpoint",
  reset:
    "Close the circuit breaker; also fills the retry budget, and ends the ramp after an outage and a Retry-After",
} as const

export const endpointRoutes: Routes = (app, { tenant }) => {
  app.get(
    "/app/:app_id/endpoint",
    operation("v1.endpoint.list", "List endpoints", {
      auth: "app",
      tags,
      params: Type.Object(AppId),
      querystring: Type.Object({ ...PageQuery, order: Type.Optional(Order) }),
      response: { 200: ListResponse("ListResponseEndpointOut", EndpointOut) },
    }),
    async (request) => {
      const page = { order: "descending" as const, ...pageQuery(request.query) }
      return listOut(await tenant(request).endpoints.list(request.params.app_id, page), endpointOut)
    },
  )

  app.post(
    "/app/:app_id/endpoint",
    operation("v1.endpoint.create", "Create an endpoint; its secret is made unless given", {
      auth: "app",
      capability: "ManageEndpoint",
      tags,
      params: Type.Object(AppId),
      body: EndpointIn,
      response: { 201: EndpointOut },
    }),
    async (request, reply) => {
      refuseOperatorFields(requireCaller(request), request.body)
      const input = endpointInput(request.body) as EndpointInput
      const made = await tenant(request).endpoints.create(request.params.app_id, input)
      return reply.code(201).send(endpointOut(made))
    },
  )

  app.get(
    "/app/:app_id/endpoint/:endpoint_id",
    operation("v1.endpoint.get", "Get an endpoint", {
      auth: "app",
      tags,
      params,
      response: { 200: EndpointOut },
    }),
    async (request) => {
      const { app_id, endpoint_id } = request.params
      return endpointOut(await tenant(request).endpoints.get(app_id, endpoint_id))
    },
  )

  app.put(
    "/app/:app_id/endpoint/:endpoint_id",
    operation(
      "v1.endpoint.update",
      "Replace an endpoint, or create it; the secret, the headers and what Svix has no word for stay unless given",
      {
        auth: "app",
        capability: "ManageEndpoint",
        tags,
        params,
        body: EndpointUpdate,
        response: { 200: EndpointOut, 201: EndpointOut },
      },
    ),
    async (request, reply) => {
      refuseOperatorFields(requireCaller(request), request.body)
      const { endpoints } = tenant(request)
      const { app_id, endpoint_id } = request.params
      const input = { ...DEFAULTS, ...endpointInput(request.body) }
      const { value, status } = await updateOrCreate(
        () => endpoints.update(app_id, endpoint_id, input),
        () => endpoints.create(app_id, omitNullish<EndpointInput>(input) as EndpointInput),
      )
      return reply.code(status).send(endpointOut(value))
    },
  )

  app.patch(
    "/app/:app_id/endpoint/:endpoint_id",
    operation("v1.endpoint.patch", "Change what is given; null takes it away", {
      auth: "app",
      capability: "ManageEndpoint",
      tags,
      params,
      body: EndpointPatch,
      response: { 200: EndpointOut },
    }),
    async (request) => {
      refuseOperatorFields(requireCaller(request), request.body)
      const { app_id, endpoint_id } = request.params
      const input = endpointInput(request.body)
      return endpointOut(await tenant(request).endpoints.update(app_id, endpoint_id, input))
    },
  )

  app.delete(
    "/app/:app_id/endpoint/:endpoint_id",
    operation("v1.endpoint.delete", "Delete an endpoint; its waiting deliveries are cancelled", {
      auth: "app",
      capability: "ManageEndpoint",
      tags,
      params,
      response: { 204: NoContent },
    }),
    async (request, reply) => {
      const { app_id, endpoint_id } = request.params
      await tenant(request).endpoints.delete(app_id, endpoint_id)
      return reply.code(204).send()
    },
  )

  for (const [action, summary] of Object.entries(ACTIONS) as [keyof typeof ACTIONS, string][]) {
    app.post(
      `/app/:app_id/endpoint/:endpoint_id/${action}`,
      operation(`v1.endpoint.${action}`, summary, {
        auth: "app",
        capability: "ManageEndpoint",
        tags,
        params,
        response: { 200: EndpointOut },
      }),
      async (request) => {
        const { app_id, endpoint_id } = request.params
        return endpointOut(await tenant(request).endpoints[action](app_id, endpoint_id))
      },
    )
  }
}
