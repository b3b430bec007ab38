/** Schemas of event types. */
import { type Static, Timestamp, Type } from "../schema.ts"
import { EventTypeName } from "./fields.ts"

export const Flag = Type.String({ minLength: 1, maxLength: 256, pattern: "^[a-zA-Z0-9\\-_.]+$" })
const fields = {
  description: Type.String({ maxLength: 4096 }),
  archived: Type.Optional(Type.Boolean()),
  deprecated: Type.Optional(Type.Boolean()),
  schemas: Type.Optional(
    Type.Nullable(Type.Object({}, { additionalProperties: true, description: "JSON schemas by version." })),
  ),
  featureFlags: Type.Optional(Type.Nullable(Type.Array(Flag, { minItems: 1, uniqueItems: true }))),
  featureFlag: Type.Optional(Type.Nullable(Flag)),
  groupName: Type.Optional(Type.Nullable(Flag)),
}

export const EventTypeIn = Type.Named("EventTypeIn", Type.Object({ name: EventTypeName, ...fields }))
export const EventTypeUpdate = Type.Named("EventTypeUpdate", Type.Object(fields))
export const EventTypePatch = Type.Named(
  "EventTypePatch",
  Type.Object({ ...fields, description: Type.Optional(fields.description) }),
)
export type EventTypeIn = Static<typeof EventTypeIn>
export type EventTypePatch = Static<typeof EventTypePatch>

export const EventTypeOut = Type.Named(
  "EventTypeOut",
  Type.Object({
    name: EventTypeName,
    description: Type.String(),
    archived: Type.Boolean(),
    deprecated: Type.Boolean(),
    schemas: Type.Nullable(Type.Object({}, { additionalProperties: true })),
    featureFlags: Type.Nullable(Type.Array(Flag)),
    featureFlag: Type.Nullable(Flag),
    groupName: Type.Nullable(Flag),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  }),
)
export type EventTypeOut = Static<typeof EventTypeOut>
