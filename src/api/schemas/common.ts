/** Schemas that many routes share. */
import { type TSchema, Type } from "../schema.ts"

/** For responses that are serialized here, not by Fastify. */
export const JSON_TYPE = "application/json; charset=utf-8"

export const HttpErrorOut = Type.Named(
  "HttpErrorOut",
  Type.Object({ code: Type.String(), detail: Type.String() }, { title: "HttpError" }),
)

export const ValidationErrorItem = Type.Named(
  "ValidationErrorItem",
  Type.Object(
    {
      loc: Type.Array(Type.String(), { description: "The way to it: body, query, path or header first" }),
      msg: Type.String({ description: "What is wrong" }),
      type: Type.String(),
    },
    { description: "One thing that does not fit" },
  ),
)

export const HTTPValidationError = Type.Named(
  "HTTPValidationError",
  Type.Object({ detail: Type.Array(ValidationErrorItem) }),
)

/** A page of a list, as in Svix's API. */
export function ListResponse<T extends TSchema>(name: string, item: T) {
  return Type.Named(
    name,
    Type.Object({
      data: Type.Array(item),
      iterator: Type.Nullable(Type.String({ description: "Asks for the next page" })),
      prevIterator: Type.Optional(Type.Nullable(Type.String({ description: "Asks for the page before" }))),
      done: Type.Boolean({ description: "Nothing follows" }),
    }),
  )
}

/** The query parameters of every list. */
export const PageQuery = {
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 250, default: 50, description: "The most that are returned" }),
  ),
  iterator: Type.Optional(Type.String({ maxLength: 300, description: "The iterator of the page before" })),
}

export const Order = Type.Named("Ordering", Type.Enum(["ascending", "descending"]))
