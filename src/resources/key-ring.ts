/** Verifies tokens of all tenants. Keys are cached for two seconds; a revocation in this process takes effect at once. */
import { BoundedCache } from "../core/bounded-cache.ts"
import type { Clock } from "../core/clock.ts"
import type { Entry, Store } from "../store/store.ts"
import { changed, KEY_KIND, type KeyRecord, recordOf } from "./key-record.ts"
import { hasDigest, readToken, Secret, type Token } from "./key-token.ts"

export type KeyProblem = "malformed" | "unknown" | "expired" | "revoked"

export interface KnownKey extends KeyRecord {
  readonly id: string
  readonly orgId: string
}

export type Verified =
  | { readonly ok: true; readonly key: KnownKey }
  | { readonly ok: false; readonly reason: KeyProblem }

interface Seen {
  readonly reading: Promise<KnownKey | null>
  /** Set when `reading` has resolved: later requests need not await it. */
  key: KnownKey | null
  /** The last secret that was verified. */
  secret: Secret | null
  readonly untilMs: number
}

const SEEN_MS = 2000
const MOST_SEEN = 10_000
const USED_MS = 60_000
/** Parsed tokens of operators' own keys, whose ids are digests. There are few of them. */
const MOST_NAMED = 100

/** One cache for each store: revoking a key or deleting its application removes it for all rings of the store. */
const SEEN = new WeakMap<Store, BoundedCache<string, Seen>>()

function seenOf(store: Store): BoundedCache<string, Seen> {
  const seen = SEEN.get(store) ?? new BoundedCache<string, Seen>(MOST_SEEN)
  SEEN.set(store, seen)
  return seen
}

export function forgetKey(store: Store, id: string): void {
  SEEN.get(store)?.delete(id)
}

export function forgetKeys(store: Store): void {
  SEEN.get(store)?.clear()
}

export class KeyRing {
  readonly #store: Store
  readonly #clock: Clock
  readonly #seen: BoundedCache<string, Seen>
  /** When the last use of each key was written. */
  readonly #noted = new BoundedCache<string, number>(MOST_SEEN)
  /** By their text, which is the secret too. */
  readonly #named = new BoundedCache<string, Token>(MOST_NAMED)
  readonly #writing = new Set<Promise<void>>()

  constructor(store: Store, clock: Clock) {
    this.#store = store
    this.#clock = clock
    this.#seen = seenOf(store)
  }

  /** Synchronous for a cached key: awaiting a promise took as long as the check itself. */
  verify(text: string, now = this.#clock.now()): Verified | Promise<Verified> {
    const token = this.#named.get(text) ?? readToken(text)
    if (token === null) return { ok: false, reason: "malformed" }
    const seen = this.#find(token.id, now)
    if (seen.key !== null) return this.#judge(token, seen, seen.key, now)
    return seen.reading.then((key) => this.#judge(token, seen, key, now))
  }

  #judge(token: Token, seen: Seen, key: KnownKey | null, now: number): Verified {
    if (key === null) {
      this.#named.delete(token.secret)
      return { ok: false, reason: "unknown" }
    }
    if (!seen.secret?.is(token.secret)) {
      if (!hasDigest(token.secret, key.digest)) return { ok: false, reason: "unknown" }
      seen.secret = new Secret(token.secret)
      this.#name(token)
    }
    const isRevoked = key.revokedAt !== null && key.revokedAt <= now
    if (isRevoked || (key.expiresAt !== null && key.expiresAt <= now)) {
      this.#named.delete(token.secret)
      seen.secret = null
      return { ok: false, reason: isRevoked ? "revoked" : "expired" }
    }
    this.#note(key, now)
    return { ok: true, key }
  }

  #name(token: Token): void {
    if (token.isOwn) this.#named.set(token.secret, token)
  }

  /** Resolves when all uses are written. */
  async close(): Promise<void> {
    await Promise.all(this.#writing)
  }

  /** Cached before it is read: a read that began before a revocation is not cached after it. */
  #find(id: string, now: number): Seen {
    const before = this.#seen.get(id)
    if (before !== undefined && now < before.untilMs) return before
    const seen: Seen = { reading: this.#read(id, now), key: null, secret: null, untilMs: now + SEEN_MS }
    this.#seen.set(id, seen)
    const forget = () => {
      if (this.#seen.get(id) === seen) this.#seen.delete(id)
    }
    seen.reading.then((key) => {
      seen.key = key
      // Failed reads and unknown keys are not cached.
      if (key === null) forget()
    }, forget)
    return seen
  }

  async #read(id: string, now: number): Promise<KnownKey | null> {
    const entry = await this.#store.getEntry(KEY_KIND, null, id, now)
    if (entry === null) return null
    const { orgId } = entry
    const record = recordOf(entry)
    const { appId } = record
    // A key without its application is revoked, also one that was created while the application was deleted.
    const isOrphan = appId !== null && (await this.#store.getApplication(orgId, appId)) === null
    return { ...record, id, orgId, ...(isOrphan ? { revokedAt: 0 } : {}) }
  }

  #note(key: KnownKey, now: number): void {
    const before = Math.max(this.#noted.get(key.id) ?? 0, key.lastUsedAt ?? 0)
    if (now - before < USED_MS) return
    this.#noted.set(key.id, now)
    const write = this.#write(key, now)
    this.#writing.add(write)
    void write.finally(() => this.#writing.delete(write))
  }

  /** After the request. A failure is ignored: the next use is written again. */
  async #write({ id, orgId }: KnownKey, now: number): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve))
    try {
      const entry: Entry | null = await this.#store.getEntry(KEY_KIND, orgId, id, now)
      if (entry !== null)
        await this.#store.saveEntryIfUnchanged(changed(entry, { ...recordOf(entry), lastUsedAt: now }, now))
    } catch {
      this.#noted.delete(id)
    }
  }
}
