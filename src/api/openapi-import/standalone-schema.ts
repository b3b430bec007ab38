/** A JSON schema that stands by itself: what it refers to in its document comes along, under `definitions`. */
import { DATA, NAMED } from "../../resources/json-schema.ts"

type Json = { readonly [key: string]: unknown }

export interface SchemaSource {
  /** What is at `#/components/schemas/…`. */
  find(reference: string): Json
  wrong(problem: string): Error
}

/** As deep as a request body may be. */
const DEEPEST = 128
/** A document can have many types that each take all of it along. */
const MOST_DEFINITIONS = 1000

export function standalone(schema: Json, { find, wrong }: SchemaSource): Json {
  const names = new Map<string, string>()
  const taken = new Map<string, number>()
  const unread: string[] = []

  /** It is read later, once: it may refer to itself, or stand at the head of a long chain. */
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

/** OpenAPI 3.0 says with a boolean that a bound is exclusive; JSON schemas have had a number there since. */
function withExclusiveBounds(schema: { [key: string]: unknown }): Json {
  for (const bound of ["minimum", "maximum"] as const) {
    const exclusive = bound === "minimum" ? "exclusiveMinimum" : "exclusiveMaximum"
    const { [exclusive]: isExclusive, [bound]: value, ...rest } = schema
    if (typeof isExclusive !== "boolean") continue
    schema = value === undefined ? rest : { ...rest, [isExclusive ? exclusive : bound]: value }
  }
  return schema
}
