/**
 * Components of the OpenAPI document. The generator does not name the schemas of whole bodies and responses: they are marked before
 * it runs and named afterwards.
 */
import { FILTER, type JsonSchema, SHOWN } from "./schema.ts"

const MARK = "x-component"
const STATUSES: { readonly [status: string]: string } = {
  200: "OK",
  201: "Created",
  202: "Accepted",
  204: "No content",
  400: "Bad request",
  401: "No key, or one that opens nothing",
  403: "The key does not reach so far",
  404: "Not found",
  409: "Conflict",
  413: "Too large",
  415: "Not JSON",
  422: "Validation error",
  429: "Too many requests",
  500: "Something went wrong here",
  503: "Overloaded, stopping, or without its store: try again",
}

export function markComponent(schema: JsonSchema): JsonSchema {
  const { $id, ...rest } = schema
  return $id === undefined ? schema : { ...rest, [MARK]: $id }
}

type Node = { [key: string]: unknown }

export function nameComponents<D extends object>(document: D): D {
  const { components = {}, paths = {} } = document as { components?: Node; paths?: { [path: string]: Node } }
  const schemas: Node = { ...(components.schemas as Node) }
  for (const [name, schema] of Object.entries(schemas)) schemas[name] = walk(schema, schemas)
  const named = walk(paths, schemas) as { [path: string]: { [method: string]: { responses: Node } } }
  for (const { responses } of Object.values(named).flatMap(Object.values)) {
    for (const [status, response] of Object.entries(responses))
      (response as Node).description = STATUSES[status] ?? (response as Node).description
  }
  const sorted = Object.fromEntries(Object.entries(schemas).sort(([a], [b]) => (a < b ? -1 : 1)))
  return { ...document, components: { ...components, schemas: sorted }, paths: named }
}

function walk(node: unknown, schemas: Node): unknown {
  if (Array.isArray(node)) return node.map((one) => walk(one, schemas))
  if (typeof node !== "object" || node === null) return node
  const { [MARK]: name, [SHOWN]: shown, [FILTER]: _filter, ...rest } = node as Node
  const entries = Object.entries((shown as Node | undefined) ?? rest)
  const inside = Object.fromEntries(entries.map(([key, one]) => [key, walk(one, schemas)]))
  if (typeof name !== "string") return inside
  schemas[name] ??= inside
  return { $ref: `#/components/schemas/${name}` }
}
