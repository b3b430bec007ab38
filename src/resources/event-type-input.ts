/** Parses the input that creates or changes an event type. */
import { invalid } from "../core/errors.ts"
import {
  nameList,
  optionalName,
  parseFields,
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
  /** Only portals with one of these flags show the event type; null: all portals. */
  readonly featureFlags: readonly string[] | null
  readonly groupName: string | null
}

export interface EventTypeInput extends Partial<EventTypeBody> {
  name: string
  description: string
}

const DEFAULTS: Omit<EventTypeBody, "description"> = {
  archived: false,
  deprecated: false,
  schemas: null,
  featureFlags: null,
  groupName: null,
}
const MOST_SCHEMA_CHARACTERS = 262_144
/** The limit of a request body too. From about 1000 levels on, the validator would overflow the stack. */
const MOST_SCHEMA_LEVELS = 128

/** Fields that are left out get their defaults. */
export async function parseWhole(input: Partial<Omit<EventTypeInput, "name">>): Promise<EventTypeBody> {
  const patch = await parsePatch(input)
  if (patch.description === undefined) throw invalid("description", "is required")
  return { description: "", ...DEFAULTS, ...patch }
}

export async function parsePatch(
  input: Partial<Omit<EventTypeInput, "name">>,
): Promise<Partial<EventTypeBody>> {
  const body = parseFields(
    input,
    {
      description: (value, field) => requireText(value, field, 4096),
      archived: requireBoolean,
      deprecated: requireBoolean,
      featureFlags: (value, field) => nameList(value, field, 100),
      groupName: (value, field) => optionalName(value, field),
    },
    ["schemas"],
  )
  return input.schemas === undefined ? body : { ...body, schemas: await requireSchemas(input.schemas) }
}

async function requireSchemas(schemas: EventTypeBody["schemas"]): Promise<EventTypeBody["schemas"]> {
  if (schemas === null) return null
  requireObject(schemas, "schemas")
  if (isDeeperThan(MOST_SCHEMA_LEVELS, schemas))
    throw invalid("schemas", `must not nest deeper than ${MOST_SCHEMA_LEVELS} levels`)
  if (JSON.stringify(schemas).length > MOST_SCHEMA_CHARACTERS)
    throw invalid("schemas", `must be at most ${MOST_SCHEMA_CHARACTERS} characters of JSON`)
  for (const [version, schema] of Object.entries(schemas)) {
    const problem = await schemaProblem(schema)
    if (problem !== null) throw invalid(`schemas.${version}`, `is not a JSON schema: ${problem}`)
  }
  return schemas
}

function isDeeperThan(levels: number, value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false
  return levels === 0 || Object.values(value).some((inner) => isDeeperThan(levels - 1, inner))
}
