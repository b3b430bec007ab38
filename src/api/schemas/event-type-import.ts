/** Schemas of the import of event types from an OpenAPI document. */
import { type Static, Type } from "../schema.ts"
import { Flag } from "./event-type.ts"
import { EventTypeName } from "./fields.ts"

export const EventTypeImportOpenApiIn = Type.Named(
  "EventTypeImportOpenApiIn",
  Type.Object(
    {
      spec: Type.Optional(
        Type.Nullable(
          Type.Object({}, { additionalProperties: true, description: "The document, as a JSON object." }),
        ),
      ),
      specRaw: Type.Optional(Type.Nullable(Type.String({ description: "The document, as JSON or YAML." }))),
      dryRun: Type.Optional(Type.Boolean({ description: "Only says what would change." })),
      replaceAll: Type.Optional(
        Type.Boolean({ description: "Archives those that are not in the document." }),
      ),
    },
    {
      description: "One of spec and specRaw.",
      examples: [
        { spec: { webhooks: { "invoice.paid": { post: { description: "An invoice was paid" } } } } },
      ],
    },
  ),
)

export const EventTypeFromOpenApi = Type.Named(
  "EventTypeFromOpenApi",
  Type.Object({
    name: EventTypeName,
    description: Type.String(),
    deprecated: Type.Boolean(),
    schemas: Type.Nullable(Type.Object({}, { additionalProperties: true })),
    groupName: Type.Nullable(Flag),
    featureFlags: Type.Nullable(Type.Array(Flag)),
  }),
)
export type EventTypeFromOpenApi = Static<typeof EventTypeFromOpenApi>

export const EventTypeImportOpenApiOut = Type.Named(
  "EventTypeImportOpenApiOut",
  Type.Object({
    data: Type.Named(
      "EventTypeImportOpenApiOutData",
      Type.Object({
        modified: Type.Array(EventTypeName, { description: "Those that were created or changed." }),
        archived: Type.Array(EventTypeName, { description: "Those that replaceAll archived." }),
        to_modify: Type.Optional(
          Type.Array(EventTypeFromOpenApi, { description: "In a dry run, those that would be." }),
        ),
        to_archive: Type.Optional(Type.Array(EventTypeName)),
      }),
    ),
  }),
)
