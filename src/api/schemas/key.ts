/** Schemas of keys and portal access. */
import { KEY_SCOPES } from "../../core/key-scope.ts"
import { CAPABILITIES } from "../../resources/keys.ts"
import { type Static, Timestamp, Type } from "../schema.ts"
import { ApplicationIn } from "./application.ts"
import { Flag } from "./event-type.ts"

export const Capability = Type.Named("AppPortalCapability", Type.Enum(CAPABILITIES))
const Capabilities = Type.Nullable(Type.Array(Capability, { minItems: 1, uniqueItems: true }))
const FeatureFlags = Type.Array(Flag, {
  maxItems: 100,
  uniqueItems: true,
  description: "The event types behind a flag that its holder sees.",
})
const SessionId = Type.String({ minLength: 1, maxLength: 64, pattern: "^[a-zA-Z0-9@_-]+$" })
export const Scope = Type.Enum(KEY_SCOPES as unknown as string[])
export const WEEK_SECONDS = 7 * 86_400

export const AppPortalAccessIn = Type.Named(
  "AppPortalAccessIn",
  Type.Object(
    {
      application: Type.Optional(Type.Nullable(ApplicationIn)),
      readOnly: Type.Optional(Type.Nullable(Type.Boolean({ deprecated: true }))),
      capabilities: Type.Optional(Capabilities),
      featureFlags: Type.Optional(Type.Nullable(FeatureFlags)),
      expiry: Type.Optional(
        Type.Nullable(
          Type.Integer({
            minimum: 1,
            maximum: WEEK_SECONDS,
            description: "Seconds after which the token opens nothing; a week.",
          }),
        ),
      ),
      sessionId: Type.Optional(Type.Nullable(SessionId)),
    },
    { examples: [{ expiry: 3600, capabilities: ["ViewBase"] }] },
  ),
)
export type AppPortalAccessIn = Static<typeof AppPortalAccessIn>

export const AppPortalAccessOut = Type.Named(
  "AppPortalAccessOut",
  Type.Object({
    url: Type.String({ format: "uri" }),
    token: Type.String({ description: "A key of this application alone; it is not shown again." }),
  }),
)

export const ApplicationTokenExpireIn = Type.Named(
  "ApplicationTokenExpireIn",
  Type.Object({
    expiry: Type.Optional(
      Type.Nullable(
        Type.Integer({
          minimum: 0,
          maximum: 259_200,
          description: "In so many seconds; at once unless told.",
        }),
      ),
    ),
    sessionIds: Type.Optional(
      Type.Array(SessionId, {
        maxItems: 1000,
        description: "Only those of these sessions; of all if empty.",
      }),
    ),
  }),
)

export const WhoamiOut = Type.Named(
  "WhoamiOut",
  Type.Object({
    envId: Type.String({ description: "The tenant." }),
    appId: Type.Nullable(Type.String({ description: "The one application that the key reaches." })),
    permissionSource: Type.Enum(["RegionalAuthToken", "SvixJwt"]),
    sessionId: Type.Nullable(Type.String()),
    keyId: Type.Nullable(Type.String({ description: "Null for a JWT." })),
    name: Type.String({ description: "The name of the key or the login link; of a JWT its subject." }),
    browserSession: Type.Nullable(Type.String({ description: "The session, if the caller has one." })),
    scope: Scope,
    capabilities: Type.Nullable(Type.Array(Capability, { description: "Null for all." })),
    featureFlags: Type.Nullable(Type.Array(Type.String(), { description: "Null for all." })),
  }),
)

export const KeyIn = Type.Named(
  "KeyIn",
  Type.Object({
    name: Type.String({ minLength: 1, maxLength: 256 }),
    scope: Scope,
    appId: Type.Optional(
      Type.Nullable(
        Type.String({
          minLength: 1,
          maxLength: 256,
          description:
            "By id or uid. Required for the key of an application or an agent; narrows a reading one.",
        }),
      ),
    ),
    capabilities: Type.Optional(Capabilities),
    endpointIds: Type.Optional(
      Type.Nullable(
        Type.Array(Type.String({ minLength: 1, maxLength: 256 }), {
          minItems: 1,
          maxItems: 100,
          description:
            "For an agent's key: the only endpoints that it serves, by id or uid. Without it, all endpoints of the application that name the agent.",
        }),
      ),
    ),
    featureFlags: Type.Optional(FeatureFlags),
    sessionId: Type.Optional(Type.Nullable(SessionId)),
    expiresAt: Type.Optional(Type.Nullable(Timestamp)),
  }),
)

const key = {
  id: Type.String({ description: "The public part of the token." }),
  name: Type.String(),
  scope: Scope,
  appId: Type.Nullable(Type.String()),
  capabilities: Type.Nullable(Type.Array(Capability, { description: "Null for all." })),
  endpointIds: Type.Nullable(
    Type.Array(Type.String(), {
      description: "The only endpoints that an agent's key serves; null for all.",
    }),
  ),
  featureFlags: Type.Array(Type.String()),
  sessionId: Type.Nullable(Type.String()),
  expiresAt: Type.Nullable(Timestamp),
  revokedAt: Type.Nullable(Timestamp),
  lastUsedAt: Type.Nullable(Timestamp),
  createdAt: Timestamp,
}
export const KeyOut = Type.Named("KeyOut", Type.Object(key))
export type KeyOut = Static<typeof KeyOut>
export const NewKeyOut = Type.Named(
  "NewKeyOut",
  Type.Object({ ...key, token: Type.String({ description: "Shown this once." }) }),
)
