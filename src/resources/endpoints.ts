/** Endpoints: where webhooks go, and how. */
import { type Auth, type ClientTls, parseAuth, parseClientTls } from "../core/auth.ts"
import { invalid, PosthornError } from "../core/errors.ts"
import {
  MOST_HEADERS,
  nameList,
  optionalName,
  optionalWholeNumber,
  refuseUnknown,
  requireBoolean,
  requireChannel,
  requireHeaders,
  requireMetadata,
  requireObject,
  requireText,
  requireUrl,
  wholeNumber,
} from "../core/input.ts"
import { wants } from "../core/match.ts"
import { type Policy, type PolicyInput, parsePolicy } from "../core/policy.ts"
import { isPreset, PRESETS } from "../core/presets.ts"
import { encodeSecret, parseSigningKey, verificationKeyOf } from "../core/signature.ts"
import {
  openSecrets,
  policyOf,
  type StoredSecret,
  type StoredSecrets,
  sealSecrets,
} from "../engine/target.ts"
import type { EndpointEvent } from "../observe/event-stream.ts"
import type { AttemptCounts, EndpointPatch, Endpoint as Row, StatusCounts } from "../store/store.ts"
import { readAndSave } from "./optimistic.ts"
import { type List, type Listing, listing, listPage, onlyPage, type PageInput, pageById } from "./paging.ts"
import { parseSpan, type SpanQuery } from "./query.ts"
import {
  date,
  madeOnce,
  newTask,
  type ResourceContext,
  requireApplication,
  requireEndpoint,
} from "./resource-context.ts"

export interface Endpoint
  extends Omit<
    Row,
    | "orgId"
    | "appRateLimit"
    | "retryName"
    | "retryPolicy"
    | "secrets"
    | "version"
    | "resumedAt"
    | "holdUntil"
    | "createdAt"
    | "updatedAt"
  > {
  /** The name of its policy; null when it has one of its own, or the default. */
  readonly retry: string | null
  /** The policy in force. */
  readonly policy: Policy
  /** Set while a Retry-After holds it back. */
  readonly holdUntil: Date | null
  readonly createdAt: Date
  readonly updatedAt: Date
}

export interface EndpointInput {
  url: string
  uid?: string | null
  description?: string
  /** Left out: every type. */
  eventTypes?: readonly string[] | null
  /** Left out: every message; otherwise those that share a channel. */
  channels?: readonly string[] | null
  /** Sent with every request. */
  headers?: { readonly [name: string]: string }
  metadata?: { readonly [key: string]: string }
  /** The name of a policy, or a policy; null for the default. */
  retry?: string | PolicyInput | null
  /** Message N+1 is not sent before N is delivered or dead. */
  ordered?: boolean
  /** The most requests under way at once. */
  concurrency?: number | null
  /** The most requests in any second. */
  rateLimit?: number | null
  /** Gets no new messages; what waits is held. */
  disabled?: boolean
  /** Basic, bearer or OAuth 2.0 client credentials; kept encrypted and never shown again. */
  auth?: Auth | null
  /** Client certificate and authorities, as PEM; kept encrypted and never shown again. */
  tls?: ClientTls | null
  /** A number of your own, 1 unless told: Svix's `version`, which has no effect. */
  apiVersion?: number
  /** `whsec_…` or `whsk_…`; made for you when left out. */
  secret?: string
}

const FIELDS = [
  "url",
  "uid",
  "description",
  "eventTypes",
  "channels",
  "headers",
  "metadata",
  "retry",
  "ordered",
  "concurrency",
  "rateLimit",
  "disabled",
  "auth",
  "tls",
  "apiVersion",
] as const

const SECRET_BYTES = 32
const MOST_OLD_SECRETS = 10
const DEFAULT_GRACE_SECONDS = 86_400

export interface RotateInput {
  /** The new secret; made for you when left out. */
  secret?: string
  /** How long the old one signs beside it; a day unless told. */
  gracePeriodSeconds?: number
}

export class Endpoints {
  readonly #context: ResourceContext

  constructor(context: ResourceContext) {
    this.#context = context
  }

  async create(app: string, input: EndpointInput): Promise<Endpoint> {
    const { store, ids, clock, vault } = this.#context
    requireObject(input, "endpoint")
    refuseUnknown(input, [...FIELDS, "secret"], "")
    if (input.url === undefined) throw invalid("url", "is required")
    const secret = input.secret ?? this.#newSecret()
    parseSigningKey(secret)
    const { auth = null, tls = null } = parseSecrets(input)
    const patch = await this.#parse(input)
    const application = await requireApplication(this.#context, app)
    const now = clock.now()
    const id = ids.make("ep", now)
    await this.#vet(patch.url, auth)
    const endpoint: Row = {
      id,
      orgId: application.orgId,
      appId: application.id,
      uid: null,
      url: "",
      description: "",
      eventTypes: null,
      channels: null,
      headers: {},
      metadata: {},
      retryName: null,
      retryPolicy: null,
      ordered: policyOf({ retryName: null, retryPolicy: null, ...patch }, this.#context.defaultPolicy)
        .ordered,
      concurrency: null,
      rateLimit: null,
      appRateLimit: application.rateLimit,
      disabled: false,
      paused: false,
      resumedAt: null,
      apiVersion: 1,
      holdUntil: null,
      gateEpoch: 0,
      ...patch,
      secrets: sealSecrets(vault, id, { signing: [{ key: secret, expiresAt: null }], auth, tls }),
      version: 1,
      createdAt: now,
      updatedAt: now,
    }
    const made = await madeOnce(
      () => store.createEndpoint(endpoint).then(() => endpoint),
      () => store.getEndpoint(application.id, id),
    )
    this.#emit("endpoint.created", made)
    return this.#show(made)
  }

  /** By id or uid; rejects with `not_found`. */
  async get(app: string, endpoint: string): Promise<Endpoint> {
    return this.#show(await requireEndpoint(this.#context, app, endpoint))
  }

  /** Those of the tenant, by id, deleted or not. */
  async getMany(ids: readonly string[]): Promise<Map<string, Endpoint>> {
    const rows = await this.#context.store.getEndpoints([...new Set(ids)])
    const own = rows.filter(({ orgId }) => orgId === this.#context.orgId)
    return new Map(own.map((row) => [row.id, this.#show(row)]))
  }

  /** Whether a message of this kind would go anywhere now. */
  async wanted(app: string, eventType: string, channels: readonly string[]): Promise<boolean> {
    for await (const one of this.list(app, { limit: 250 }))
      if (!one.disabled && wants(one, eventType, channels)) return true
    return false
  }

  list(app: string, page: PageInput = {}): Listing<Endpoint> {
    return listing(page, (asked) => this.#page(app, asked))
  }

  async #page(app: string, page: PageInput): Promise<List<Endpoint>> {
    const { id } = await requireApplication(this.#context, app)
    return listPage(
      pageById("ep", onlyPage(page)),
      (read) => this.#context.store.listEndpoints({ appId: id }, read),
      (row) => row.id,
      (row) => this.#show(row),
    )
  }

  /**
   * A new URL, header or policy applies from the next attempt; due times that are already written stay. A new secret signs alone from
   * now on: `rotateSecret` lets the old one sign beside it for a while.
   */
  async update(app: string, endpoint: string, input: Partial<EndpointInput>): Promise<Endpoint> {
    requireObject(input, "endpoint")
    refuseUnknown(input, [...FIELDS, "secret"], "")
    const { secret } = input
    if (secret !== undefined) parseSigningKey(secret)
    const secrets = parseSecrets(input)
    const patch = await this.#parse(input)
    const before = await requireEndpoint(this.#context, app, endpoint)
    await this.#vet(patch.url, secrets.auth ?? null)
    if (secret === undefined && Object.keys(secrets).length === 0) return this.#change(before, patch)
    return readAndSave(async () => {
      const row = await requireEndpoint(this.#context, app, before.id)
      const stored = openSecrets(this.#context.vault, row)
      const signing = secret === undefined ? stored.signing : this.#succeed(stored.signing, secret, 0)
      return this.#changeSecrets(row, { ...stored, ...secrets, signing }, patch)
    })
  }

  /** Merged with those that are there; null takes one away. */
  async patchHeaders(
    app: string,
    endpoint: string,
    patch: { readonly [name: string]: string | null },
  ): Promise<Endpoint> {
    return readAndSave(async () => {
      const row = await requireEndpoint(this.#context, app, endpoint)
      const named = new Set(Object.keys(patch).map((name) => name.toLowerCase()))
      const kept = Object.entries(row.headers).filter(([name]) => !named.has(name.toLowerCase()))
      const given = Object.entries(patch).filter(([, text]) => text !== null)
      // Headers that were stored before a name was refused do not stand in the way of others.
      const headers = { ...Object.fromEntries(kept), ...requireHeaders(Object.fromEntries(given), "headers") }
      if (Object.keys(headers).length > MOST_HEADERS)
        throw invalid("headers", `must have at most ${MOST_HEADERS} entries`)
      return this.#change(row, { headers }, row.version)
    })
  }

  /** Every URL that requests for this endpoint will go to. */
  async #vet(url: string | undefined, auth: Auth | null): Promise<void> {
    const tokenUrl = auth?.type === "oauth2" ? auth.tokenUrl : undefined
    for (const [field, target] of Object.entries({ url, "auth.tokenUrl": tokenUrl })) {
      const problem = target === undefined ? null : await this.#context.router.urlProblem(target)
      if (problem !== null) throw invalid(field, problem)
    }
  }

  /** Holds what waits and what comes; discards nothing. */
  async pause(app: string, endpoint: string): Promise<Endpoint> {
    return this.#change(await requireEndpoint(this.#context, app, endpoint), { paused: true })
  }

  /** Also ends a Retry-After that the endpoint had asked for. */
  async resume(app: string, endpoint: string): Promise<Endpoint> {
    return this.#change(await requireEndpoint(this.#context, app, endpoint), {
      paused: false,
      holdUntil: null,
    })
  }

  /** What waits ends as dead with the reason `cancelled`. */
  async delete(app: string, endpoint: string): Promise<void> {
    const row = await requireEndpoint(this.#context, app, endpoint)
    const { id, appId } = row
    await this.#context.store.deleteEndpoint(
      id,
      await newTask(this.#context, "cancel", "endpoint.delete", { endpointId: id, live: true }),
    )
    this.#context.endpointChanged(id, appId)
    this.#context.wakeTasks()
    this.#emit("endpoint.deleted", row)
  }

  /** What a receiver verifies with: the secret, or of an ed25519 key its public half. A private key is never given out. */
  async secret(app: string, endpoint: string): Promise<{ readonly key: string }> {
    const row = await requireEndpoint(this.#context, app, endpoint)
    const { key } = openSecrets(this.#context.vault, row).signing[0]!
    return { key: verificationKeyOf(key) }
  }

  /** A new secret signs first; the old one signs beside it until the grace period ends. Gives what `secret` gives from now on. */
  async rotateSecret(
    app: string,
    endpoint: string,
    input: RotateInput = {},
  ): Promise<{ readonly key: string }> {
    requireObject(input, "options")
    refuseUnknown(input, ["secret", "gracePeriodSeconds"], "")
    const key = input.secret ?? this.#newSecret()
    parseSigningKey(key)
    const graceSeconds = wholeNumber(
      input.gracePeriodSeconds ?? DEFAULT_GRACE_SECONDS,
      "gracePeriodSeconds",
      0,
      30 * 86_400,
    )
    await readAndSave(async () => {
      const row = await requireEndpoint(this.#context, app, endpoint)
      const stored = openSecrets(this.#context.vault, row)
      const signing = this.#succeed(stored.signing, key, graceSeconds * 1000)
      await this.#changeSecrets(row, { ...stored, signing })
    })
    return { key: verificationKeyOf(key) }
  }

  /** The new key before those that sign beside it; the last one does so for the grace period. */
  #succeed(signing: readonly StoredSecret[], key: string, graceMs: number): readonly StoredSecret[] {
    const nowMs = this.#context.clock.wallNow()
    const old = signing
      .map((secret): StoredSecret => ({ ...secret, expiresAt: secret.expiresAt ?? nowMs + graceMs }))
      .filter(({ expiresAt }) => expiresAt! > nowMs)
    if (old.length > MOST_OLD_SECRETS) {
      throw new PosthornError(
        "limit_reached",
        `${old.length} old secrets are still in their grace period; wait until one has expired`,
      )
    }
    return [{ key, expiresAt: null }, ...old]
  }

  /** Of the messages received in a span; of all that are kept without one. */
  async stats(app: string, endpoint: string, span: SpanQuery = {}): Promise<StatusCounts> {
    const received = parseSpan(span)
    const { id } = await requireEndpoint(this.#context, app, endpoint)
    return this.#context.store.countByStatus({ endpointId: id, ...received })
  }

  /** Attempts that began in a span, by their outcome; of all that are kept without one. */
  async attemptStats(app: string, endpoint: string, span: SpanQuery = {}): Promise<AttemptCounts> {
    const began = parseSpan(span)
    const { id } = await requireEndpoint(this.#context, app, endpoint)
    return this.#context.store.countAttempts({ endpointId: id, ...began })
  }

  #changeSecrets(row: Row, secrets: StoredSecrets, patch: EndpointPatch = {}): Promise<Endpoint> {
    const sealed = sealSecrets(this.#context.vault, row.id, secrets)
    return this.#change(row, { ...patch, secrets: sealed }, row.version)
  }

  /** What was computed from the row (its secrets) names the version that it was computed from. */
  async #change(before: Row, patch: EndpointPatch, ifVersion?: number): Promise<Endpoint> {
    const { id, appId } = before
    const row = await this.#context.store.updateEndpoint(id, patch, this.#context.clock.now(), ifVersion)
    this.#context.endpointChanged(id, appId)
    this.#emit("endpoint.updated", row)
    if (row.disabled !== before.disabled)
      this.#emit(row.disabled ? "endpoint.disabled" : "endpoint.enabled", row)
    return this.#show(row)
  }

  #emit(type: EndpointEvent["type"], endpoint: Row): void {
    this.#context.events.emit({ type, endpoint, trigger: "manual", at: this.#context.clock.now() })
  }

  #newSecret(): string {
    const bytes = new Uint8Array(SECRET_BYTES)
    this.#context.randomBytes(bytes)
    return encodeSecret(bytes)
  }

  async #parse(input: Partial<EndpointInput>): Promise<EndpointPatch> {
    const patch: { -readonly [field in keyof EndpointPatch]: EndpointPatch[field] } = {}
    if (input.uid?.startsWith?.("ep_")) throw invalid("uid", "must not start with ep_")
    if (input.url !== undefined) patch.url = requireUrl(input.url, this.#context.router.schemes)
    if (input.uid !== undefined) patch.uid = optionalName(input.uid, "uid")
    if (input.description !== undefined)
      patch.description = requireText(input.description, "description", 4096)
    if (input.eventTypes !== undefined) patch.eventTypes = nameList(input.eventTypes, "eventTypes", 1000)
    if (input.channels !== undefined)
      patch.channels = nameList(input.channels, "channels", 10, requireChannel)
    if (input.headers !== undefined) patch.headers = requireHeaders(input.headers, "headers")
    if (input.metadata !== undefined) patch.metadata = requireMetadata(input.metadata, "metadata")
    if (input.ordered !== undefined) patch.ordered = requireBoolean(input.ordered, "ordered")
    if (input.concurrency !== undefined)
      patch.concurrency = optionalWholeNumber(input.concurrency, "concurrency", 1, 1000)
    if (input.rateLimit !== undefined)
      patch.rateLimit = optionalWholeNumber(input.rateLimit, "rateLimit", 1, 65_535)
    if (input.disabled !== undefined) patch.disabled = requireBoolean(input.disabled, "disabled")
    if (input.apiVersion !== undefined)
      patch.apiVersion = wholeNumber(input.apiVersion, "apiVersion", 1, 65_535)
    return input.retry === undefined ? patch : { ...patch, ...(await this.#parseRetry(input.retry)) }
  }

  async #parseRetry(retry: string | PolicyInput | null): Promise<Pick<Row, "retryName" | "retryPolicy">> {
    if (retry === null) return { retryName: null, retryPolicy: null }
    if (typeof retry !== "string") return { retryName: null, retryPolicy: JSON.stringify(parsePolicy(retry)) }
    if (isPreset(retry)) return { retryName: retry, retryPolicy: null }
    const named = await this.#context.store.getPolicy(this.#context.orgId, retry)
    if (named === null) {
      throw invalid(
        "retry",
        `names no policy; there are the presets ${Object.keys(PRESETS).join(", ")} and those you put`,
      )
    }
    return { retryName: retry, retryPolicy: named.policy }
  }

  #show(row: Row): Endpoint {
    const {
      orgId: _org,
      appRateLimit: _rate,
      retryName,
      retryPolicy: _policy,
      secrets: _secrets,
      version: _version,
      resumedAt: _resumed,
      ...shown
    } = row
    return {
      ...shown,
      retry: retryName,
      policy: policyOf(row, this.#context.defaultPolicy),
      holdUntil: date(row.holdUntil),
      createdAt: date(row.createdAt),
      updatedAt: date(row.updatedAt),
    }
  }
}

/** Only what was given; null takes it away. */
function parseSecrets(input: Partial<EndpointInput>): { auth?: Auth | null; tls?: ClientTls | null } {
  return {
    ...(input.auth === undefined ? {} : { auth: parseAuth(input.auth) }),
    ...(input.tls === undefined ? {} : { tls: parseClientTls(input.tls) }),
  }
}
