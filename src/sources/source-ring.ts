/** Finds sources by the tokens in their URLs, of all tenants. They are cached for two seconds; a change in this process takes effect at once. */
import { BoundedCache } from "../core/bounded-cache.ts"
import type { Clock } from "../core/clock.ts"
import type { Handshake } from "../core/handshake.ts"
import type { Place } from "../core/received-request.ts"
import type { Vault } from "../core/vault.ts"
import type { Scheme } from "../core/verification.ts"
import { deliveryIdPlaces, schemeOf } from "../core/verification-schemes.ts"
import { hasDigest } from "../resources/key-token.ts"
import type { Entry, Store } from "../store/store.ts"
import { handshakeOf, recordOf, SOURCE_KIND, type SourceRecord } from "./source-record.ts"
import { openSecrets, type SourceSecrets } from "./source-secrets.ts"
import { readSourceToken, type SourceToken } from "./source-token.ts"

/** A source ready for requests. */
export interface OpenSource {
  readonly id: string
  readonly orgId: string
  readonly appId: string
  readonly record: SourceRecord
  readonly scheme: Scheme
  readonly secrets: SourceSecrets
  readonly handshake: Handshake | null
  /** Where the provider's id of a delivery is; the first that a request has. */
  readonly deliveryId: readonly Place[]
}

interface Seen {
  readonly reading: Promise<OpenSource | null>
  /** Set when `reading` has resolved: later requests need not await it. */
  source: OpenSource | null | undefined
  readonly untilMs: number
}

const SEEN_MS = 2000
const MOST_SEEN = 10_000

/** One cache for each store: changing a source or deleting its application removes it for all rings of the store. */
const SEEN = new WeakMap<Store, BoundedCache<string, Seen>>()

function seenOf(store: Store): BoundedCache<string, Seen> {
  const seen = SEEN.get(store) ?? new BoundedCache<string, Seen>(MOST_SEEN)
  SEEN.set(store, seen)
  return seen
}

export function forgetSource(store: Store, id: string): void {
  SEEN.get(store)?.delete(id)
}

export function forgetSources(store: Store): void {
  SEEN.get(store)?.clear()
}

export interface SourceRingParts {
  readonly store: Store
  readonly vault: Vault
  readonly clock: Clock
}

export class SourceRing {
  readonly #parts: SourceRingParts
  readonly #seen: BoundedCache<string, Seen>

  constructor(parts: SourceRingParts) {
    this.#parts = parts
    this.#seen = seenOf(parts.store)
  }

  /** Null: there is no such source. Synchronous for a cached one, and for a text that is no token. */
  find(text: string): OpenSource | null | Promise<OpenSource | null> {
    const token = readSourceToken(text)
    if (token === null) return null
    const seen = this.#look(token.sourceId, this.#parts.clock.now())
    if (seen.source !== undefined) return ifFits(token, seen.source)
    return seen.reading.then((source) => ifFits(token, source))
  }

  /** Never asks the store, and returns a source that was cached more than two seconds ago. Null: it is not in the cache. */
  cached(text: string): OpenSource | null {
    const token = readSourceToken(text)
    return token === null ? null : ifFits(token, this.#seen.get(token.sourceId)?.source ?? null)
  }

  /**
   * Cached before it is read: a read that began before a change is not cached after it. Unknown ids are cached, too: a provider goes on
   * sending to a source that was deleted.
   */
  #look(id: string, now: number): Seen {
    const before = this.#seen.get(id)
    if (before !== undefined && now < before.untilMs) return before
    const seen: Seen = { reading: this.#read(id, now), source: undefined, untilMs: now + SEEN_MS }
    this.#seen.set(id, seen)
    seen.reading.then(
      (source) => {
        seen.source = source
      },
      () => {
        if (this.#seen.get(id) === seen) this.#seen.delete(id)
      },
    )
    return seen
  }

  async #read(id: string, now: number): Promise<OpenSource | null> {
    const entry = await this.#parts.store.getEntry(SOURCE_KIND, null, id, now)
    if (entry === null) return null
    // A source without its application has ended, also one that was created while the application was deleted.
    const application = await this.#parts.store.getApplication(entry.orgId, entry.owner!)
    return application === null ? null : this.#open(entry)
  }

  #open(entry: Entry): OpenSource {
    const record = recordOf(entry)
    const { verification, deduplication } = record
    return {
      id: entry.name,
      orgId: entry.orgId,
      appId: entry.owner!,
      record,
      scheme: schemeOf(verification),
      secrets: openSecrets(this.#parts.vault, entry.name, record.sealed),
      handshake: handshakeOf(record),
      deliveryId:
        deduplication === "scheme"
          ? deliveryIdPlaces(verification)
          : deduplication === "off"
            ? []
            : [deduplication],
    }
  }
}

function ifFits({ secret }: SourceToken, source: OpenSource | null): OpenSource | null {
  return source !== null && hasDigest(secret, source.record.digest) ? source : null
}
