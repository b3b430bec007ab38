/** Schemas that many routes share. */
import { Timestamp, type TSchema, Type } from "../schema.ts"

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

/** Only in the answer to `bounded=true`. */
export const searchedTo = {
  searchedTo: Type.Optional(
    Type.Nullable({
      ...Timestamp,
      description:
        "With `bounded=true`: the time of the last row that was searched, when older rows were not; the iterator continues from there. Null: the page is full, or everything was searched.",
    }),
  ),
}

/** A page of a list, as in Svix's API. */
export function ListResponse<T extends TSchema>(name: string, item: T) {
  return Type.Named(name, Type.Object(page(item)))
}

/** A page of a list that takes the parameter `bounded`. */
export function BoundedListResponse<T extends TSchema>(name: string, item: T) {
  return Type.Named(name, Type.Object({ ...page(item), ...searchedTo }))
}

function page<T extends TSchema>(item: T) {
  return {
    data: Type.Array(item),
    iterator: Type.Nullable(Type.String({ description: "Asks for the next page" })),
    prevIterator: Type.Optional(Type.Nullable(Type.String({ description: "Asks for the page before" }))),
    done: Type.Boolean({ description: "Nothing follows" }),
  }
}

/** The query parameters of every list. */
export const PageQuery = {
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 250, default: 50, description: "The most that are returned" }),
  ),
  iterator: Type.Optional(Type.String({ maxLength: 300, description: "The iterator of the page before" })),
}

/** Of lists of the organization's things and those of its applications. */
export const OwnerQuery = {
  app_id: Type.Optional(Type.String({ description: "Only those of this application, by id or uid." })),
  organization: Type.Optional(
    Type.Boolean({
      description:
        "True: only those of the organization itself, without those of its applications. Not with `app_id`.",
    }),
  ),
}

/** Of lists, counts and groups whose filters may have no index. */
export const Bounded = {
  bounded: Type.Optional(
    Type.Boolean({
      description:
        "True: a filter without an index searches the newest 10 000 rows, and the answer says in `searchedTo` how far. " +
        "Times are found by when a row was added: a delivery that a replay added after `before` is not found.",
    }),
  ),
}

/** Of lanes. */
export const BoundedLanes = {
  bounded: Type.Optional(
    Type.Boolean({
      description:
        "True: in each queue of a lane at most 10 000 deliveries are counted, and `isLowerBound` says whether there may be more. " +
        "Without it every waiting delivery of the page's lanes is read.",
    }),
  ),
}

export const Order = Type.Named("Ordering", Type.Enum(["ascending", "descending"]))
