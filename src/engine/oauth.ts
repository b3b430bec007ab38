/** OAuth 2.0 client credentials: fetches tokens through the transport, and so through the egress guard, and caches them. */
import type { OAuth2 } from "../core/auth.ts"
import { type Bytes, toBuffer } from "../core/bytes.ts"
import type { Clock } from "../core/clock.ts"
import type { AttemptOutcome } from "../core/outcome.ts"
import type { Transport } from "../transport/transport.ts"

interface Token {
  /** The endpoint's version: a changed endpoint may have other credentials. */
  readonly version: number
  readonly value: string
  readonly usableUntil: number
}

export type TokenAnswer =
  | { readonly token: string }
  | { readonly outcome: AttemptOutcome | { readonly kind: "interrupted" }; readonly detail: string }

/** A token is not used in its last minute: the request has to get there. */
const MARGIN_MS = 60_000
const DEFAULT_LIFE_SECONDS = 300

export class OAuthTokens {
  readonly #transport: Transport
  readonly #clock: Clock
  readonly #tokens = new Map<string, Token>()
  readonly #fetching = new Map<string, Promise<TokenAnswer>>()

  constructor(transport: Transport, clock: Clock) {
    this.#transport = transport
    this.#clock = clock
  }

  /** Requests that need the same token at the same moment share one fetch. */
  async get(endpointId: string, version: number, auth: OAuth2, timeoutMs: number): Promise<TokenAnswer> {
    const token = this.#tokens.get(endpointId)
    if (token?.version === version && token.usableUntil > this.#clock.now()) return { token: token.value }
    const under = `${endpointId} ${version}`
    const fetching =
      this.#fetching.get(under) ??
      this.#fetch(endpointId, version, auth, timeoutMs).finally(() => this.#fetching.delete(under))
    this.#fetching.set(under, fetching)
    return fetching
  }

  /** The receiver refused the token, or the endpoint changed: the next attempt fetches a new token. */
  forget(endpointId: string): void {
    this.#tokens.delete(endpointId)
    this.#transport.forget(`${endpointId}/token`)
  }

  async #fetch(endpointId: string, version: number, auth: OAuth2, timeoutMs: number): Promise<TokenAnswer> {
    const form = new URLSearchParams({ grant_type: "client_credentials" })
    if (auth.scope !== undefined) form.set("scope", auth.scope)
    if (auth.audience !== undefined) form.set("audience", auth.audience)
    const login = [auth.clientId, auth.clientSecret].map(encodeURIComponent).join(":")
    const { outcome, responseBody, detail } = await this.#transport.send({
      endpointId: `${endpointId}/token`,
      version,
      url: auth.tokenUrl,
      headers: {
        accept: "application/json",
        authorization: `Basic ${Buffer.from(login).toString("base64")}`,
        "content-type": "application/x-www-form-urlencoded",
      },
      body: Buffer.from(form.toString()),
      timeoutMs,
      connectTimeoutMs: timeoutMs,
      tls: {},
    })
    if (outcome.kind !== "response") return { outcome, detail: `no token: ${detail ?? outcome.kind}` }
    const token = outcome.status === 200 ? readToken(responseBody, version, this.#clock.now()) : null
    if (token === null)
      return { outcome: { kind: "failure", cause: "auth_error" }, detail: `no token: HTTP ${outcome.status}` }
    this.#tokens.set(endpointId, token)
    return { token: token.value }
  }
}

function readToken(body: Bytes | null, version: number, now: number): Token | null {
  try {
    const answer = JSON.parse(toBuffer(body ?? "").toString("utf8"))
    const { access_token: value, expires_in: seconds = DEFAULT_LIFE_SECONDS } = answer
    if (typeof value !== "string" || !/^[\x21-\x7e]{1,8192}$/.test(value) || !(Number(seconds) > 0))
      return null
    return { version, value, usableUntil: now + Math.max(1000, Number(seconds) * 1000 - MARGIN_MS) }
  } catch {
    return null
  }
}
