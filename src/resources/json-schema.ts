/** Whether a JSON schema is one, by the meta-schema of its draft. */
import querystring from "node:querystring"
import type { Ajv } from "ajv"

type Validator = Pick<Ajv, "validateSchema" | "errorsText" | "errors">

let loading: Promise<readonly Validator[]> | null = null

/** Loaded when the first schema comes: the validator would make the start longer. */
function validators(): Promise<readonly Validator[]> {
  loading ??= (async () => {
    const [{ Ajv2020 }, { Ajv }] = await Promise.all([import("ajv/dist/2020.js"), import("ajv")])
    // Patterns and addresses are for the readers of the catalogue, whose engines differ.
    return [new Ajv2020({ validateFormats: false }), new Ajv({ validateFormats: false })]
  })()
  return loading
}

/**
 * What is wrong with it; null for a schema of draft 6 or later. A schema says in `$schema` if it is of an older draft, and is then not
 * judged; most say nothing, so that one that fits draft 7 or 2020-12 is good.
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

/** Where a schema has data, and not schemas. */
export const DATA: ReadonlySet<string> = new Set(["example", "examples", "default", "enum", "const"])
/** Where the keys are names that somebody chose. */
export const NAMED: ReadonlySet<string> = new Set([
  "properties",
  "patternProperties",
  "dependentSchemas",
  "definitions",
  "$defs",
])

/** The first `$ref` into the schema itself that leads nowhere. One to another document is left to the readers, who may have it. */
function danglingReference(schema: Json): string | null {
  const anchors = new Set<unknown>()
  const references: { readonly to: string; readonly from: Json }[] = []
  /** `document`: what `#` is there, which a schema with an `$id` of its own is by itself. */
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
  // Not decodeURIComponent, which throws at bytes that are no text.
  return querystring.unescape(segment).replaceAll("~1", "/").replaceAll("~0", "~")
}
