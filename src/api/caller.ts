/** The caller of a request, from its token: a tenant, possibly limited to one application, and its rights. */
import type { IncomingHttpHeaders } from "node:http"
import { PosthornError } from "../core/errors.ts"
import type { KeyScope } from "../core/key-scope.ts"
import { requireOrg } from "../core/org.ts"
import type { Changer } from "../resources/changes.ts"
import type { KeyProblem, Verified } from "../resources/key-ring.ts"
import type { Capability } from "../resources/keys.ts"
import { ApiError } from "./errors.ts"
import type { TokenReader } from "./jwt.ts"
import type { SessionCookies } from "./session-cookies.ts"

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
  /** Null for a JWT, and for a session that a login link without a key opened. */
  readonly keyId: string | null
  /** The session of a browser; null for a key or a JWT. */
  readonly browserSession: string | null
  readonly via: Changer["kind"]
  /** The name of the key or the login link; of a JWT its subject. */
  readonly name: string
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

/** The bearer token of a request, else its session's cookie. `readToken` is null when no JWT secret is configured. */
export function callerOf(
  headers: IncomingHttpHeaders,
  verify: (token: string) => Verified | Promise<Verified>,
  readToken: TokenReader | null,
  cookies: SessionCookies,
): Caller | Promise<Caller> {
  const [, bearer] = /^bearer +(\S+) *$/i.exec(headers.authorization ?? "") ?? []
  const token = bearer ?? cookies.read(headers)
  if (token === null) throw unauthenticated("Invalid token: send the header Authorization: Bearer and a key")
  if (readToken !== null && /^[\w-]+\.[\w-]+\.[\w-]+$/.test(token)) return readToken(token)
  const verified = verify(token)
  return verified instanceof Promise ? verified.then(callerBy) : callerBy(verified)
}

function callerBy(verified: Verified): Caller {
  if (!verified.ok) throw unauthenticated(PROBLEMS[verified.reason])
  const { kind, id, keyId = null, name } = verified.key
  const { orgId, appId, scope, capabilities, endpointIds = null, featureFlags } = verified.key
  return {
    orgId,
    appId,
    access: scope,
    capabilities,
    endpointIds,
    featureFlags: appId === null ? null : featureFlags,
    name,
    ...(kind === "key"
      ? { via: kind, keyId: id, browserSession: null }
      : { via: appId === null ? "login" : "portal", keyId, browserSession: id }),
  }
}

/** In Svix's tokens `sub` is an organization, or an application whose organization is in `org`. */
export function callerFromClaims(claims: { readonly [name: string]: unknown }): Caller {
  const { sub, org, feature_flags: flags } = claims
  const isApp = typeof sub === "string" && /^app_\w{1,64}$/.test(sub)
  const none = { capabilities: null, endpointIds: null, keyId: null, browserSession: null } as const
  const all = { ...none, via: "jwt", name: `JWT of ${sub}` } as const
  try {
    if (!isApp) return { ...all, orgId: requireOrg(sub), appId: null, access: "admin", featureFlags: null }
    const featureFlags = Array.isArray(flags) ? flags.filter((flag) => typeof flag === "string") : []
    return { ...all, orgId: requireOrg(org), appId: sub, access: "application", featureFlags }
  } catch (error) {
    if (error instanceof PosthornError) throw unauthenticated("Invalid token: it names no organization")
    throw error
  }
}
