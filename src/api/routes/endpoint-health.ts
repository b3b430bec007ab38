/** The health of endpoints: of one, of an application's, and of all. */
import type { HealthQuery } from "../../resources/endpoints.ts"
import type { Routes } from "../context.ts"
import { operation } from "../operation.ts"
import { omitNullish, pageQuery } from "../query-params.ts"
import { Type } from "../schema.ts"
import { ListResponse, Order, PageQuery } from "../schemas/common.ts"
import { EndpointHealthOut, HealthState } from "../schemas/endpoint-health.ts"
import { AppId, EndpointId } from "../schemas/fields.ts"
import { listOut } from "../views/views.ts"

const tags = ["Endpoint"]
const querystring = Type.Object({
  ...PageQuery,
  order: Type.Optional(Order),
  health: Type.Optional(Type.Array(HealthState, { description: "Only endpoints in one of these states." })),
})
const response = { 200: ListResponse("ListResponseEndpointHealthOut", EndpointHealthOut) }

type HealthParams = Parameters<typeof pageQuery>[0] & { readonly health?: readonly HealthState[] }

function healthQuery(query: HealthParams): HealthQuery {
  const { health = [] } = query
  const states = health.length === 0 ? undefined : health
  return { ...pageQuery(query), ...omitNullish<HealthQuery>({ health: states }) }
}

export const endpointHealthRoutes: Routes = (app, { tenant }) => {
  app.get(
    "/app/:app_id/endpoint/:endpoint_id/health",
    operation(
      "v1.endpoint.health",
      "The health of an endpoint: its state, since when and why, with numbers",
      {
        auth: "app",
        tags,
        params: Type.Object(EndpointId),
        response: { 200: EndpointHealthOut },
      },
    ),
    async (request) => {
      const { app_id, endpoint_id } = request.params
      return tenant(request).endpoints.health(app_id, endpoint_id)
    },
  )

  app.get(
    "/app/:app_id/endpoint-health",
    operation("v1.endpoint.list-health", "List the health of an application's endpoints, the oldest first", {
      auth: "app",
      tags,
      params: Type.Object(AppId),
      querystring,
      response,
    }),
    async (request) => {
      const query = { app: request.params.app_id, ...healthQuery(request.query) }
      return listOut(await tenant(request).endpoints.listHealth(query), (one) => one)
    },
  )

  app.get(
    "/endpoint-health",
    operation("v1.endpoint.list-all-health", "List the health of all endpoints, the oldest first", {
      auth: "org",
      tags,
      querystring,
      response,
    }),
    async (request) => {
      const list = await tenant(request).endpoints.listHealth(healthQuery(request.query))
      return listOut(list, (one) => one)
    },
  )
}
