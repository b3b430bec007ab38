/** Values for a schema: those that fit it, and those that somebody has spoiled. */
import fc, { type Arbitrary } from "fast-check"
import type { Schema } from "./operations.ts"

/** Better values than the schema alone gives, by the name of a field or of a component. */
export type Hints = { readonly [name: string]: Arbitrary<unknown> }

const TEXT = fc.string({ unit: "binary", maxLength: 40 })

export function fitting(schema: Schema, hints: Hints): Arbitrary<unknown> {
  const { name, type, enum: values, anyOf } = schema
  if (name !== undefined && Object.hasOwn(hints, name)) return hints[name]!
  if (values !== undefined) return fc.constantFrom(...values)
  if (anyOf !== undefined) return fc.oneof(...anyOf.map((one) => fitting(one, hints)))
  if (Array.isArray(type)) return fc.oneof(...type.map((one) => fitting({ ...schema, type: one }, hints)))
  switch (type) {
    case "object":
      return objects(schema, hints)
    case "array": {
      const { items = {}, minItems: minLength = 0, maxItems = 10 } = schema
      const lengths = { minLength, maxLength: Math.max(minLength, Math.min(maxItems, 10)) }
      const item = fitting(items, hints)
      return schema.uniqueItems ? fc.uniqueArray(item, lengths) : fc.array(item, lengths)
    }
    case "string":
      return texts(schema)
    case "integer":
      return fc.integer({ min: schema.minimum ?? 0, max: schema.maximum ?? Number.MAX_SAFE_INTEGER })
    case "number":
      return fc.double({ noNaN: true, noDefaultInfinity: true })
    case "boolean":
      return fc.boolean()
    case "null":
      return fc.constant(null)
    default:
      return fc.jsonValue()
  }
}

function objects({ properties = {}, required = [], additionalProperties }: Schema, hints: Hints) {
  const fields = Object.entries(properties).map(([name, one]) => [name, hints[name] ?? fitting(one, hints)])
  const model: Hints = Object.fromEntries(fields)
  const known = fc.record(model, { requiredKeys: [...required] })
  if (!additionalProperties) return known
  const value = additionalProperties === true ? fc.jsonValue() : fitting(additionalProperties, hints)
  const others = fc.dictionary(fc.oneof(TEXT, fc.stringMatching(/^[\w-]{1,20}$/)), value, { maxKeys: 5 })
  return fc.tuple(others, known).map(([more, named]) => ({ ...more, ...named }))
}

function texts({ format, pattern, minLength = 0, maxLength = 10_000 }: Schema): Arbitrary<string> {
  if (format === "date-time") {
    const range = { min: new Date("0000-01-01T00:00:00Z"), max: new Date("9999-12-31T23:59:59Z") }
    return fc.date({ ...range, noInvalidDate: true }).map((one) => one.toISOString())
  }
  if (pattern !== undefined)
    return fc
      .stringMatching(new RegExp(pattern))
      .filter((one) => one.length >= minLength && one.length <= maxLength)
  return fc.oneof(
    { weight: 5, arbitrary: fc.string({ unit: "binary", minLength, maxLength: Math.min(maxLength, 50) }) },
    { weight: 1, arbitrary: fc.constant("x".repeat(maxLength)) },
  )
}

const nested = (depth: number) => JSON.parse("[".repeat(depth) + "]".repeat(depth))

export const JUNK: Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(null, true, false, 0, -1, 1.5, 2 ** 31, 2 ** 53, 2 ** 63, 1e21, 1e308, -1e308),
  fc.constantFrom("", " ", "\0", "a\0b", "\ud800", "\u{1f4ef}", "constructor", "toString", "hasOwnProperty"),
  fc.constantFrom("0000-01-01T00:00:00Z", "2024-02-30T25:61:61Z", "9999-12-31T23:59:60+23:59", "1e9", "NaN"),
  fc.constantFrom<unknown>([], {}, [[]], [null], { $ref: "#" }, nested(100), nested(500)),
  fc.constantFrom("x".repeat(300), "x".repeat(100_000), "\0".repeat(5000), Array(2000).fill(1)),
  TEXT,
  fc.jsonValue(),
)

/** One thing in it is replaced, taken away or added. */
export function spoiled(values: Arbitrary<unknown>): Arbitrary<unknown> {
  const how = fc.constantFrom("replace", "remove", "add")
  return fc
    .tuple(values, fc.nat(), how, JUNK, fc.oneof(TEXT, fc.constantFrom("constructor", "id")))
    .map(spoil)
}

function spoil([value, n, how, junk, name]: [unknown, number, string, unknown, string]): unknown {
  const copy: { readonly root: unknown } = JSON.parse(JSON.stringify({ root: value ?? null }))
  const places = placesIn(copy)
  const [parent, key] = places[n % places.length]!
  if (how === "replace") parent[key] = junk
  else if (how === "remove") delete parent[key]
  else {
    const target = parent[key]
    if (typeof target === "object" && target !== null) Object.assign(target, { [name]: junk })
    else parent[key] = [target, junk]
  }
  return copy.root
}

type Parent = { [key: string]: unknown }

function placesIn(node: object): [Parent, string][] {
  return Object.entries(node).flatMap(([key, one]): [Parent, string][] => {
    const inside = typeof one === "object" && one !== null ? placesIn(one) : []
    return [[node as Parent, key], ...inside]
  })
}
