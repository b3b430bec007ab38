/** Parses the input that creates a key. */
import { invalid } from "../core/errors.ts"
import { refuseUnknown, requireName, requireObject, requireText, requireTime } from "../core/input.ts"
import { KEY_SCOPES, type KeyScope } from "../core/key-scope.ts"
import { CAPABILITIES, type Capability, type KeyRecord } from "./key-record.ts"
import { type ResourceContext, requireApplication, requireEndpoint } from "./resource-context.ts"

export interface KeyInput {
  name: string
  scope: KeyScope
  /** By id or uid. Required for scopes `application` and `agent`, optional for `read`, refused for `admin`. */
  appId?: string | null
  /** By default all for scope `application`, and `ViewBase` (everything but secrets) for `read`. Refused for `admin` and `agent`. */
  capabilities?: readonly Capability[] | null
  /** For scope `agent`: the only endpoints that the agent serves, by id or uid. By default all endpoints of the application that name it. */
  endpointIds?: readonly string[] | null
  /** The flags of event types that the holder of the key may see. */
  featureFlags?: readonly string[]
  /** Groups keys of one visit to a portal, so that they can be revoked together. */
  sessionId?: string | null
  expiresAt?: Date | number | null
}

const FIELDS = [
  "name",
  "scope",
  "appId",
  "capabilities",
  "endpointIds",
  "featureFlags",
  "sessionId",
  "expiresAt",
] as const
const MOST_ENDPOINTS = 100

export async function parseKey(
  context: ResourceContext,
  input: KeyInput,
): Promise<Omit<KeyRecord, "digest">> {
  requireObject(input, "key")
  refuseUnknown(input, FIELDS, "")
  const { scope, appId = null, featureFlags = [], sessionId = null } = input
  if (!KEY_SCOPES.includes(scope)) throw invalid("scope", `must be ${KEY_SCOPES.join(", ")}`)
  if ((scope === "application" || scope === "agent") && appId === null)
    throw invalid("appId", `is required for an ${scope}'s key`)
  if (scope === "admin" && appId !== null) throw invalid("appId", "cannot be given to an admin's key")
  if (scope === "admin" && input.capabilities != null)
    throw invalid("capabilities", "cannot be given to an admin's key, which may do everything")
  if (scope === "agent" && input.capabilities != null)
    throw invalid("capabilities", "cannot be given to an agent's key, which can only connect an agent")
  const capabilities = input.capabilities ?? (scope === "read" ? ["ViewBase" as const] : null)
  const application = appId === null ? null : await requireApplication(context, appId)
  return {
    name: requireText(input.name, "name", 256),
    scope,
    appId: application?.id ?? null,
    capabilities: capabilities === null ? null : requireCapabilities(capabilities),
    ...(input.endpointIds == null ? {} : { endpointIds: await requireEndpoints(context, scope, input) }),
    featureFlags: requireFlags(featureFlags),
    sessionId: sessionId === null ? null : requireText(sessionId, "sessionId", 64),
    expiresAt: requireExpiry(input.expiresAt ?? null, context.clock.now()),
    revokedAt: null,
    lastUsedAt: null,
  }
}

async function requireEndpoints(
  context: ResourceContext,
  scope: KeyScope,
  { appId, endpointIds: given }: KeyInput,
): Promise<readonly string[]> {
  if (scope !== "agent") throw invalid("endpointIds", "can only be given to an agent's key")
  if (!Array.isArray(given) || given.length === 0 || given.length > MOST_ENDPOINTS)
    throw invalid("endpointIds", `must be a list of 1 to ${MOST_ENDPOINTS} endpoints, or null for all`)
  const found = given.map((one: string) => requireEndpoint(context, appId!, one))
  return (await Promise.all(found)).map(({ id }) => id)
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
