/** Makes a JSON schema independent of its document: copies referenced schemas into `definitions`. */
import { DATA, NAMED } from "../../resources/json-schema.ts"

type Json = { readonly [key: string]: unknown }

export interface SchemaSource {
  /** The schema at `#/components/schemas/…`. */
  find(reference: string): Json
  wrong(problem: string): Error
}

/** The same as for request bodies. */
const DEEPEST = 128
/** Many types of a document may each refer to all of its schemas. */
const MOST_DEFINITIONS = 1000

export function standalone(schema: Json, { find, wrong }: SchemaSource): Json {
  const names = new Map<string, string>()
  const taken = new Map<string, number>()
  const unread: string[] = []

  /** The definition is read later: it may refer to itself, or begin a long chain. */
  const define = (reference: string): string => {
    const known = names.get(reference)
    if (known !== undefined) return known
    const base = reference
      .split("/")
      .at(-1)!
      .replace(/[^\w.-]/g, "_")
    const namesakes = (taken.get(base) ?? 0) + 1
    taken.set(base, namesakes)
    const name = namesakes === 1 ? base : `${base}_${namesakes}`
    names.set(reference, name)
    if (names.size > MOST_DEFINITIONS) throw wrong(`refers to more than ${MOST_DEFINITIONS} others`)
    unread.push(reference)
    return name
  }

  const walk = (node: unknown, depth: number, named: boolean): unknown => {
    if (depth > DEEPEST) throw wrong(`nests deeper than ${DEEPEST} levels`)
    if (Array.isArray(node)) return node.map((one) => walk(one, depth + 1, false))
    if (typeof node !== "object" || node === null) return node
    const entries = Object.entries(node).map(([key, value]) => {
      if (named) return [key, walk(value, depth + 1, false)]
      if (key === "$ref" && typeof value === "string") return [key, `#/definitions/${define(value)}`]
      return [key, DATA.has(key) ? value : walk(value, depth + 1, NAMED.has(key))]
    })
    return named ? Object.fromEntries(entries) : withExclusiveBounds(Object.fromEntries(entries))
  }

  const walked = walk(schema, 0, false) as Json
  const definitions: { [name: string]: unknown } = { ...(walked.definitions as Json | undefined) }
  for (let reference = unread.pop(); reference !== undefined; reference = unread.pop())
    definitions[names.get(reference)!] = walk(find(reference), 0, false)
  return names.size === 0 ? walked : { ...walked, definitions }
}

/** `exclusiveMinimum` is a boolean in OpenAPI 3.0 and a number in JSON Schema. */
function withExclusiveBounds(schema: { [key: string]: unknown }): Json {
  for (const bound of ["minimum", "maximum"] as const) {
    const exclusive = bound === "minimum" ? "exclusiveMinimum" : "exclusiveMaximum"
    const { [exclusive]: isExclusive, [bound]: value, ...rest } = schema
    if (typeof isExclusive !== "boolean") continue
    schema = value === undefined ? rest : { ...rest, [isExclusive ? exclusive : bound]: value }
  }
  return schema
}
