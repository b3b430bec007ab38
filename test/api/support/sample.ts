/** Requests that an operation takes: the smallest that fits, naming what it is told to name. */
import { namesIn, type Operation, type Schema } from "./operations.ts"
import type { CallOptions } from "./server.ts"

/** Values by the name of a field, of a query parameter or of a component. What has one is given also where it may be left out. */
export type Known = { readonly [name: string]: unknown }

/**
 * What stands in a path, by its name in braces. Where that says too little, by what is before it as well: `key/{name}`, or
 * `part/key/{name}`.
 */
export type Names = { readonly [place: string]: string }

export interface Request extends Pick<CallOptions, "body"> {
  readonly method: string
  readonly path: string
}

const NOW = new Date().toISOString()

/** `names` has one entry for each name in the path; the last is for all that follow. */
export function requestOf(operation: Operation, names: readonly Names[], known: Known): Request {
  const { method, body, parameters } = operation
  const query = parameters.filter((one) => one.in === "query" && Object.hasOwn(known, one.name))
  const search = new URLSearchParams(
    query.map(({ name }): [string, string] => [name, String(known[name])]),
  ).toString()
  return {
    method,
    path: filled(operation.path, names) + (search === "" ? "" : `?${search}`),
    ...(body === null ? {} : { body: sample(body, known) }),
  }
}

/** The last of `names` is for all that follow. */
export function filled(path: string, names: readonly Names[]): string {
  const values = namesIn(path).map(({ name, before }, i) =>
    valueAt((names[i] ?? names.at(-1))!, name, before),
  )
  return path.replace(/\{\w+\}/g, () => values.shift()!)
}

/** A name that nobody thought of must not go by in silence. */
export function valueAt(names: Names, name: string, before: readonly string[]): string {
  const places = [[...before.slice(-2), name], [...before.slice(-1), name], [name]]
  const place = places.map((parts) => parts.join("/")).find((one) => Object.hasOwn(names, one))
  if (place === undefined)
    throw new Error(`${before.join("/")}/${name} has a name that the tests cannot fill: add it to tenant.ts`)
  return names[place]!
}

export function sample(schema: Schema, known: Known): unknown {
  const { name, type, properties = {}, required = [], pattern, minLength = 0, minItems = 0 } = schema
  if (name !== undefined && Object.hasOwn(known, name)) return known[name]
  if (schema.enum !== undefined) return schema.enum[0]
  if (schema.anyOf !== undefined) return sample(schema.anyOf[0]!, known)
  switch ([type].flat()[0]) {
    case "object": {
      const given = Object.keys(properties).filter(
        (one) => required.includes(one) || Object.hasOwn(known, one),
      )
      const value = (one: string) =>
        Object.hasOwn(known, one) ? known[one] : sample(properties[one]!, known)
      return Object.fromEntries(given.map((one) => [one, value(one)]))
    }
    case "array":
      return Array.from({ length: minItems }, () => sample(schema.items!, known))
    case "string": {
      const text = schema.format === "date-time" ? NOW : "x".repeat(minLength)
      if (pattern !== undefined && !new RegExp(pattern).test(text))
        throw new Error(`no sample fits ${pattern}: add one to what is known`)
      return text
    }
    case "integer":
    case "number":
      return schema.minimum ?? 1
    case "boolean":
      return false
    default:
      return null
  }
}
