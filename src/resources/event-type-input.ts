/** What is said of an event type when it is made or changed. */
import { invalid } from "../core/errors.ts"
import {
  nameList,
  optionalName,
  refuseUnknown,
  requireBoolean,
  requireObject,
  requireText,
} from "../core/input.ts"
import { schemaProblem } from "./json-schema.ts"

export interface EventTypeBody {
  readonly description: string
  readonly archived: boolean
  readonly deprecated: boolean
  /** JSON schemas by version. */
  readonly schemas: { readonly [version: string]: unknown } | null
  /** Only portals that have one of these see it; null is seen by all. */
  readonly featureFlags: readonly string[] | null
  readonly groupName: string | null
}

export interface EventTypeInput extends Partial<EventTypeBody> {
  name: string
  description: string
}

const FIELDS = ["description", "archived", "deprecated", "schemas", "featureFlags", "groupName"] as const
const NEW: Omit<EventTypeBody, "description"> = {
  archived: false,
  deprecated: false,
  schemas: null,
  featureFlags: null,
  groupName: null,
}
const MOST_SCHEMA_CHARACTERS = 262_144

/** All of it; what is left out is as for a new one. */
export async function parseWhole(input: Partial<Omit<EventTypeInput, "name">>): Promise<EventTypeBody> {
  const patch = await parsePatch(input)
  if (patch.description === undefined) throw invalid("description", "is required")
  return { description: "", ...NEW, ...patch }
}

export async function parsePatch(
  input: Partial<Omit<EventTypeInput, "name">>,
): Promise<Partial<EventTypeBody>> {
  refuseUnknown(input, FIELDS, "")
  const body: { -readonly [field in keyof EventTypeBody]?: EventTypeBody[field] } = {}
  if (input.description !== undefined) body.description = requireText(input.description, "description", 4096)
  if (input.archived !== undefined) body.archived = requireBoolean(input.archived, "archived")
  if (input.deprecated !== undefined) body.deprecated = requireBoolean(input.deprecated, "deprecated")
  if (input.schemas !== undefined) body.schemas = await requireSchemas(input.schemas)
  if (input.featureFlags !== undefined) body.featureFlags = nameList(input.featureFlags, "featureFlags", 100)
  if (input.groupName !== undefined) body.groupName = optionalName(input.groupName, "groupName")
  return body
}

async function requireSchemas(schemas: EventTypeBody["schemas"]): Promise<EventTypeBody["schemas"]> {
  if (schemas === null) return null
  requireObject(schemas, "schemas")
  if (JSON.stringify(schemas).length > MOST_SCHEMA_CHARACTERS)
    throw invalid("schemas", `must be at most ${MOST_SCHEMA_CHARACTERS} characters of JSON`)
  for (const [version, schema] of Object.entries(schemas)) {
    const problem = await schemaProblem(schema)
    if (problem !== null) throw invalid(`schemas.${version}`, `is not a JSON schema: ${problem}`)
  }
  return schemas
}
