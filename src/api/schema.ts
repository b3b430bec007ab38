/** TypeBox's builders and types over plain objects: loading TypeBox itself took a quarter of a second of the start. */
import type {
  TArray,
  TArrayOptions,
  TBoolean,
  TEnum,
  TEnumValue,
  TInteger,
  TNull,
  TNumber,
  TNumberOptions,
  TObject,
  TObjectOptions,
  TOptional,
  TProperties,
  TRecord,
  TSchema,
  TSchemaOptions,
  TString,
  TStringOptions,
  TUnion,
  TUnknown,
  TUnsafe,
} from "typebox"

export type { Static, TSchema } from "typebox"

export interface JsonSchema {
  readonly $id?: string
  readonly type?: string | readonly string[]
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly JsonSchema[]
  readonly properties?: { readonly [name: string]: JsonSchema }
  readonly required?: readonly string[]
  readonly items?: JsonSchema
  readonly additionalProperties?: boolean | JsonSchema
  readonly [keyword: string]: unknown
}

const OPTIONAL = Symbol("optional")
/** Not a symbol: the OpenAPI generator would lose it when it copies schemas. */
export const SHOWN = "x-shown"
/** Marks the body of a bulk action. Null is refused there: as an absent field it would widen the filter. */
export const FILTER = "x-filter"

function make<T extends TSchema>(schema: JsonSchema, options: TSchemaOptions = {}): T {
  return { ...schema, ...options } as unknown as T
}

/** TypeBox's types do not have the schema's keywords. */
export const jsonSchema = (schema: unknown) => schema as JsonSchema

const isOptional = (schema: object) => OPTIONAL in schema

export const Type = {
  String: (options?: TStringOptions) => make<TString>({ type: "string" }, options),
  Integer: (options?: TNumberOptions) => make<TInteger>({ type: "integer" }, options),
  Number: (options?: TNumberOptions) => make<TNumber>({ type: "number" }, options),
  Boolean: (options?: TSchemaOptions) => make<TBoolean>({ type: "boolean" }, options),
  Unknown: (options?: TSchemaOptions) => make<TUnknown>({}, options),

  /** All texts or all numbers. */
  Enum<const V extends TEnumValue[]>(values: readonly [...V], options?: TSchemaOptions): TEnum<V> {
    return make({ type: typeof values[0] === "number" ? "integer" : "string", enum: values }, options)
  },

  Array<T extends TSchema>(items: T, options?: TArrayOptions): TArray<T> {
    return make({ type: "array", items: jsonSchema(items) }, options)
  },

  /** Other fields are refused. */
  Object<P extends TProperties>(properties: P, options?: TObjectOptions): TObject<P> {
    const required = Object.keys(properties).filter((name) => !isOptional(properties[name]!))
    return make(
      {
        type: "object",
        properties: properties as unknown as NonNullable<JsonSchema["properties"]>,
        ...(required.length === 0 ? {} : { required }),
        additionalProperties: false,
      },
      options,
    )
  },

  /** Any names, values of one type. */
  Record<T extends TSchema>(values: T, options?: TObjectOptions): TRecord<"^.*$", T> {
    return make({ type: "object", additionalProperties: jsonSchema(values) }, options)
  },

  /** May be absent. */
  Optional: <T extends TSchema>(schema: T) => ({ ...schema, [OPTIONAL]: true }) as unknown as TOptional<T>,

  /** May be null, which differs from absent. */
  Nullable<T extends TSchema>(schema: T): TUnion<[T, TNull]> {
    const given = jsonSchema(schema)
    if (given.$id !== undefined || typeof given.type !== "string")
      return make({ anyOf: [given, { type: "null" }] })
    const values = given.enum === undefined ? {} : { enum: [...given.enum, null] }
    return make({ ...given, ...values, type: [given.type, "null"] })
  },

  Union<T extends TSchema[]>(schemas: readonly [...T], options?: TSchemaOptions): TUnion<T> {
    return make({ anyOf: schemas.map(jsonSchema) }, options)
  },

  /** A schema with an explicit TypeScript type. */
  Unsafe: <T>(schema: JsonSchema) => schema as unknown as TUnsafe<T>,

  /** Requests are validated with `schema`; the OpenAPI document has `shown` instead. */
  Shown: <T extends TSchema>(schema: T, shown: TSchema): T => ({ ...schema, [SHOWN]: jsonSchema(shown) }),

  /** The fields that narrow a bulk action. */
  Filter: <T extends TSchema>(schema: T): T => ({ ...schema, [FILTER]: true }),

  /** A component of the OpenAPI document. */
  Named: <T extends TSchema>(name: string, schema: T): T => ({ ...schema, $id: name }),
}

export function pick<T extends object, K extends keyof T>(from: T, names: readonly K[]): Pick<T, K> {
  return Object.fromEntries(names.map((name) => [name, from[name]])) as Pick<T, K>
}

/** A text in JSON; handlers return dates. */
export const Timestamp = Type.Unsafe<Date | string>({ type: "string", format: "date-time" })

/** For 204. */
export const NoContent = Type.Unsafe<undefined>({ type: "null", description: "No content" })
