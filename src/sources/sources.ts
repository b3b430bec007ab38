/** Sources: the URLs that take webhooks in from providers. Each webhook becomes a message of the source's application. */
import { invalid } from "../core/errors.ts"
import { isId } from "../core/ids.ts"
import { refuseUnknown, requireObject, wholeNumber } from "../core/input.ts"
import { requireSecret } from "../core/parse-verification.ts"
import { receivedRequest } from "../core/received-request.ts"
import { digestOf } from "../resources/key-token.ts"
import { readAndSave } from "../resources/optimistic.ts"
import { byName, type Listing, listing, type PageInput } from "../resources/paging.ts"
import {
  optionalApplicationId,
  type ResourceContext,
  requireApplication,
  requireFound,
} from "../resources/resource-context.ts"
import type { Entry } from "../store/store.ts"
import { ACTIVITY_KIND, type SourceActivity, showActivity } from "./activity-record.ts"
import type { Receipt } from "./receipt.ts"
import { parseReceive, type ReceiveInput } from "./receive-input.ts"
import { type HandshakeInput, parseSource, SOURCE_DEFAULTS, type SourceInput } from "./source-input.ts"
import { forgetNames, SourceNames } from "./source-names.ts"
import { recordOf, SOURCE_KIND, type Source, type SourceRecord, showSource } from "./source-record.ts"
import { forgetSource, forgetSources } from "./source-ring.ts"
import {
  openSecrets,
  requireSigning,
  requireVerifyToken,
  rotate,
  type SourceSecrets,
  sealSecrets,
} from "./source-secrets.ts"
import { makeSourceSecret } from "./source-token.ts"

export type { RefusedRequest, SourceActivity } from "./activity-record.ts"
export type { Receipt } from "./receipt.ts"
export type { ReceiveInput } from "./receive-input.ts"
export type { HandshakeInput, SourceInput } from "./source-input.ts"
export type { Deduplication, Source } from "./source-record.ts"

export interface SourceRotateInput {
  /** What the provider signs with from now on. */
  secret: string
  /** How long requests that are signed with the old secret are accepted, too. A day. */
  gracePeriodSeconds?: number
}

type Unsealed = Omit<SourceRecord, "digest" | "sealed">

const DEFAULT_GRACE_SECONDS = 86_400
const LONGEST_GRACE_SECONDS = 30 * 86_400

export class Sources {
  readonly #context: ResourceContext

  constructor(context: ResourceContext) {
    this.#context = context
  }

  async create(app: string, input: SourceInput): Promise<Source> {
    const { settings, handshake } = parseSource(input)
    const { name, verification } = settings
    if (name === undefined) throw invalid("name", "is required")
    if (verification === undefined)
      throw invalid("verification", "is required: a scheme, or none, which accepts every request")
    const secrets: SourceSecrets = {
      url: makeSourceSecret(this.#context.randomBytes),
      signing: requireSigning(verification, input.secret),
      verifyToken: requireVerifyToken(handshake ?? null, null),
    }
    const { id: appId } = await requireApplication(this.#context, app)
    const { ids, clock, orgId } = this.#context
    const createdAt = clock.now()
    const id = ids.make("src", createdAt)
    // A request that is repeated after a crash makes the same id.
    const before = await this.#read(id)
    if (before !== null) return this.#show(before)
    await new SourceNames(this.#context, appId).reserve(name, id)
    const record = { ...SOURCE_DEFAULTS, ...settings, name, verification, ...recorded(handshake) }
    const blank = { kind: SOURCE_KIND, orgId, name: id, owner: appId, version: 0, createdAt } as const
    return this.#save(blank, record, secrets)
  }

  /** By id or name. */
  async get(app: string, source: string): Promise<Source> {
    return this.#show(await this.#require(app, source))
  }

  /** By id; those of all applications for null. */
  list(app: string | null, query: PageInput = {}): Listing<Source> {
    const { store, orgId, clock } = this.#context
    return listing(query, {
      by: byName,
      read: async () => {
        const appId = await optionalApplicationId(this.#context, app ?? undefined)
        return (page) => store.listEntries(SOURCE_KIND, orgId, page, clock.now(), appId)
      },
      show: (entry: Entry) => this.#show(entry),
    })
  }

  /** A secret replaces all others at once; `rotateSecret` accepts the old one for a while. */
  async update(app: string, source: string, input: Partial<SourceInput>): Promise<Source> {
    const { settings, handshake } = parseSource(input)
    const { name: id, owner } = await this.#require(app, source)
    const names = new SourceNames(this.#context, owner!)
    if (settings.name !== undefined) await names.reserve(settings.name, id)
    const { before, after } = await readAndSave(async () => {
      const entry = await this.#require(app, id)
      const record = { ...recordOf(entry), ...settings, ...recorded(handshake) }
      const old = this.#open(entry)
      const secrets = {
        ...old,
        signing: requireSigning(record.verification, input.secret, old.signing),
        ...(handshake === undefined ? {} : { verifyToken: requireVerifyToken(handshake, old.verifyToken) }),
      }
      return { before: recordOf(entry).name, after: await this.#save(entry, record, secrets) }
    })
    if (before !== after.name) await names.release(before, id)
    return after
  }

  /** Its URL ends at once. Messages that it took in stay. */
  async delete(app: string, source: string): Promise<void> {
    const entry = await this.#require(app, source)
    await deleteSource(this.#context, entry)
    await new SourceNames(this.#context, entry.owner!).release(recordOf(entry).name, entry.name)
  }

  /** Accepts requests with the new secret, and with the old one until the grace period ends. */
  async rotateSecret(app: string, source: string, input: SourceRotateInput): Promise<Source> {
    requireObject(input, "options")
    refuseUnknown(input, ["secret", "gracePeriodSeconds"], "")
    const { secret, gracePeriodSeconds = DEFAULT_GRACE_SECONDS } = input
    const graceMs = 1000 * wholeNumber(gracePeriodSeconds, "gracePeriodSeconds", 0, LONGEST_GRACE_SECONDS)
    return readAndSave(async () => {
      const entry = await this.#require(app, source)
      const record = recordOf(entry)
      const key = requireSecret(secret, record.verification)
      const secrets = this.#open(entry)
      const signing = rotate(secrets.signing, key, graceMs, this.#context.clock.wallNow())
      return this.#save(entry, record, { ...secrets, signing })
    })
  }

  /** What came to it lately, up to two seconds ago. It is kept for 30 days after the last request. */
  async activity(app: string, source: string): Promise<SourceActivity> {
    const { name: id } = await this.#require(app, source)
    const { store, orgId, clock } = this.#context
    return showActivity(await store.getEntry(ACTIVITY_KIND, orgId, id, clock.now()))
  }

  /**
   * For programs with an HTTP server of their own: takes in a request to `/in/TOKEN`, a source of any tenant. The result is the response.
   * When the store fails it is a 503, so that the provider sends the request again.
   */
  async receive(token: string, input: ReceiveInput): Promise<Receipt> {
    const { receiver, instruments } = this.#context
    const { facts, query, body } = parseReceive(input)
    const startedAt = instruments.now()
    const admitted = await receiver.admit(String(token), body.length, facts)
    const { method, path, headers } = facts
    const receipt =
      "status" in admitted
        ? admitted
        : await receiver.take(admitted, receivedRequest({ method, path, query, headers, body }), facts)
    instruments.inboundAnswered(receipt.result, instruments.now() - startedAt)
    return receipt
  }

  async #require(app: string, source: string): Promise<Entry> {
    const { id: appId } = await requireApplication(this.#context, app)
    return requireFound("source", source, async (key) => {
      const id = isId("src", key) ? key : await new SourceNames(this.#context, appId).idOf(key)
      const entry = id === null ? null : await this.#read(id)
      return entry?.owner === appId ? entry : null
    })
  }

  #read(id: string): Promise<Entry | null> {
    const { store, orgId, clock } = this.#context
    return store.getEntry(SOURCE_KIND, orgId, id, clock.now())
  }

  #open(entry: Entry): SourceSecrets {
    return openSecrets(this.#context.vault, entry.name, recordOf(entry).sealed)
  }

  async #save(
    before: Omit<Entry, "body" | "updatedAt" | "expiresAt">,
    record: Unsealed,
    secrets: SourceSecrets,
  ): Promise<Source> {
    const { store, vault, clock } = this.#context
    const id = before.name
    const body: SourceRecord = {
      ...record,
      digest: digestOf(secrets.url),
      sealed: sealSecrets(vault, id, secrets),
    }
    const entry: Entry = {
      ...before,
      body: JSON.stringify(body),
      version: before.version + 1,
      updatedAt: clock.now(),
      expiresAt: null,
    }
    try {
      await store.saveEntryIfUnchanged(entry)
      return this.#show(entry)
    } finally {
      forgetSource(store, id)
    }
  }

  #show(entry: Entry): Source {
    const { vault, clock } = this.#context
    return showSource(entry, vault, clock.wallNow())
  }
}

/** Nothing when it was not given. */
function recorded(handshake: HandshakeInput | null | undefined): Pick<SourceRecord, "handshake"> {
  return handshake === undefined ? {} : { handshake: handshake?.kind ?? null }
}

async function deleteSource({ store, orgId }: ResourceContext, { name: id }: Entry): Promise<void> {
  try {
    await store.deleteEntry(SOURCE_KIND, orgId, id)
  } finally {
    forgetSource(store, id)
  }
  await store.deleteEntry(ACTIVITY_KIND, orgId, id)
}

/** Of a deleted application. Their URLs have ended already: no source works without its application. */
export async function deleteSources(context: ResourceContext, appId: string): Promise<void> {
  const { store, orgId, clock } = context
  forgetSources(store)
  const page = { limit: 250, order: "ascending", from: null, back: false } as const
  for (const entry of await store.listEntries(SOURCE_KIND, orgId, page, clock.now(), appId))
    await deleteSource(context, entry)
  await forgetNames(context, appId)
}
