/** The parts of the OpenAPI document that the reference page shows. */
import type { JsonSchema } from "../schema.ts"

export const LONGEST_SEARCH = 200

export interface Content {
  /** The generator moves the example of a body from its schema to here. */
  readonly [type: string]: { readonly schema?: JsonSchema; readonly example?: unknown }
}

export interface Parameter {
  readonly name: string
  readonly in: string
  readonly required?: boolean
  readonly description?: string
  readonly schema?: JsonSchema
}

export interface Operation {
  readonly operationId?: string
  readonly summary?: string
  readonly description?: string
  readonly tags?: readonly string[]
  readonly deprecated?: boolean
  readonly security?: readonly unknown[]
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly content: Content }
  readonly responses?: {
    readonly [status: string]: { readonly description?: string; readonly content?: Content }
  }
}

export interface OpenApi {
  readonly servers?: readonly { readonly url: string }[]
  readonly info: { readonly title: string; readonly version: string; readonly description?: string }
  readonly paths: { readonly [path: string]: { readonly [method: string]: Operation } }
  readonly components: { readonly schemas: { readonly [name: string]: JsonSchema } }
}

export interface DescribedOperation {
  readonly id: string
  readonly method: string
  readonly path: string
  readonly operation: Operation
}

/** Operations by tag, in the document's order. */
export function byTag({ paths }: OpenApi): Map<string, DescribedOperation[]> {
  const groups = new Map<string, DescribedOperation[]>()
  for (const [path, methods] of Object.entries(paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const tag = operation.tags?.[0] ?? "Other"
      const group = groups.get(tag) ?? []
      group.push({
        id: operation.operationId ?? `${method} ${path}`,
        method: method.toUpperCase(),
        path,
        operation,
      })
      groups.set(tag, group)
    }
  }
  return groups
}
