/** API keys of a tenant. A token is shown once; a revocation takes effect at once. */
import { invalid, PosthornError } from "../core/errors.ts"
import { wholeNumber } from "../core/input.ts"
import type { Entry } from "../store/store.ts"
import { type KeyInput, parseKey } from "./key-input.ts"
import { changed, KEY_KIND, type Key, type KeyRecord, recordOf, showKey } from "./key-record.ts"
import { forgetKeys } from "./key-ring.ts"
import { digestOf, hasDigest, makeToken, readToken, SHORTEST_OWN_KEY } from "./key-token.ts"
import { readAndSave } from "./optimistic.ts"
import { ownerOf, readOwned } from "./owned-entries.ts"
import { byName, type Listing, listing, type PageInput } from "./paging.ts"
import { type ResourceContext, requireApplication, requireFound } from "./resource-context.ts"

export type { KeyInput } from "./key-input.ts"
export { CAPABILITIES, type Capability, type Key } from "./key-record.ts"

export interface NewKey extends Key {
  /** Shown only here. */
  readonly token: string
}

export interface KeyQuery extends PageInput {
  /** Only keys of this application, by id or uid. Null: only keys of no application. */
  appId?: string | null
}

export interface RevokeInput {
  /** 0 by default. An earlier time of revocation stays. */
  readonly inSeconds?: number
}

const MOST_SECONDS = 365 * 86_400
/** A portal that makes a key for each visit has thousands of them, and ending its access must not take a minute. */
const MOST_REVOKED_AT_ONCE = 100

export class Keys {
  readonly #context: ResourceContext

  constructor(context: ResourceContext) {
    this.#context = context
  }

  async create(input: KeyInput): Promise<NewKey> {
    const { id, secret, text } = makeToken("key", this.#context.randomBytes)
    return { ...(await this.#create(id, secret, await parseKey(this.#context, input))), token: text }
  }

  /** Stores a token of the caller's own: in the form of ours, or at least 24 characters. A key that exists already is not changed. */
  async adopt(text: string, input: KeyInput): Promise<Key> {
    const token = readToken(text)
    if (token === null || token.kind !== "key")
      throw invalid(
        "token",
        `must be ph_<16 letters and digits>_<32 or more>, or ${SHORTEST_OWN_KEY} to 512 visible ASCII characters`,
      )
    const before = await this.#read(token.id)
    if (before === null) return this.#create(token.id, token.secret, await parseKey(this.#context, input))
    if (!hasDigest(token.secret, recordOf(before).digest))
      throw new PosthornError("conflict", `key "${token.id}" exists already, with another secret`)
    return showKey(before)
  }

  async get(id: string): Promise<Key> {
    return showKey(await this.#require(id))
  }

  /** By id. */
  list(query: KeyQuery = {}): Listing<Key> {
    return listing(query, {
      fields: ["appId"],
      by: byName,
      read: ({ appId }) => readOwned(this.#context, KEY_KIND, appId),
      show: showKey,
    })
  }

  async revoke(id: string, { inSeconds = 0 }: RevokeInput = {}): Promise<Key> {
    const { store, clock } = this.#context
    wholeNumber(inSeconds, "inSeconds", 0, MOST_SECONDS)
    return readAndSave(async () => {
      const entry = await this.#require(id)
      const record = recordOf(entry)
      const now = clock.now()
      const revokedAt = Math.min(record.revokedAt ?? Number.POSITIVE_INFINITY, now + inSeconds * 1000)
      const after = changed(entry, { ...record, revokedAt }, now)
      try {
        await store.saveEntryIfUnchanged(after)
        return showKey(after)
      } finally {
        forgetKeys(store)
      }
    })
  }

  /** Revokes all keys of an application, or those of some sessions. Returns their number, with those that have ended already. */
  async revokeAll(app: string, input: RevokeInput & { readonly sessionIds?: readonly string[] } = {}) {
    const { sessionIds, inSeconds = 0 } = input
    wholeNumber(inSeconds, "inSeconds", 0, MOST_SECONDS)
    const endsAt = this.#context.clock.now() + inSeconds * 1000
    const { id: appId } = await requireApplication(this.#context, app)
    const isWanted = ({ sessionId }: Key) => sessionIds === undefined || sessionIds.includes(sessionId ?? "")
    const wanted = (await Array.fromAsync(this.list({ appId, limit: 250 }))).filter(isWanted)
    const goesOn = (end: Date | null) => end === null || end.getTime() > endsAt
    const lasting = wanted.filter((key) => goesOn(key.expiresAt) && goesOn(key.revokedAt))
    for (let n = 0; n < lasting.length; n += MOST_REVOKED_AT_ONCE) {
      const next = lasting.slice(n, n + MOST_REVOKED_AT_ONCE)
      await Promise.all(next.map(({ id }) => this.revoke(id, { inSeconds })))
    }
    return wanted.length
  }

  async #create(id: string, secret: string, record: Omit<KeyRecord, "digest">): Promise<Key> {
    const { store, clock, orgId } = this.#context
    const now = clock.now()
    const owner = ownerOf(orgId, record.appId)
    const blank = {
      kind: KEY_KIND,
      orgId,
      name: id,
      owner,
      version: 0,
      createdAt: now,
      updatedAt: now,
    } as const
    const entry = changed(blank, { ...record, digest: digestOf(secret) }, now)
    await store.saveEntryIfUnchanged(entry)
    return showKey(entry)
  }

  #read(id: string): Promise<Entry | null> {
    const { store, orgId, clock } = this.#context
    return store.getEntry(KEY_KIND, orgId, id, clock.now())
  }

  #require(id: string): Promise<Entry> {
    return requireFound("key", id, (name) => this.#read(name))
  }
}
