/** Compiles schemas into checks that report every problem with its location. */
import { Ajv, type ErrorObject } from "ajv"
import { ApiError, type Problem } from "./errors.ts"
import { FILTER, type JsonSchema, SHOWN } from "./schema.ts"

/** Null when the value is valid. Fills in the schema's defaults. */
export type Check = (value: unknown) => ApiError | null

const PARTS: { readonly [part: string]: string } = {
  body: "body",
  querystring: "query",
  params: "path",
  headers: "header",
}

const TIMESTAMP = /^(\d{4})-(\d\d)-(\d\d)[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/

/** RFC 3339, and a date that exists. */
function isTimestamp(text: string): boolean {
  const [, year, month, day] = TIMESTAMP.exec(text) ?? []
  if (day === undefined || Number.isNaN(Date.parse(text))) return false
  // Date.parse reads the 30th of February as the 2nd of March.
  return Number(day) <= new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate()
}

const ajv = new Ajv({
  useDefaults: true,
  // `$id` is a name in the OpenAPI document, and the same in many schemas.
  addUsedSchema: false,
  allowUnionTypes: true,
  verbose: true,
  formats: { "date-time": isTimestamp, uri: (text: string) => URL.canParse(text) },
})
ajv.addVocabulary([SHOWN, FILTER])

export function compileCheck(schema: JsonSchema, httpPart: string): Check {
  const validate = ajv.compile(schema)
  const part = PARTS[httpPart] ?? httpPart
  return (value) => {
    if (validate(value)) return null
    const found = validate.errors!.flatMap((error) => problemsOf(error, part))
    const told = new Set(found.map(({ loc }) => loc.join("/")))
    const hidden = problemsWithin(schema, value, [part]).filter(({ loc }) => !told.has(loc.join("/")))
    return ApiError.invalid([...found, ...hidden].slice(0, Math.max(found.length, MOST_NAMES)))
  }
}

/** The validator stops at its first error; all missing and unknown names are listed, so that one does not hide another. */
function problemsOf(
  { keyword, instancePath, params, parentSchema, message, data }: ErrorObject,
  part: string,
): Problem[] {
  const path = instancePath.split("/").slice(1).map(unescapePointer)
  const at = (...more: string[]) => [part, ...path, ...more]
  switch (keyword) {
    case "required":
    case "additionalProperties":
      return problemsOfNames(parentSchema as JsonSchema, data as object, at())
    case "enum": {
      // Null stands for an absent field, which is no choice.
      const choices = params.allowedValues.filter((value: unknown) => value !== null)
      return [{ loc: at(), msg: `must be one of ${choices.join(", ")}`, type: "value_error" }]
    }
    default: {
      const missing = part === "body" && path.length === 0 && data === null
      const wrong =
        data === null && message !== undefined ? `${message}, not null` : (message ?? "is not valid")
      const msg = missing ? "a JSON body is required" : wrong
      return [{ loc: at(), msg, type: "value_error" }]
    }
  }
}

/** The most wrong names in a response. */
const MOST_NAMES = 20

/** The missing and unknown names in a value, at every depth. */
function problemsWithin(schema: JsonSchema, data: unknown, loc: readonly string[]): Problem[] {
  if (typeof data !== "object" || data === null) return []
  const found: Problem[] = []
  const add = (more: readonly Problem[]) => found.push(...more.slice(0, MOST_NAMES - found.length))
  const forms = [schema, ...(schema.anyOf ?? [])].filter(({ properties, items }) => properties ?? items)
  const { properties = {}, items } = forms.length === 1 ? forms[0]! : {}
  if (!Array.isArray(data) && forms.length === 1) add(problemsOfNames(forms[0]!, data, loc))
  for (const [name, value] of Object.entries(data)) {
    if (found.length === MOST_NAMES) break
    const inner = Array.isArray(data) ? items : Object.hasOwn(properties, name) ? properties[name] : undefined
    if (inner !== undefined) add(problemsWithin(inner, value, [...loc, name]))
  }
  return found
}

function problemsOfNames(
  { properties = {}, required = [], additionalProperties }: JsonSchema,
  data: object,
  loc: readonly string[],
): Problem[] {
  const missing = required
    .filter((name) => !Object.hasOwn(data, name))
    .map((name) => ({ loc: [...loc, name], msg: "is required", type: "value_error.missing" }))
  if (additionalProperties !== false) return missing
  const known = Object.keys(properties)
  const msg = `is not supported here; ${known.length === 0 ? "none is" : `known are ${known.join(", ")}`}`
  const unknown = Object.keys(data)
    .filter((name) => !Object.hasOwn(properties, name))
    .slice(0, MOST_NAMES)
    .map((name) => ({ loc: [...loc, name], msg, type: "value_error" }))
  return [...missing, ...unknown]
}

function unescapePointer(segment: string): string {
  return segment.replaceAll("~1", "/").replaceAll("~0", "~")
}
