/** Operational webhooks, which notify a tenant about its endpoints: `/operational-webhook/endpoint`. */
import type { FastifyRequest } from "fastify"
import { notFound } from "../../core/errors.ts"
import { type Endpoint, type EndpointInput, Endpoints } from "../../resources/endpoints.ts"
import type { List } from "../../resources/paging.ts"
import { TENANT_WEBHOOK_APP } from "../../tenant-webhooks/tenant-webhooks.ts"
import { requireCaller } from "../auth.ts"
import type { Routes } from "../context.ts"
import { DEFAULTS, endpointInput } from "../endpoint-input.ts"
import { operation } from "../operation.ts"
import { omitNullish, pageQuery } from "../query-params.ts"
import { NoContent, pick, Type } from "../schema.ts"
import { ListResponse, Order, PageQuery } from "../schemas/common.ts"
import { EndpointId } from "../schemas/fields.ts"
import {
  OPERATIONAL_FIELDS,
  OperationalWebhookEndpointIn,
  OperationalWebhookEndpointOut,
  OperationalWebhookEndpointUpdate,
} from "../schemas/operational-webhook.ts"
import { updateOrCreate } from "../upsert.ts"
import { endpointOut, listOut } from "../views/views.ts"
import { secretRoutes } from "./endpoint-secret.ts"

const tags = ["Operational Webhook Endpoint"]
const params = Type.Object({ endpoint_id: EndpointId.endpoint_id })
const LIST = "/operational-webhook/endpoint"
const ONE = `${LIST}/:endpoint_id`
const EMPTY: List<Endpoint> = { data: [], cursor: null, previous: null, done: true }

export const operationalWebhookRoutes: Routes = (app, { tenant, posthorn }) => {
  /** With the request's ids, so that a repeat makes the same ones. */
  async function opened(request: FastifyRequest): Promise<Endpoints> {
    const { context } = await posthorn.tenantWebhooks.open(requireCaller(request).orgId)
    return new Endpoints({ ...context, ids: tenant(request).context.ids })
  }

  /** Does not create the tenant's application for operational endpoints. */
  async function find(request: FastifyRequest) {
    const { endpoint_id: id } = request.params as { endpoint_id: string }
    const found = await posthorn.tenantWebhooks.find(requireCaller(request).orgId)
    if (found === null) throw notFound("endpoint", id)
    return { endpoints: found.endpoints, names: [TENANT_WEBHOOK_APP, id] as [string, string] }
  }

  app.get(
    LIST,
    operation("v1.operational-webhook.endpoint.list", "List operational endpoints", {
      auth: "org",
      tags,
      querystring: Type.Object({ ...PageQuery, order: Type.Optional(Order) }),
      response: {
        200: ListResponse("ListResponseOperationalWebhookEndpointOut", OperationalWebhookEndpointOut),
      },
    }),
    async (request) => {
      const page = { order: "descending" as const, ...pageQuery(request.query) }
      const operational = await posthorn.tenantWebhooks.find(requireCaller(request).orgId)
      return listOut((await operational?.endpoints.list(TENANT_WEBHOOK_APP, page)) ?? EMPTY, shown)
    },
  )

  app.post(
    LIST,
    operation(
      "v1.operational-webhook.endpoint.create",
      "Be told of endpoints that change and messages that fail; the secret is made unless given",
      {
        auth: "org",
        tags,
        body: OperationalWebhookEndpointIn,
        response: { 201: OperationalWebhookEndpointOut },
      },
    ),
    async (request, reply) => {
      const endpoints = await opened(request)
      const made = await endpoints.create(TENANT_WEBHOOK_APP, endpointInput(request.body) as EndpointInput)
      return reply.code(201).send(shown(made))
    },
  )

  app.get(
    ONE,
    operation("v1.operational-webhook.endpoint.get", "Get an operational endpoint", {
      auth: "org",
      tags,
      params,
      response: { 200: OperationalWebhookEndpointOut },
    }),
    async (request) => {
      const { endpoints, names } = await find(request)
      return shown(await endpoints.get(...names))
    },
  )

  app.put(
    ONE,
    operation(
      "v1.operational-webhook.endpoint.update",
      "Replace an operational endpoint, or create it; its secret and headers stay",
      {
        auth: "org",
        tags,
        params,
        body: OperationalWebhookEndpointUpdate,
        response: { 200: OperationalWebhookEndpointOut, 201: OperationalWebhookEndpointOut },
      },
    ),
    async (request, reply) => {
      const endpoints = await opened(request)
      const input = { ...DEFAULTS, ...endpointInput(request.body) }
      const { value, status } = await updateOrCreate(
        () => endpoints.update(TENANT_WEBHOOK_APP, request.params.endpoint_id, input),
        () => endpoints.create(TENANT_WEBHOOK_APP, omitNullish<EndpointInput>(input) as EndpointInput),
      )
      return reply.code(status).send(shown(value))
    },
  )

  app.delete(
    ONE,
    operation("v1.operational-webhook.endpoint.delete", "Delete an operational endpoint", {
      auth: "org",
      tags,
      params,
      response: { 204: NoContent },
    }),
    async (request, reply) => {
      const { endpoints, names } = await find(request)
      await endpoints.delete(...names)
      return reply.code(204).send()
    },
  )

  secretRoutes(app, {
    path: ONE,
    tags,
    params,
    auth: "org",
    prefix: "v1.operational-webhook.endpoint",
    putHeaders: "set-headers",
    secretSummary: "The secret that you verify with",
    find,
  })
}

const shown = (endpoint: Endpoint) => pick(endpointOut(endpoint), OPERATIONAL_FIELDS)
