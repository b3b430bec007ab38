/** Channels in the store: an entry each, its settings sealed by the vault. */

import type { AlertChannelKind } from "../../core/alert-channel-kinds.ts"
import type { Clock } from "../../core/clock.ts"
import { PosthornError } from "../../core/errors.ts"
import { DEFAULT_ORG } from "../../core/org.ts"
import type { Vault } from "../../core/vault.ts"
import type { Logger } from "../../observe/log.ts"
import type { Entry, Page, Store } from "../../store/store.ts"
import type { ChannelSettings } from "./channel.ts"

const KIND = "alert-channel"
const MOST_CHANNELS = 100
const ALL = { limit: MOST_CHANNELS, order: "ascending", from: null, back: false } as const

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
  readonly logger: Logger
}

/** As it is stored; its settings are null if they cannot be decrypted. An operator may have typed any text over them. */
export type FoundChannel = Omit<StoredChannel, "settings"> & {
  readonly kind: AlertChannelKind | null
  readonly settings: ChannelSettings | null
}

export class StoredChannels {
  readonly #parts: StoredChannelsParts
  /** Channels that were logged, with their version: they are read every 15 s. */
  readonly #logged = new Set<string>()

  constructor(parts: StoredChannelsParts) {
    this.#parts = parts
  }

  /** Rejects if it cannot be decrypted. */
  async get(name: string): Promise<StoredChannel | null> {
    const entry = await this.#entry(name)
    return entry === null ? null : this.#open(entry)
  }

  async find(name: string): Promise<FoundChannel | null> {
    const entry = await this.#entry(name)
    return entry === null ? null : this.read(entry)
  }

  entries(page: Page<string>): Promise<Entry[]> {
    const { store, clock } = this.#parts
    return store.listEntries(KIND, DEFAULT_ORG, page, clock.now())
  }

  /** All channels. There are at most 100. */
  async all(): Promise<FoundChannel[]> {
    return (await this.entries(ALL)).map((entry) => this.read(entry))
  }

  /** Rejects with `limit_reached` if there would be too many channels with these. */
  async requireRoom(names: readonly string[]): Promise<void> {
    const all = new Set([...(await this.entries(ALL)).map(({ name }) => name), ...names])
    if (all.size > MOST_CHANNELS)
      throw new PosthornError(
        "limit_reached",
        `there are at most ${MOST_CHANNELS} channels, and there would be ${all.size}; delete one first`,
      )
  }

  read(entry: Entry): FoundChannel {
    const { name, version, createdAt, updatedAt } = entry
    const found = { name, kind: readBody(entry)?.kind ?? null, version, createdAt, updatedAt }
    try {
      return { ...found, settings: this.#open(entry).settings }
    } catch (error) {
      this.#logOnce(`${name}:${version}`, name, error)
      return { ...found, settings: null }
    }
  }

  #open(entry: Entry): StoredChannel {
    const { name, version, createdAt, updatedAt } = entry
    const sealed = Buffer.from(readBody(entry)?.sealed ?? "", "base64")
    const text = this.#parts.vault.open(sealed, rowOf(name))
    return { name, settings: JSON.parse(text), version, createdAt, updatedAt }
  }

  #entry(name: string): Promise<Entry | null> {
    const { store, clock } = this.#parts
    return store.getEntry(KIND, DEFAULT_ORG, name, clock.now())
  }

  #logOnce(key: string, name: string, error: unknown): void {
    if (this.#logged.has(key)) return
    this.#logged.add(key)
    this.#parts.logger.error(
      { err: error, channel: name },
      `The channel "${name}" cannot be decrypted and gets no notifications: put it again, or delete it`,
    )
  }

  /** Rejects with `conflict` when the channel has changed since `before` was read. */
  async save(name: string, settings: ChannelSettings, before: FoundChannel | null): Promise<StoredChannel> {
    const { store, vault, clock } = this.#parts
    if (before === null) await this.requireRoom([name])
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

function readBody({ body }: Entry): Partial<Body> | null {
  try {
    return JSON.parse(body)
  } catch {
    return null
  }
}

/** A sealed text is bound to its row. */
const rowOf = (name: string) => `${KIND}:${name}`
