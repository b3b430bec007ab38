/** Examples for the reference page, made from the schemas. */
import type { JsonSchema } from "../schema.ts"
import type { DescribedOperation, OpenApi } from "./document.ts"
import { nameOf } from "./schema.ts"

interface ExampleRequest {
  readonly path: string
  readonly body?: unknown
}

type Schemas = OpenApi["components"]["schemas"]

/** Some calls need a recent time. */
const hoursAgo = (hours: number) =>
  new Date(3_600_000 * (Math.floor(Date.now() / 3_600_000) - hours)).toISOString()
const ID_TAIL = "2rVqHc8KjmXwN4tYbZ6sLpD1aEf"
const ID = /^\^(\w+)_\[A-Za-z0-9\]\{27\}\$$/

/** Examples by the name of a field or parameter, where its schema says too little. */
const VALUES: { readonly [name: string]: unknown } = {
  app_id: "acme",
  appId: "acme",
  endpoint_id: "billing",
  event_type_name: "invoice.paid",
  eventType: "invoice.paid",
  filterType: "invoice.paid",
  event_type: "invoice.paid",
  msg_id: `msg_${ID_TAIL}`,
  ids: [`msg_${ID_TAIL}`],
  attempt_id: `atmpt_${ID_TAIL}`,
  delivery_id: `dlv_${ID_TAIL}`,
  task_id: `qtask_${ID_TAIL}`,
  key_id: "OiZhVMzwJfI1a0jO",
  name: "acme",
  uid: "acme",
  url: "https://example.com/hooks",
  description: "Invoices of Acme",
  payload: { invoice: 17 },
  data: { total: 1, done: 1, changed: 1 },
  headers: { "x-tenant": "acme" },
  metadata: { tier: "gold" },
  key: "whsec_C2FVsBQIhrscChlQIMVb5sSYspob7oDazfgh",
  error: "HTTP 500: try again later",
  policy: "standard",
  q: "acme",
}

export function exampleRequest({ path, operation }: DescribedOperation, document: OpenApi): ExampleRequest {
  const { schemas } = document.components
  const named = path.replace(/\{(\w+)\}/g, (_, name: string) => String(VALUES[name] ?? name))
  const required = (operation.parameters ?? []).filter((one) => one.in === "query" && one.required)
  const query = new URLSearchParams(
    required.map(({ name, schema = {} }): [string, string] => [
      name,
      String(exampleOf(schema, schemas, { name })),
    ]),
  )
  const filled = query.size === 0 ? named : `${named}?${query}`
  const { schema, example } = operation.requestBody?.content["application/json"] ?? {}
  if (schema === undefined) return { path: filled }
  return { path: filled, body: example ?? exampleOf(schema, schemas, { onlyRequired: true }) }
}

export function exampleAnswer({ operation }: DescribedOperation, document: OpenApi) {
  const [status, answer] = Object.entries(operation.responses ?? {})[0] ?? ["200", {}]
  const { schema } = answer.content?.["application/json"] ?? {}
  const body = schema === undefined ? undefined : exampleOf(schema, document.components.schemas)
  return { status: Number(status), body }
}

interface ExampleOptions {
  readonly onlyRequired?: boolean
  /** Of the field or parameter. */
  readonly name?: string
}

function exampleOf(schema: JsonSchema, schemas: Schemas, options: ExampleOptions = {}): unknown {
  if (typeof schema.$ref === "string") return exampleOf(schemas[nameOf(schema.$ref)]!, schemas, options)
  const [example] = (schema.examples as readonly unknown[] | undefined) ?? []
  if (example !== undefined) return example
  if (schema.enum !== undefined) return schema.enum[0]
  if (schema.anyOf !== undefined) return exampleOf(schema.anyOf[0]!, schemas, options)
  const { name } = options
  const type = [schema.type].flat()[0]
  if (name !== undefined && Object.hasOwn(VALUES, name) && fits(VALUES[name], type, schema))
    return VALUES[name]
  switch (type) {
    case "object":
      return objectOf(schema, schemas, options)
    case "array":
      return Array.from({ length: Math.max(1, Number(schema.minItems ?? 1)) }, () =>
        exampleOf(schema.items ?? {}, schemas, {
          ...options,
          name: name?.endsWith("s") ? name.slice(0, -1) : "",
        }),
      )
    case "string":
      return textOf(schema, name)
    case "integer":
    case "number":
      return schema.minimum ?? 1
    case "boolean":
      return false
    default:
      return null
  }
}

function fits(value: unknown, type: unknown, { pattern, properties = {} }: JsonSchema): boolean {
  if (Object.keys(properties).length > 0) return false
  if (typeof pattern === "string" && !(typeof value === "string" && new RegExp(pattern).test(value)))
    return false
  return type === undefined || type === (Array.isArray(value) ? "array" : typeof value)
}

function objectOf(
  { properties, required = [], additionalProperties }: JsonSchema,
  schemas: Schemas,
  options: ExampleOptions,
) {
  if (properties === undefined || Object.keys(properties).length === 0)
    return typeof additionalProperties === "object"
      ? { acme: exampleOf(additionalProperties, schemas, { ...options, name: "" }) }
      : {}
  const names = Object.keys(properties)
  // An example of a PATCH has at least one field.
  const least = required.length > 0 ? names.filter((one) => required.includes(one)) : names.slice(0, 1)
  const given = options.onlyRequired ? least : names
  return Object.fromEntries(
    given.map((one) => [one, exampleOf(properties[one]!, schemas, { ...options, name: one })]),
  )
}

function textOf({ format, pattern }: JsonSchema, name: string | undefined): string {
  if (format === "date-time") return hoursAgo(name === "since" ? 1 : 0)
  if (format === "uri") return "https://example.com/"
  const [, prefix] = ID.exec(String(pattern)) ?? []
  return prefix === undefined ? "acme" : `${prefix}_${ID_TAIL}`
}
