/** Channels in the store: an entry each, its settings sealed by the vault. */

import type { AlertChannelKind } from "../../core/alert-channel-kinds.ts"
import type { Clock } from "../../core/clock.ts"
import { PosthornError } from "../../core/errors.ts"
import { DEFAULT_ORG } from "../../core/org.ts"
import type { Vault } from "../../core/vault.ts"
import type { Entry, Page, Store } from "../../store/store.ts"
import type { ChannelSettings } from "./channel.ts"

const KIND = "alert-channel"
const MOST_CHANNELS = 100

export interface StoredChannel {
  readonly name: string
  readonly settings: ChannelSettings
  readonly version: number
  readonly createdAt: number
  readonly updatedAt: number
}

interface Body {
  readonly kind: AlertChannelKind
  /** Base64 of the sealed settings. */
  readonly sealed: string
}

export interface StoredChannelsParts {
  readonly store: Store
  readonly vault: Vault
  readonly clock: Clock
}

export class StoredChannels {
  readonly #parts: StoredChannelsParts

  constructor(parts: StoredChannelsParts) {
    this.#parts = parts
  }

  async get(name: string): Promise<StoredChannel | null> {
    const { store, clock } = this.#parts
    const entry = await store.getEntry(KIND, DEFAULT_ORG, name, clock.now())
    return entry === null ? null : this.read(entry)
  }

  entries(page: Page<string>): Promise<Entry[]> {
    const { store, clock } = this.#parts
    return store.listEntries(KIND, DEFAULT_ORG, page, clock.now())
  }

  /** All of them: there are at most 100. */
  async all(): Promise<StoredChannel[]> {
    const page = { limit: MOST_CHANNELS, order: "ascending", from: null, back: false } as const
    return (await this.entries(page)).map((entry) => this.read(entry))
  }

  read({ name, body, version, createdAt, updatedAt }: Entry): StoredChannel {
    const { sealed } = JSON.parse(body) as Body
    const text = this.#parts.vault.open(Buffer.from(sealed, "base64"), rowOf(name))
    return { name, settings: JSON.parse(text), version, createdAt, updatedAt }
  }

  /** Rejects with `conflict` when the channel has changed since `before` was read. */
  async save(name: string, settings: ChannelSettings, before: StoredChannel | null): Promise<StoredChannel> {
    const { store, vault, clock } = this.#parts
    if (before === null && (await this.all()).length >= MOST_CHANNELS)
      throw new PosthornError("limit_reached", `there are ${MOST_CHANNELS} channels; delete one first`)
    const now = clock.now()
    const sealed = Buffer.from(vault.seal(JSON.stringify(settings), rowOf(name))).toString("base64")
    const body: Body = { kind: settings.kind, sealed }
    const version = (before?.version ?? 0) + 1
    const createdAt = before?.createdAt ?? now
    await store.saveEntryIfUnchanged({
      kind: KIND,
      orgId: DEFAULT_ORG,
      name,
      body: JSON.stringify(body),
      version,
      createdAt,
      updatedAt: now,
      expiresAt: null,
    })
    return { name, settings, version, createdAt, updatedAt: now }
  }

  delete(name: string): Promise<void> {
    return this.#parts.store.deleteEntry(KIND, DEFAULT_ORG, name)
  }
}

/** A sealed text is bound to its row. */
const rowOf = (name: string) => `${KIND}:${name}`
