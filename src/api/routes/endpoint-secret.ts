/** An endpoint's secret and headers: the same routes for the endpoints of applications, for operational ones and for channels. */
import type { FastifyRequest } from "fastify"
import type { Endpoints, RotateInput } from "../../resources/endpoints.ts"
import type { Need } from "../access.ts"
import type { Api } from "../context.ts"
import { headersOut, prefixed } from "../endpoint-input.ts"
import { operation } from "../operation.ts"
import { omitNullish } from "../query-params.ts"
import { NoContent, type TSchema } from "../schema.ts"
import {
  EndpointHeadersIn,
  EndpointHeadersOut,
  EndpointSecretOut,
  EndpointSecretRotateIn,
} from "../schemas/endpoint.ts"

export interface EndpointKind {
  /** The path of one endpoint. */
  readonly path: string
  readonly tags: readonly string[]
  readonly params: TSchema
  readonly auth: Need
  /** Of the operation ids. */
  readonly prefix: string
  /** Svix's ids for replacing headers differ in more than the prefix. Left out: its headers are not for callers. */
  readonly putHeaders?: string
  readonly secretSummary: string
  /** Whether a rotation answers with the new secret; without this, it never does. */
  answersSecret?(request: FastifyRequest): boolean
  /** `names` are those of the application and the endpoint in `endpoints`. */
  find(request: FastifyRequest): Promise<{ readonly endpoints: Endpoints; readonly names: [string, string] }>
}

export function secretRoutes(app: Api, kind: EndpointKind): void {
  const { path, tags, params, auth, prefix, find } = kind

  app.get(
    `${path}/secret`,
    operation(`${prefix}.get-secret`, kind.secretSummary, {
      auth,
      capability: "ViewEndpointSecret",
      tags,
      params,
      response: { 200: EndpointSecretOut },
    }),
    async (request) => {
      const { endpoints, names } = await find(request)
      return endpoints.secret(...names)
    },
  )

  app.post(
    `${path}/secret/rotate`,
    operation(
      `${prefix}.rotate-secret`,
      "A new secret signs from now on, the old one beside it for a day unless told",
      {
        auth,
        capability: "ManageEndpointSecret",
        tags,
        params,
        body: EndpointSecretRotateIn,
        response: { ...(kind.answersSecret && { 200: EndpointSecretOut }), 204: NoContent },
      },
    ),
    async (request, reply) => {
      const { key, gracePeriodSeconds } = request.body
      const { endpoints, names } = await find(request)
      const input = omitNullish<RotateInput>({ secret: key && prefixed(key), gracePeriodSeconds })
      const rotated = await endpoints.rotateSecret(...names, input)
      return kind.answersSecret?.(request) ? rotated : reply.code(204).send()
    },
  )

  if (kind.putHeaders !== undefined) headerRoutes(app, kind)
}

function headerRoutes(app: Api, { path, tags, params, auth, prefix, putHeaders, find }: EndpointKind): void {
  app.get(
    `${path}/headers`,
    operation(
      `${prefix}.get-headers`,
      "Headers that are sent with every request; those that look like credentials by name only",
      { auth, tags, params, response: { 200: EndpointHeadersOut } },
    ),
    async (request) => {
      const { endpoints, names } = await find(request)
      return headersOut((await endpoints.get(...names)).headers)
    },
  )

  app.put(
    `${path}/headers`,
    operation(`${prefix}.${putHeaders}`, "Replace the headers", {
      auth,
      capability: "ManageEndpoint",
      tags,
      params,
      body: EndpointHeadersIn,
      response: { 204: NoContent },
    }),
    async (request, reply) => {
      const { endpoints, names } = await find(request)
      await endpoints.update(...names, { headers: request.body.headers })
      return reply.code(204).send()
    },
  )
}
