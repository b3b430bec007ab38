/** The caller of a request, from its token: a tenant, possibly limited to one application, and its rights. */
import { PosthornError } from "../core/errors.ts"
import type { KeyScope } from "../core/key-scope.ts"
import { requireOrg } from "../core/org.ts"
import type { KeyProblem, KeyRing, Verified } from "../resources/key-ring.ts"
import type { Capability } from "../resources/keys.ts"
import { ApiError } from "./errors.ts"
import type { TokenReader } from "./jwt.ts"

export interface Caller {
  readonly orgId: string
  /** The only application that the caller can access; null for the whole tenant. */
  readonly appId: string | null
  readonly access: KeyScope
  /** Null for all. */
  readonly capabilities: readonly Capability[] | null
  /** Feature flags of the event types that are visible to the caller; null for all. */
  readonly featureFlags: readonly string[] | null
  /** Of an agent's key: the only endpoints that it serves; null for all. */
  readonly endpointIds: readonly string[] | null
  /** Null for a JWT. */
  readonly keyId: string | null
}

const PROBLEMS: { readonly [P in KeyProblem]: string } = {
  malformed: "Invalid token",
  unknown: "Invalid token",
  expired: "The token has expired",
  revoked: "The token was revoked",
}

export function unauthenticated(detail: string): ApiError {
  return ApiError.of(401, "authentication_failed", detail)
}

/** `readToken` is null when no JWT secret is configured. */
export function callerOf(
  authorization: string | undefined,
  ring: KeyRing,
  readToken: TokenReader | null,
): Caller | Promise<Caller> {
  const [, token] = /^bearer +(\S+) *$/i.exec(authorization ?? "") ?? []
  if (token === undefined)
    throw unauthenticated("Invalid token: send the header Authorization: Bearer and a key")
  if (readToken !== null && /^[\w-]+\.[\w-]+\.[\w-]+$/.test(token)) return readToken(token)
  const verified = ring.verify(token)
  return verified instanceof Promise ? verified.then(callerBy) : callerBy(verified)
}

function callerBy(verified: Verified): Caller {
  if (!verified.ok) throw unauthenticated(PROBLEMS[verified.reason])
  const { orgId, appId, scope, capabilities, endpointIds = null, featureFlags, id } = verified.key
  return {
    orgId,
    appId,
    access: scope,
    capabilities,
    endpointIds,
    featureFlags: appId === null ? null : featureFlags,
    keyId: id,
  }
}

/** In Svix's tokens `sub` is an organization, or an application whose organization is in `org`. */
export function callerFromClaims(claims: { readonly [name: string]: unknown }): Caller {
  const { sub, org, feature_flags: flags } = claims
  const isApp = typeof sub === "string" && /^app_\w{1,64}$/.test(sub)
  const all = { capabilities: null, endpointIds: null, keyId: null } as const
  try {
    if (!isApp) return { ...all, orgId: requireOrg(sub), appId: null, access: "admin", featureFlags: null }
    const featureFlags = Array.isArray(flags) ? flags.filter((flag) => typeof flag === "string") : []
    return { ...all, orgId: requireOrg(org), appId: sub, access: "application", featureFlags }
  } catch (error) {
    if (error instanceof PosthornError) throw unauthenticated("Invalid token: it names no organization")
    throw error
  }
}
