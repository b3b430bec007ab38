/** Verifies the tokens of keys and sessions, of all tenants. They are cached for two seconds; a revocation in this process takes effect at once. */
import { BoundedCache } from "../core/bounded-cache.ts"
import type { Clock } from "../core/clock.ts"
import type { Store } from "../store/store.ts"
import { changed, isWithdrawn, KEY_KIND, type KeyRecord, recordOf } from "./key-record.ts"
import { hasDigest, readToken, Secret, type Token, type TokenKind } from "./key-token.ts"
import { readAndSave } from "./optimistic.ts"
import { IDLE_MS, SESSION_KIND, type SessionRecord } from "./session-record.ts"

export type KeyProblem = "malformed" | "unknown" | "expired" | "revoked"

export interface KnownKey extends KeyRecord {
  readonly kind: TokenKind
  readonly id: string
  readonly orgId: string
  /** Of a session: the key that opened it, if a key did. */
  readonly keyId?: string | null
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

const ENTRY_KINDS = { key: KEY_KIND, session: SESSION_KIND } as const

/** One cache for each store, emptied for all rings of the store when a key or a session is revoked or an application is deleted. */
const SEEN = new WeakMap<Store, BoundedCache<string, Seen>>()

function seenOf(store: Store): BoundedCache<string, Seen> {
  const seen = SEEN.get(store) ?? new BoundedCache<string, Seen>(MOST_SEEN)
  SEEN.set(store, seen)
  return seen
}

/** All of them: the sessions of a key end with it. */
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

  /** `isRequest` is false when the caller of an earlier request is checked again. Synchronous for a cached key: awaiting a promise took as long as the check itself. */
  verify(text: string, now = this.#clock.now(), isRequest = true): Verified | Promise<Verified> {
    const token = this.#named.get(text) ?? readToken(text)
    if (token === null) return { ok: false, reason: "malformed" }
    const seen = this.#find(token, now)
    if (seen.key !== null) return this.#judge(token, seen, seen.key, now, isRequest)
    return seen.reading.then((key) => this.#judge(token, seen, key, now, isRequest))
  }

  #judge(token: Token, seen: Seen, key: KnownKey | null, now: number, isRequest: boolean): Verified {
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
    if (isRevoked || (key.expiresAt !== null && key.expiresAt <= now) || this.#isIdle(key, now)) {
      this.#named.delete(token.secret)
      seen.secret = null
      return { ok: false, reason: isRevoked ? "revoked" : "expired" }
    }
    // A stream that is open in a forgotten tab does not keep its session.
    if (isRequest || key.kind === "key") this.#note(key, now)
    return { ok: true, key }
  }

  #isIdle({ kind, id, lastUsedAt }: KnownKey, now: number): boolean {
    return kind === "session" && now - Math.max(lastUsedAt!, this.#noted.get(id) ?? 0) >= IDLE_MS
  }

  #name(token: Token): void {
    if (token.isOwn) this.#named.set(token.secret, token)
  }

  /** Resolves when all uses are written. */
  async close(): Promise<void> {
    await Promise.all(this.#writing)
  }

  /** Cached before it is read: a read that began before a revocation is not cached after it. */
  #find({ kind, id }: Token, now: number): Seen {
    const name = kind === "key" ? id : `session ${id}`
    const before = this.#seen.get(name)
    if (before !== undefined && now < before.untilMs) return before
    const seen: Seen = { reading: this.#read(kind, id, now), key: null, secret: null, untilMs: now + SEEN_MS }
    this.#seen.set(name, seen)
    const forget = () => {
      if (this.#seen.get(name) === seen) this.#seen.delete(name)
    }
    seen.reading.then((key) => {
      seen.key = key
      // Failed reads and unknown keys are not cached.
      if (key === null) forget()
    }, forget)
    return seen
  }

  async #read(kind: TokenKind, id: string, now: number): Promise<KnownKey | null> {
    const entry = await this.#store.getEntry(ENTRY_KINDS[kind], null, id, now)
    if (entry === null) return null
    const { orgId } = entry
    const record = recordOf(entry) as KeyRecord & Partial<SessionRecord>
    // A key without its application is revoked, also one that was created while the application was deleted.
    const isEnded = await isWithdrawn(this.#store, orgId, { keyId: null, ...record }, now)
    return { ...record, kind, id, orgId, ...(isEnded ? { revokedAt: 0 } : {}) }
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
  async #write({ kind, id, orgId }: KnownKey, now: number): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve))
    try {
      await readAndSave(async () => {
        const entry = await this.#store.getEntry(ENTRY_KINDS[kind], orgId, id, now)
        if (entry === null) return
        const record = recordOf(entry)
        const lastUsedAt = Math.max(record.lastUsedAt ?? 0, now)
        await this.#store.saveEntryIfUnchanged(changed(entry, { ...record, lastUsedAt }, now))
      })
    } catch {
      this.#noted.delete(id)
    }
  }
}
