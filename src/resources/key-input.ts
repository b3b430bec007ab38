/** Parses the input that creates a key. */
import { invalid } from "../core/errors.ts"
import { refuseUnknown, requireName, requireObject, requireText, requireTime } from "../core/input.ts"
import { CAPABILITIES, type Capability, type KeyRecord, type KeyScope } from "./key-record.ts"
import { type ResourceContext, requireApplication } from "./resource-context.ts"

export interface KeyInput {
  name: string
  scope: KeyScope
  /** By id or uid. Required for scope `application`, optional for `read`, refused for `admin`. */
  appId?: string | null
  /** By default all for scope `application`, and `ViewBase` (everything but secrets) for `read`. Refused for `admin`. */
  capabilities?: readonly Capability[] | null
  /** The flags of event types that the holder of the key may see. */
  featureFlags?: readonly string[]
  /** Groups keys of one visit to a portal, so that they can be revoked together. */
  sessionId?: string | null
  expiresAt?: Date | number | null
}

const FIELDS = ["name", "scope", "appId", "capabilities", "featureFlags", "sessionId", "expiresAt"] as const
const SCOPES: readonly KeyScope[] = ["admin", "application", "read"]

export async function parseKey(
  context: ResourceContext,
  input: KeyInput,
): Promise<Omit<KeyRecord, "digest">> {
  requireObject(input, "key")
  refuseUnknown(input, FIELDS, "")
  const { scope, appId = null, featureFlags = [], sessionId = null } = input
  if (!SCOPES.includes(scope)) throw invalid("scope", `must be ${SCOPES.join(", ")}`)
  if (scope === "application" && appId === null)
    throw invalid("appId", "is required for an application's key")
  if (scope === "admin" && appId !== null) throw invalid("appId", "cannot be given to an admin's key")
  if (scope === "admin" && input.capabilities != null)
    throw invalid("capabilities", "cannot be given to an admin's key, which may do everything")
  const capabilities = input.capabilities ?? (scope === "read" ? ["ViewBase" as const] : null)
  return {
    name: requireText(input.name, "name", 256),
    scope,
    appId: appId === null ? null : (await requireApplication(context, appId)).id,
    capabilities: capabilities === null ? null : requireCapabilities(capabilities),
    featureFlags: requireFlags(featureFlags),
    sessionId: sessionId === null ? null : requireText(sessionId, "sessionId", 64),
    expiresAt: requireExpiry(input.expiresAt ?? null, context.clock.now()),
    revokedAt: null,
    lastUsedAt: null,
  }
}

function requireExpiry(value: Date | number | null, now: number): number | null {
  if (value === null) return null
  const expiresAt = requireTime(value, "expiresAt")
  if (expiresAt <= now) throw invalid("expiresAt", "must lie ahead")
  return expiresAt
}

function requireCapabilities(given: readonly Capability[]): readonly Capability[] {
  if (!Array.isArray(given) || given.length === 0 || given.some((one) => !CAPABILITIES.includes(one)))
    throw invalid("capabilities", `must be some of ${CAPABILITIES.join(", ")}, or null for all`)
  return [...new Set(given)]
}

function requireFlags(flags: readonly string[]): readonly string[] {
  if (!Array.isArray(flags) || flags.length > 100)
    throw invalid("featureFlags", "must be a list of at most 100")
  return [...new Set(flags.map((flag, i) => requireName(flag, `featureFlags[${i}]`)))]
}
