/** Reads event types from the webhooks of an OpenAPI document. */
import { invalid } from "../../core/errors.ts"
import type { EventTypeInput } from "../../resources/event-types.ts"
import { isObject, type Json, OpenApiDocument } from "./document.ts"
import { readYaml } from "./yaml.ts"

export type ImportedType = Required<Omit<EventTypeInput, "archived">>

const METHODS = ["post", "put", "patch"] as const
const MOST_TYPES = 1000

export async function readSpec(text: string): Promise<unknown> {
  try {
    return JSON.parse(text)
  } catch {
    return readYaml(text, "specRaw")
  }
}

/** `at` is the field of the document, for error messages. */
export function eventTypesOf(spec: unknown, at: string): ImportedType[] {
  if (!isObject(spec)) throw invalid(at, "must be an OpenAPI document")
  const document = new OpenApiDocument(spec, at)
  const sections = ["x-webhooks", "webhooks"].filter((section) => spec[section] !== undefined)
  if (sections.length === 0)
    throw invalid(at, "has no webhooks (or x-webhooks, before OpenAPI 3.1): there is nothing to import")
  const types = new Map<string, ImportedType>()
  for (const section of sections) {
    const webhooks = Object.entries(document.object(spec[section], section))
    if (webhooks.length > MOST_TYPES) throw document.wrong(section, `are more than ${MOST_TYPES}`)
    for (const [name, item] of webhooks)
      types.set(name, eventTypeOf(document, name, item, `${section}.${name}`))
  }
  return [...types.values()]
}

function eventTypeOf(document: OpenApiDocument, name: string, given: unknown, where: string): ImportedType {
  const item = document.object(given, where)
  const method = METHODS.find((one) => item[one] !== undefined)
  if (method === undefined) throw document.wrong(where, `has none of ${METHODS.join(", ")}`)
  const operation = document.object(item[method], `${where}.${method}`)
  const body = document.optional(operation.requestBody, `${where}.${method}.requestBody`)
  const flags = operation["x-svix-feature-flags"] ?? operation["x-svix-feature-flag"] ?? null
  const description = operation.description ?? operation.summary ?? item.description ?? item.summary
  return {
    name,
    description: (description ?? body.description ?? "") as string,
    deprecated: (operation.deprecated ?? false) as boolean,
    schemas: schemasOf(document, body, where),
    featureFlags: (typeof flags === "string" ? [flags] : flags) as string[] | null,
    groupName: (operation["x-svix-group-name"] ?? null) as string | null,
  }
}

/** The schema of the JSON body, as version 1, with the document's examples. */
function schemasOf(document: OpenApiDocument, body: Json, where: string): { readonly "1": unknown } | null {
  const content = document.optional(body.content, `${where}.content`)
  const type = Object.keys(content).find((one) => /^application\/([\w.-]+\+)?json\b/.test(one))
  if (type === undefined) return null
  const media = document.object(content[type], `${where}.content`)
  const schema = media.schema === undefined ? {} : document.schema(media.schema, `${where}.schema`)
  const named = Object.values(document.optional(media.examples, `${where}.examples`))
  const examples = [
    media.example,
    ...named.map((one) => document.object(one, `${where}.examples`).value),
    schema.example,
  ].filter((one) => one !== undefined)
  const whole = "examples" in schema || examples.length === 0 ? schema : { ...schema, examples }
  return Object.keys(whole).length === 0 ? null : { "1": whole }
}
