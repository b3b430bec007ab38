/** Schemas of the record of changes. */
import { CHANGER_KINDS } from "../../resources/changes.ts"
import { Timestamp, Type } from "../schema.ts"

const text = (description: string) => Type.Nullable(Type.String({ description }))

export const ChangeOut = Type.Named(
  "ChangeOut",
  Type.Object({
    id: Type.String(),
    at: Timestamp,
    action: Type.String({ description: "The operation, such as `endpoint.pause`." }),
    by: Type.Object({
      kind: Type.Enum(CHANGER_KINDS as unknown as string[], {
        description:
          "`login`: a session of the dashboard; `portal`: one of an application's portal; `local`: the command line, on the store itself.",
      }),
      id: text("Of the key or the session; null for the others."),
      name: Type.String({ description: "Of the key or the login link; of a JWT its subject." }),
      appId: text("The only application that the caller can access; null for the whole organization."),
    }),
    appId: text("The application that was changed."),
    endpointId: text("The endpoint that was changed."),
    subject: text(
      "The id or name of the resource that was made or changed, or of the task that changes it; null when there is no single one.",
    ),
    detail: text("The fields that the caller gave, without values that could be secret."),
  }),
)
