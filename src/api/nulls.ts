/** Clients in several languages send null for a field without a value: it counts as absent. */
import { FILTER, type JsonSchema, SHOWN } from "./schema.ts"

/** Deletes null fields that are optional and not nullable. A filter keeps its nulls, and the check refuses them. */
export function dropNulls(schema: JsonSchema, value: unknown): void {
  if (typeof value !== "object" || value === null || schema[FILTER]) return
  const described = (schema[SHOWN] as JsonSchema | undefined) ?? schema
  const { anyOf = [], items = {}, properties = {}, required = [] } = described
  for (const one of anyOf) dropNulls(one, value)
  if (Array.isArray(value)) {
    for (const one of value) dropNulls(items, one)
    return
  }
  const fields = value as { [name: string]: unknown }
  for (const name of Object.keys(fields)) {
    // A field may be named "constructor".
    const field = Object.hasOwn(properties, name) ? properties[name]! : {}
    if (fields[name] !== null) dropNulls(field, fields[name])
    else if (!required.includes(name) && !takesNull(field)) delete fields[name]
  }
}

function takesNull({ type, anyOf, enum: values }: JsonSchema): boolean {
  if (anyOf !== undefined) return anyOf.some(takesNull)
  // A schema without a type accepts every value.
  return type === undefined ? values === undefined : [type].flat().includes("null")
}
