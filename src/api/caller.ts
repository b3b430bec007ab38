/** Who makes a request: a token becomes a tenant, perhaps one application of it, and what may be done there. */
import { PosthornError } from "../core/errors.ts"
import { requireOrg } from "../core/org.ts"
import type { KeyProblem, KeyRing, Verified } from "../resources/key-ring.ts"
import type { Capability, KeyScope } from "../resources/keys.ts"
import { ApiError } from "./errors.ts"
import type { TokenReader } from "./jwt.ts"

export interface Caller {
  readonly orgId: string
  /** The one application that it reaches; null for all of the tenant. */
  readonly appId: string | null
  readonly access: KeyScope
  /** Null for all. */
  readonly capabilities: readonly Capability[] | null
  /** The flags whose event types it sees; null for all. */
  readonly featureFlags: readonly string[] | null
  /** Null for a token that is no key of ours. */
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

/** `readToken` is null where no secret for Svix's tokens is set. */
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
  const { orgId, appId, scope, capabilities, featureFlags, id } = verified.key
  return {
    orgId,
    appId,
    access: scope,
    capabilities,
    featureFlags: appId === null ? null : featureFlags,
    keyId: id,
  }
}

/** What a Svix token says of its bearer: `sub` is an organization, or an application with its organization beside it. */
export function callerFromClaims(claims: { readonly [name: string]: unknown }): Caller {
  const { sub, org, feature_flags: flags } = claims
  const isApp = typeof sub === "string" && /^app_\w{1,64}$/.test(sub)
  const all = { capabilities: null, keyId: null } as const
  try {
    if (!isApp) return { ...all, orgId: requireOrg(sub), appId: null, access: "admin", featureFlags: null }
    const featureFlags = Array.isArray(flags) ? flags.filter((flag) => typeof flag === "string") : []
    return { ...all, orgId: requireOrg(org), appId: sub, access: "application", featureFlags }
  } catch (error) {
    if (error instanceof PosthornError) throw unauthenticated("Invalid token: it names no organization")
    throw error
  }
}
