/** What belongs to one operational endpoint: its secret and its headers. */
import type { FastifyRequest } from "fastify"
import { notFound } from "../../core/errors.ts"
import type { Posthorn } from "../../posthorn.ts"
import type { Endpoints, RotateInput } from "../../resources/endpoints.ts"
import { TENANT_WEBHOOK_APP } from "../../tenant-webhooks/tenant-webhooks.ts"
import { given } from "../asked.ts"
import { requireCaller } from "../auth.ts"
import type { Routes } from "../context.ts"
import { headersOut, prefixed } from "../endpoint-input.ts"
import { operation } from "../operation.ts"
import { NoContent, Type } from "../schema.ts"
import {
  EndpointHeadersIn,
  EndpointHeadersOut,
  EndpointSecretOut,
  EndpointSecretRotateIn,
} from "../schemas/endpoint.ts"
import { EndpointId } from "../schemas/fields.ts"

export const tags = ["Operational Webhook Endpoint"]
export const params = Type.Object({ endpoint_id: EndpointId.endpoint_id })
export const ONE = "/operational-webhook/endpoint/:endpoint_id"

/** Looking for an endpoint makes nothing: who never had one has none of this name. */
export async function operationalEndpoints(
  { tenantWebhooks }: Posthorn,
  request: FastifyRequest,
  id: string,
): Promise<Endpoints> {
  const found = await tenantWebhooks.find(requireCaller(request).orgId)
  if (found === null) throw notFound("endpoint", id)
  return found.endpoints
}

export const operationalWebhookDetailRoutes: Routes = (app, { posthorn }) => {
  app.get(
    `${ONE}/secret`,
    operation("v1.operational-webhook.endpoint.get-secret", "The secret that you verify with", {
      auth: "org",
      capability: "ViewEndpointSecret",
      tags,
      params,
      response: { 200: EndpointSecretOut },
    }),
    async (request) => {
      const { endpoint_id: id } = request.params
      return (await operationalEndpoints(posthorn, request, id)).secret(TENANT_WEBHOOK_APP, id)
    },
  )

  app.post(
    `${ONE}/secret/rotate`,
    operation(
      "v1.operational-webhook.endpoint.rotate-secret",
      "A new secret signs from now on, the old one beside it for a day unless told",
      { auth: "org", tags, params, body: EndpointSecretRotateIn, response: { 204: NoContent } },
    ),
    async (request, reply) => {
      const { endpoint_id: id } = request.params
      const { key, gracePeriodSeconds } = request.body
      const endpoints = await operationalEndpoints(posthorn, request, id)
      const input = given<RotateInput>({ secret: key && prefixed(key), gracePeriodSeconds })
      await endpoints.rotateSecret(TENANT_WEBHOOK_APP, id, input)
      return reply.code(204).send()
    },
  )

  app.get(
    `${ONE}/headers`,
    operation(
      "v1.operational-webhook.endpoint.get-headers",
      "Headers that are sent with every request; those that look like credentials by name only",
      { auth: "org", tags, params, response: { 200: EndpointHeadersOut } },
    ),
    async (request) => {
      const { endpoint_id: id } = request.params
      const endpoints = await operationalEndpoints(posthorn, request, id)
      return headersOut((await endpoints.get(TENANT_WEBHOOK_APP, id)).headers)
    },
  )

  app.put(
    `${ONE}/headers`,
    operation("v1.operational-webhook.endpoint.set-headers", "Replace the headers", {
      auth: "org",
      tags,
      params,
      body: EndpointHeadersIn,
      response: { 204: NoContent },
    }),
    async (request, reply) => {
      const { endpoint_id: id } = request.params
      const endpoints = await operationalEndpoints(posthorn, request, id)
      await endpoints.update(TENANT_WEBHOOK_APP, id, { headers: request.body.headers })
      return reply.code(204).send()
    },
  )
}
