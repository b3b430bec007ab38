/** An endpoint prepared for sending: policy, signing keys and headers, computed once for each version of the endpoint. */
import { type Auth, authorization, type ClientTls, type OAuth2 } from "../core/auth.ts"
import type { Bytes } from "../core/bytes.ts"
import type { Clock } from "../core/clock.ts"
import { type HeaderPair, passedOn, readInbound } from "../core/inbound-request.ts"
import { type Policy, readPolicy } from "../core/policy.ts"
import { isPreset, PRESETS } from "../core/presets.ts"
import { parseSigningKey, type SigningKey, signatureHeader } from "../core/signature.ts"
import { transportOf } from "../core/transport-kind.ts"
import type { Vault } from "../core/vault.ts"
import type { ClaimedDelivery, Endpoint } from "../store/store.ts"
import type { DeliveryHead, OutboundRequest } from "../transport/transport.ts"

/** A signing secret; an old one signs beside the new one until it expires. */
export interface StoredSecret {
  readonly key: string
  readonly expiresAt: number | null
}

/** Everything about an endpoint that is sealed in the store, the newest signing secret first. */
export interface StoredSecrets {
  readonly signing: readonly StoredSecret[]
  readonly auth: Auth | null
  readonly tls: ClientTls | null
}

export function openSecrets(vault: Vault, endpoint: Pick<Endpoint, "id" | "secrets">): StoredSecrets {
  return JSON.parse(vault.open(endpoint.secrets, endpoint.id))
}

export function sealSecrets(vault: Vault, endpointId: string, secrets: StoredSecrets): Uint8Array {
  return vault.seal(JSON.stringify(secrets), endpointId)
}

/** The endpoint's own policy, its named policy, or the engine's default. Stored policies were validated when they were written. */
export function policyOf(endpoint: Pick<Endpoint, "retryName" | "retryPolicy">, fallback: Policy): Policy {
  if (endpoint.retryPolicy !== null) return readPolicy(endpoint.retryPolicy)
  if (endpoint.retryName !== null && isPreset(endpoint.retryName)) return PRESETS[endpoint.retryName]
  return fallback
}

const NO_HEADERS: readonly HeaderPair[] = []

export class Target {
  readonly endpoint: Endpoint
  readonly policy: Policy
  readonly host: string
  readonly #secrets: readonly { readonly signing: SigningKey; readonly expiresAt: number | null }[]
  readonly #fixedHeaders: { readonly [name: string]: string }
  readonly #tls: ClientTls
  /** Set when a token has to be fetched before each request. */
  readonly oauth: OAuth2 | null
  /** Whether the receiver gets the trace context. */
  readonly sendsTraceparent: boolean

  constructor(
    endpoint: Endpoint,
    vault: Vault,
    fallback: Policy,
    userAgent: string,
    sendTraceparent = false,
  ) {
    this.endpoint = endpoint
    this.sendsTraceparent = sendTraceparent
    this.policy = policyOf(endpoint, fallback)
    this.host = URL.parse(endpoint.url)?.hostname ?? ""
    const { signing, auth, tls } = openSecrets(vault, endpoint)
    this.#secrets = signing.map(({ key, expiresAt }) => ({ signing: parseSigningKey(key), expiresAt }))
    this.#tls = tls ?? {}
    this.oauth = auth?.type === "oauth2" ? auth : null
    // An agent passes a webhook on as it came: defaults of ours would replace the provider's headers.
    const defaults = transportOf(endpoint.url) === "http" ? { "user-agent": userAgent, accept: "*/*" } : {}
    this.#fixedHeaders = fixedHeaders(endpoint.headers, auth, defaults, this.sendsTraceparent)
  }

  /** Signed anew for each attempt, over the exact bytes; a retry has the same id and the same idempotency key. */
  request(
    delivery: DeliveryHead & Pick<ClaimedDelivery, "messageId" | "contentType">,
    payload: Bytes,
    clock: Clock,
    token: string | null,
    timeoutMs: number,
    traceparent: string | null = null,
  ): OutboundRequest {
    const wallMs = clock.wallNow()
    const timestampSeconds = Math.floor(wallMs / 1000)
    const keys = this.#secrets
      .filter(({ expiresAt }) => expiresAt === null || expiresAt > wallMs)
      .map(({ signing }) => signing)
    const { messageId, contentType, inbound } = delivery
    const signature = signatureHeader(keys, messageId, timestampSeconds, payload)
    return {
      endpointId: this.endpoint.id,
      version: this.endpoint.version,
      url: this.endpoint.url,
      headers: this.#fixedHeaders,
      webhook: {
        contentType,
        messageId,
        timestampSeconds,
        signature,
        authorization: token === null ? null : `Bearer ${token}`,
        traceparent,
        passedOn:
          inbound === null ? NO_HEADERS : passedOn(readInbound(inbound), Object.keys(this.#fixedHeaders)),
        delivery,
      },
      body: payload,
      timeoutMs,
      connectTimeoutMs: Math.min(this.policy.connectTimeout, this.policy.timeout) * 1000,
      tls: this.#tls,
    }
  }
}

/**
 * The endpoint's headers replace the defaults. Its `authorization` yields to its credentials, its `content-type` to the message's, and its
 * `traceparent` to the message's, if that is sent.
 */
function fixedHeaders(
  own: Endpoint["headers"],
  auth: Auth | null,
  defaults: { readonly [name: string]: string },
  sendsTraceparent: boolean,
): { readonly [name: string]: string } {
  const replaced = ["content-type"]
  if (auth !== null) replaced.push("authorization")
  if (sendsTraceparent) replaced.push("traceparent")
  const kept = Object.entries(own).filter(([name]) => !replaced.includes(name.toLowerCase()))
  const names = new Set(kept.map(([name]) => name.toLowerCase()))
  return {
    ...Object.fromEntries([...Object.entries(defaults).filter(([name]) => !names.has(name)), ...kept]),
    ...(auth === null || auth.type === "oauth2" ? {} : { authorization: authorization(auth) }),
  }
}
