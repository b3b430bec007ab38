/** Checks a JSON schema by the meta-schema of its draft. */
import querystring from "node:querystring"
import type { Ajv } from "ajv"

type Validator = Pick<Ajv, "validateSchema" | "errorsText" | "errors">

let loading: Promise<readonly Validator[]> | null = null

/** Loaded with the first schema, so that the start is not delayed. */
function validators(): Promise<readonly Validator[]> {
  loading ??= (async () => {
    const [{ Ajv2020 }, { Ajv }] = await Promise.all([import("ajv/dist/2020.js"), import("ajv")])
    // Formats and patterns depend on the validator of the catalogue's reader.
    return [new Ajv2020({ validateFormats: false }), new Ajv({ validateFormats: false })]
  })()
  return loading
}

/**
 * The problem, or null for a valid schema. Most schemas name no draft: a schema that is valid in draft 7 or 2020-12 is accepted. A schema
 * whose `$schema` names a draft before 6 is not checked. Recursive: the caller limits the depth.
 */
export async function schemaProblem(schema: unknown): Promise<string | null> {
  if (typeof schema === "boolean") return null
  if (typeof schema !== "object" || schema === null || Array.isArray(schema))
    return "it must be an object or a boolean"
  const { $schema, ...judged } = schema as { readonly $schema?: unknown }
  if (typeof $schema === "string" && /draft-0[1-5]/.test($schema)) return null
  const [newest, draft7] = await validators()
  if (!newest!.validateSchema(judged)) {
    const problem = newest!.errorsText(newest!.errors, { dataVar: "it", separator: "; " })
    if (!draft7!.validateSchema(judged)) return problem
  }
  const dangling = danglingReference(judged)
  return dangling === null ? null : `there is nothing at its $ref ${JSON.stringify(dangling)}`
}

type Json = { readonly [key: string]: unknown }

/** Keywords whose values are data, not schemas. */
export const DATA: ReadonlySet<string> = new Set(["example", "examples", "default", "enum", "const"])
/** Keywords whose values map names to schemas. */
export const NAMED: ReadonlySet<string> = new Set([
  "properties",
  "patternProperties",
  "dependentSchemas",
  "definitions",
  "$defs",
])

/** The first `$ref` into the schema itself whose target is missing. A reference to another document is not checked. */
function danglingReference(schema: Json): string | null {
  const anchors = new Set<unknown>()
  const references: { readonly to: string; readonly from: Json }[] = []
  /** `document`: the target of `#`. A schema with an `$id` is a document of its own. */
  const walk = (node: unknown, document: Json, named: boolean): void => {
    if (typeof node !== "object" || node === null) return
    const { $id, $anchor, $dynamicAnchor, $ref } = node as Json
    const isDocument = !named && typeof $id === "string" && !$id.startsWith("#")
    const own = isDocument ? (node as Json) : document
    if (!named) {
      anchors.add(`#${$anchor}`).add(`#${$dynamicAnchor}`).add($id)
      if (typeof $ref === "string" && $ref.startsWith("#")) references.push({ to: $ref, from: own })
    }
    for (const [key, value] of Object.entries(node))
      if (named || !DATA.has(key)) walk(value, own, !named && NAMED.has(key))
  }
  walk(schema, schema, false)
  return references.find(({ to, from }) => !anchors.has(to) && !isAt(to, from))?.to ?? null
}

function isAt(reference: string, document: Json): boolean {
  if (reference === "#") return true
  if (!reference.startsWith("#/")) return false
  let node: unknown = document
  for (const segment of reference.slice(2).split("/")) {
    const name = nameOf(segment)
    if (typeof node !== "object" || node === null || !Object.hasOwn(node, name)) return false
    node = (node as Json)[name]
  }
  return true
}

/** A segment of a JSON pointer in a URL. */
function nameOf(segment: string): string {
  // Not decodeURIComponent, which throws on invalid UTF-8.
  return querystring.unescape(segment).replaceAll("~1", "/").replaceAll("~0", "~")
}
