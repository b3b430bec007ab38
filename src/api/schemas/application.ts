/** Schemas of applications. */
import { type Static, Timestamp, Type } from "../schema.ts"
import { Id, Metadata, ThrottleRate, Uid } from "./fields.ts"

const fields = {
  name: Type.String({ minLength: 1, maxLength: 256 }),
  uid: Type.Optional(Type.Nullable(Uid)),
  throttleRate: Type.Optional(Type.Nullable(ThrottleRate)),
  rateLimit: Type.Optional(Type.Nullable(ThrottleRate)),
  metadata: Type.Optional(Metadata),
}

export const ApplicationIn = Type.Named("ApplicationIn", Type.Object(fields))
export const ApplicationPatch = Type.Named(
  "ApplicationPatch",
  Type.Object({ ...fields, name: Type.Optional(fields.name) }),
)
export type ApplicationIn = Static<typeof ApplicationIn>

export const ApplicationOut = Type.Named(
  "ApplicationOut",
  Type.Object({
    id: Id("app", "The application's id."),
    name: Type.String(),
    uid: Type.Optional(Type.Nullable(Uid)),
    throttleRate: Type.Nullable(ThrottleRate),
    rateLimit: Type.Nullable(ThrottleRate),
    metadata: Metadata,
    createdAt: Timestamp,
    updatedAt: Timestamp,
  }),
)
export type ApplicationOut = Static<typeof ApplicationOut>
