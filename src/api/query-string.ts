/** Parses query strings: lists in every spelling of the clients, values converted to the schema's types. */
import type { RouteOptions } from "fastify"
import type { Api } from "./context.ts"
import { type JsonSchema, Type } from "./schema.ts"

export type RawQuery = { readonly [name: string]: string | readonly string[] }

/** `a=1&a=2`, `a[]=1` and `a[0]=1` are the same list. */
export function parseQuery(text: string): RawQuery {
  const query: { [name: string]: string | string[] } = Object.create(null)
  for (const [given, value] of new URLSearchParams(text)) {
    const name = given.replace(/\[\d*\]$/, "")
    const before = query[name]
    if (before === undefined) query[name] = name === given ? value : [value]
    else if (Array.isArray(before)) before.push(value)
    else query[name] = [before, value]
  }
  return query
}

/** The format of Rust's chrono, which Svix's server accepts. */
const UTC_TIME = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d+)?) UTC$/

/** Values that cannot be converted stay texts, and the schema refuses them. */
export function coerceQuery(schema: JsonSchema, raw: RawQuery): { [name: string]: unknown } {
  const query: { [name: string]: unknown } = Object.create(null)
  for (const [name, value] of Object.entries(raw)) {
    const wanted = schema.properties?.[name]
    query[name] = wanted === undefined ? value : coerce(wanted, value)
  }
  return query
}

function coerce(wanted: JsonSchema, value: string | readonly string[]): unknown {
  if (wanted.type === "array") {
    const words = [value].flat().flatMap((text) => text.split(","))
    return words.filter((word) => word !== "").map((word) => scalar(wanted.items ?? {}, word))
  }
  return typeof value === "string" ? scalar(wanted, value) : value
}

function scalar(wanted: JsonSchema, text: string): unknown {
  const types = [wanted.type].flat()
  if ((types.includes("integer") || types.includes("number")) && /^-?\d{1,15}(\.\d{1,15})?$/.test(text))
    return Number(text)
  if (types.includes("boolean") && (text === "true" || text === "false")) return text === "true"
  if (wanted.format === "date-time") return text.replace(UTC_TIME, "$1T$2Z")
  return text
}

const NO_QUERY = Type.Object({})
/** Fastify validates an absent body as null. */
const NO_BODY = Type.Nullable(Type.Object({}))

/** Routes without a schema for the query refuse every parameter, those without one for the body every field. */
export function refuseUndeclared(app: Api): void {
  app.addHook("onRoute", (route: RouteOptions) => {
    if (route.schema?.hide === true) return
    const hasBody = route.method !== "GET" && route.method !== "HEAD"
    route.schema = { querystring: NO_QUERY, ...(hasBody ? { body: NO_BODY } : {}), ...route.schema }
  })
}
