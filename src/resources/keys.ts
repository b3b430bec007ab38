/** API keys of a tenant: made once, shown once, revoked at once. */
import { invalid, notFound, PosthornError } from "../core/errors.ts"
import { requireObject, wholeNumber } from "../core/input.ts"
import type { Entry } from "../store/store.ts"
import { type KeyInput, parseKey } from "./key-input.ts"
import { changed, KEY_KIND, type Key, type KeyRecord, recordOf, showKey } from "./key-record.ts"
import { forgetKey } from "./key-ring.ts"
import { digestOf, hasDigest, makeToken, readToken, SHORTEST_OWN_KEY } from "./key-token.ts"
import { readAndSave } from "./optimistic.ts"
import { type List, type Listing, listing, listPage, onlyPage, type PageInput, pageByName } from "./paging.ts"
import { type ResourceContext, requireApplication } from "./resource-context.ts"

export type { KeyInput } from "./key-input.ts"
export { CAPABILITIES, type Capability, type Key, type KeyScope } from "./key-record.ts"

export interface NewKey extends Key {
  /** Shown this once. */
  readonly token: string
}

export interface KeyQuery extends PageInput {
  /** By id or uid: only those of this application. Null: only those that are no application's. */
  appId?: string | null
}

export interface RevokeInput {
  /** At once unless told; never later than it was revoked before. */
  readonly inSeconds?: number
}

const MOST_SECONDS = 365 * 86_400

export class Keys {
  readonly #context: ResourceContext

  constructor(context: ResourceContext) {
    this.#context = context
  }

  async create(input: KeyInput): Promise<NewKey> {
    const { id, secret, text } = makeToken(this.#context.randomBytes)
    return { ...(await this.#create(id, secret, await parseKey(this.#context, input))), token: text }
  }

  /** A key whose token the caller has already: in the form of ours, or at least 24 characters. One that is there stays as it is. */
  async adopt(text: string, input: KeyInput): Promise<Key> {
    const token = readToken(text)
    if (token === null)
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
    return listing(query, (asked) => this.#page(asked))
  }

  async #page(query: KeyQuery): Promise<List<Key>> {
    requireObject(query, "query")
    const { store, orgId, clock } = this.#context
    const { appId, ...page } = query
    const id = appId == null ? appId : (await requireApplication(this.#context, appId)).id
    const owner = id === undefined ? undefined : ownerOf(orgId, id)
    return listPage(
      pageByName(onlyPage(page)),
      (read) => store.listEntries(KEY_KIND, orgId, read, clock.now(), owner),
      ({ name }) => name,
      showKey,
    )
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
        await store.saveEntry(after)
        return showKey(after)
      } finally {
        forgetKey(store, id)
      }
    })
  }

  /** Every key of an application, or those of some sessions; says how many. */
  async revokeAll(app: string, input: RevokeInput & { readonly sessionIds?: readonly string[] } = {}) {
    const { sessionIds, ...when } = input
    const { id: appId } = await requireApplication(this.#context, app)
    const isWanted = ({ sessionId }: Key) => sessionIds === undefined || sessionIds.includes(sessionId ?? "")
    const wanted = (await Array.fromAsync(this.list({ appId, limit: 250 }))).filter(isWanted)
    for (const { id } of wanted) await this.revoke(id, when)
    return wanted.length
  }

  async #create(id: string, secret: string, record: Omit<KeyRecord, "digest">): Promise<Key> {
    const { store, clock, orgId } = this.#context
    const now = clock.now()
    const owner = ownerOf(orgId, record.appId)
    const none = {
      kind: KEY_KIND,
      orgId,
      name: id,
      owner,
      version: 0,
      createdAt: now,
      updatedAt: now,
    } as const
    const entry = changed(none, { ...record, digest: digestOf(secret) }, now)
    await store.saveEntry(entry)
    return showKey(entry)
  }

  #read(id: string): Promise<Entry | null> {
    const { store, orgId, clock } = this.#context
    return store.getEntry(KEY_KIND, orgId, id, clock.now())
  }

  async #require(id: string): Promise<Entry> {
    const entry = typeof id === "string" ? await this.#read(id) : null
    if (entry === null) throw notFound("key", String(id))
    return entry
  }
}

/** An application's, or the tenant's own. */
function ownerOf(orgId: string, appId: string | null): string {
  return appId ?? orgId
}
