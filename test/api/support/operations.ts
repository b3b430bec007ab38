/** Every operation of the OpenAPI document, for tests that go through all of them. */
import type { ApiServer } from "./server.ts"

export interface Schema {
  /** Of the component, where it is one. */
  readonly name?: string
  readonly type?: string | readonly string[]
  readonly format?: string
  readonly pattern?: string
  readonly minLength?: number
  readonly maxLength?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly minItems?: number
  readonly maxItems?: number
  readonly uniqueItems?: boolean
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly Schema[]
  readonly items?: Schema
  readonly properties?: { readonly [name: string]: Schema }
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean | Schema
}

export interface Parameter {
  readonly name: string
  readonly in: "path" | "query" | "header"
  readonly schema: Schema
}

export interface Operation {
  readonly id: string
  readonly method: string
  /** Below /api/v1, with its names in braces. */
  readonly path: string
  readonly parameters: readonly Parameter[]
  readonly body: Schema | null
  /** Anybody may ask. */
  readonly isOpen: boolean
}

interface Described {
  readonly operationId: string
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly content: { readonly "application/json": { readonly schema: Schema } } }
  readonly security?: readonly unknown[]
}

interface Document {
  readonly paths: { readonly [path: string]: { readonly [method: string]: Described } }
  readonly components: { readonly schemas: { readonly [name: string]: object } }
}

export async function operationsOf(server: ApiServer): Promise<Operation[]> {
  const document = (await (await fetch(`${server.url}/api/v1/openapi.json`)).json()) as Document
  const paths = inlined(document.paths, document.components.schemas) as Document["paths"]
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, described]) => ({
      id: described.operationId,
      method: method.toUpperCase(),
      path: path.replace("/api/v1", ""),
      parameters: described.parameters ?? [],
      body: described.requestBody?.content["application/json"].schema ?? null,
      isOpen: described.security?.length === 0,
    })),
  )
}

/** With what it refers to in its place. */
function inlined(node: unknown, schemas: Document["components"]["schemas"]): unknown {
  if (Array.isArray(node)) return node.map((one) => inlined(one, schemas))
  if (typeof node !== "object" || node === null) return node
  const { $ref: reference } = node as { readonly $ref?: unknown }
  if (typeof reference !== "string")
    return Object.fromEntries(Object.entries(node).map(([key, one]) => [key, inlined(one, schemas)]))
  const name = reference.split("/").at(-1)!
  return { name, ...(inlined(schemas[name], schemas) as object) }
}

/** Of the deployment, not of a tenant: for keys of the default organization. */
export function isOperators({ id }: { readonly id: string }): boolean {
  return /^v1\.(alert|overview|setting)/.test(id)
}

/** The names in the path, from left to right, each with what stands before it. */
export function namesIn(path: string): { readonly name: string; readonly before: readonly string[] }[] {
  const segments = path.split("/")
  return segments.flatMap((segment, i) =>
    segment.startsWith("{") ? [{ name: segment, before: segments.slice(0, i) }] : [],
  )
}
