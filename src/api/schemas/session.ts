/** Schemas of sessions. */
import { jsonSchema, type Static, Timestamp, Type } from "../schema.ts"
import { SESSION_PAGES } from "../session-cookies.ts"
import { Capability, Scope } from "./key.ts"

export const SessionIn = Type.Named(
  "SessionIn",
  Type.Object(
    {
      key: Type.Optional(
        Type.String({ minLength: 1, maxLength: 512, description: "A key; the session has its rights." }),
      ),
      code: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: 128,
          description: "The code of a login link. It works once.",
        }),
      ),
      cookie: Type.Optional(
        Type.Boolean({
          default: true,
          description:
            "Whether the session's token is set as a cookie. If not, it is in the response: for a portal in a frame of another site, where browsers send no cookies.",
        }),
      ),
    },
    { examples: [{ key: "ph_2Yd8kQvR5tZm1cXw_3sJ7bNfH9pLgV4aTqE6uWzK8dYrM2xC5oP1iBnS0", cookie: false }] },
  ),
)
export type SessionIn = Static<typeof SessionIn>

export const DashboardLinkIn = Type.Named(
  "DashboardLinkIn",
  Type.Object({
    readOnly: Type.Optional(
      Type.Boolean({ default: false, description: "The session sees everything and changes nothing." }),
    ),
  }),
)

export const DashboardLinkOut = Type.Named(
  "DashboardLinkOut",
  Type.Object({ url: Type.String({ format: "uri" }) }),
)

const session = {
  id: Type.String(),
  name: Type.String({ description: "The name of the key or the login link that opened it." }),
  page: Type.Enum(SESSION_PAGES as unknown as string[], {
    description: "`portal` for a session of one application, else `dashboard`.",
  }),
  keyId: Type.Nullable(
    Type.String({ description: "The key that opened it, and with which it ends; null for a login link." }),
  ),
  scope: Scope,
  appId: Type.Nullable(Type.String()),
  capabilities: Type.Nullable(Type.Array(Capability, { description: "Null for all." })),
  sessionId: Type.Nullable(Type.String({ description: "The key's session id." })),
  createdAt: Timestamp,
  lastUsedAt: Timestamp,
  expiresAt: Type.Unsafe<Date | string>({
    ...jsonSchema(Timestamp),
    description:
      "When it ends unless it is used before: 12 hours after its last use, and at the latest 7 days after it was opened or when its key expires.",
  }),
  revokedAt: Type.Nullable(Timestamp),
}
export const SessionOut = Type.Named("SessionOut", Type.Object(session))
export type SessionOut = Static<typeof SessionOut>
export const NewSessionOut = Type.Named(
  "NewSessionOut",
  Type.Object({
    ...session,
    token: Type.Nullable(
      Type.String({ description: "A bearer token, shown this once; null if it was set as a cookie." }),
    ),
  }),
)
