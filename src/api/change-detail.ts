/** The fields of a request as the record of changes shows them: without values that could be secret. */
import type { FastifyRequest } from "fastify"
import { FILTER, jsonSchema } from "./schema.ts"

const LONGEST = 500

/** `url, paused=true`: texts and objects by their names alone, except in the filter of a bulk action. Null: no field was given. */
export function detailOf({ query, body, routeOptions }: FastifyRequest): string | null {
  const schema = jsonSchema(routeOptions.schema?.body ?? {})
  const isFilter = schema[FILTER] === true
  const fields = [
    ...Object.entries(query as object).map(([name, value]) => shown(name, value, true)),
    ...Object.entries((body ?? {}) as object).map(([name, value]) => shown(name, value, isFilter)),
  ]
  if (fields.length === 0) return null
  const text = fields.join(", ")
  return text.length <= LONGEST ? text : `${text.slice(0, LONGEST - 1)}…`
}

function shown(name: string, value: unknown, isPublic: boolean): string {
  if (value === null || typeof value === "boolean" || typeof value === "number") return `${name}=${value}`
  if (value instanceof Date) return `${name}=${value.toISOString()}`
  if (typeof value === "string" && (isPublic || /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(value)))
    return `${name}=${value}`
  return isPublic && Array.isArray(value) ? `${name}=${value.join("|")}` : name
}
