/** Schemas of a tenant's exported event types and policies. */
import { Timestamp, Type } from "../schema.ts"
import { EventTypeIn, EventTypeOut } from "./event-type.ts"
import { PolicyIn } from "./policy.ts"

const Version = Type.Enum([1], { description: "Of the file." })

/** An export's times are accepted and ignored. */
const Imported = Type.Named(
  "EnvironmentEventTypeIn",
  Type.Object({
    ...EventTypeIn.properties,
    createdAt: Type.Optional(Timestamp),
    updatedAt: Type.Optional(Timestamp),
  }),
)

export const EnvironmentIn = Type.Named(
  "EnvironmentIn",
  Type.Object({
    version: Type.Optional(Version),
    createdAt: Type.Optional(Timestamp),
    eventTypes: Type.Optional(Type.Nullable(Type.Array(Imported))),
    settings: Type.Optional(
      Type.Nullable(
        Type.Object({
          policies: Type.Optional(Type.Record(PolicyIn, { description: "Retry policies by name." })),
        }),
      ),
    ),
    connectors: Type.Optional(
      Type.Nullable(Type.Array(Type.Unknown(), { description: "Must be empty: there are none here." })),
    ),
  }),
)

export const EnvironmentOut = Type.Named(
  "EnvironmentOut",
  Type.Object({
    version: Version,
    createdAt: Timestamp,
    eventTypes: Type.Array(EventTypeOut),
    settings: Type.Object({
      policies: Type.Record(PolicyIn, { description: "Retry policies by name." }),
    }),
    connectors: Type.Array(Type.Unknown(), { description: "Always empty." }),
  }),
)
