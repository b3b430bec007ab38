/** The OpenAPI document, from the same schemas that requests are checked with. */
import swagger, { type SwaggerTransform } from "@fastify/swagger"
import fastify, { type RouteOptions } from "fastify"
import { VERSION } from "../version.ts"
import { type Api, type Context, PREFIX, type Routes } from "./context.ts"
import type { OpenApi } from "./docs/document.ts"
import { markComponent, nameComponents } from "./openapi-components.ts"
import { type JsonSchema, jsonSchema, Type } from "./schema.ts"
import { HTTPValidationError, HttpErrorOut } from "./schemas/common.ts"

const ERRORS = ["400", "401", "403", "404", "409", "413", "415", "422", "429", "500", "503"] as const

/** On a server of its own, which answers nobody: the one that does need not load the generator before it is asked. */
export async function describeApi(routes: readonly Routes[], context: Context): Promise<OpenApi> {
  const compilersFactory = {
    buildValidator: () => () => () => true,
    buildSerializer: () => () => JSON.stringify,
  }
  const app: Api = fastify({ schemaController: { compilersFactory: compilersFactory as never } })
  await app.register(swagger, {
    openapi: {
      openapi: "3.1.0",
      info: {
        title: "Posthorn API",
        version: VERSION,
        description:
          "Durable webhook delivery. It speaks the Svix API: clients for that work here. What else they can call (transformations, " +
          "connectors, streams, ingestion and such) is answered with 501 and a sentence that says what to do instead.",
      },
      ...(context.publicUrl === null ? {} : { servers: [{ url: context.publicUrl }] }),
      components: {
        securitySchemes: {
          HTTPBearer: { type: "http", scheme: "bearer", description: "A key: `Authorization: Bearer ph_…`" },
        },
      },
      security: [{ HTTPBearer: [] }],
    },
    convertConstToEnum: false,
    stripBasePath: false,
    refResolver: { buildLocalReference: (json, _base, _fragment, i) => String(json.$id ?? `def-${i}`) },
    transform: withErrors,
    transformObject: (made) =>
      "openapiObject" in made ? nameComponents(made.openapiObject) : made.swaggerObject,
  })
  await app.register(
    async (api) => {
      for (const register of routes) register(api as Api, context)
    },
    { prefix: PREFIX },
  )
  await app.ready()
  return app.swagger() as unknown as OpenApi
}

/** Every route lists what can go wrong; what it says of a status itself stays. */
const withErrors: SwaggerTransform = ({ schema, url, route }) => {
  if (schema === undefined || schema.hide) return { schema: { hide: true }, url }
  const { body, response = {}, ...rest } = schema as { [part: string]: JsonSchema }
  const answers = Object.entries({ ...errorsOf(route, schema), ...response })
  return {
    url,
    schema: {
      ...rest,
      ...(body === undefined ? {} : { body: markComponent(body) }),
      ...(route.method === "POST" ? { headers: IDEMPOTENCY } : {}),
      ...(route.config?.auth === "none" ? { security: [] } : {}),
      response: Object.fromEntries(answers.map(([status, one]) => [status, markComponent(jsonSchema(one))])),
    },
  }
}

const IDEMPOTENCY = Type.Object({
  "idempotency-key": Type.Optional(
    Type.String({ description: "The same key and body get the same answer for twelve hours" }),
  ),
})

function errorsOf({ method, config }: RouteOptions, schema: object): { [status: string]: JsonSchema } {
  const leftOut = new Set<string>([
    ...(config?.auth === "none" ? ["401", "403"] : []),
    ...("params" in schema ? [] : ["404"]),
    // A body is read wherever one can be sent, also if nobody asked for it.
    ...(method === "GET" ? ["409", "413", "415"] : []),
  ])
  const listed = ERRORS.filter((status) => !leftOut.has(status))
  return Object.fromEntries(
    listed.map((status) => [status, jsonSchema(status === "422" ? HTTPValidationError : HttpErrorOut)]),
  )
}
