/** Reads and writes the documents of alerts: the board, rules, settings and silences. */
import type { Clock } from "../core/clock.ts"
import type { Entry, EntryKind, Store } from "../store/store.ts"
import { type Board, EMPTY_BOARD } from "./board.ts"
import { defaultsOf, RULE_IDS, type RuleId, type RuleSettings } from "./rules.ts"
import { ALERT_DEFAULTS, type AlertSettings } from "./settings.ts"
import type { SilenceBody } from "./silence.ts"

export type EntryStore = Pick<Store, "getEntry" | "listEntries" | "saveEntryIfUnchanged" | "deleteEntry">

/** Alerts belong to the deployment. No key can name this tenant. */
const ORG = "posthorn:alerts"
const BOARD = "board"
const SETTINGS = "settings"
/** More silences at a time are refused. */
export const MOST_SILENCES = 1000

/** A document with the entry that it was read from; null: there was none. */
export interface Read<T> {
  readonly value: T
  readonly entry: Entry | null
}

export type StoredRules = { readonly [id in RuleId]: Read<RuleSettings> }

export interface StoredSilence extends SilenceBody {
  readonly id: string
  readonly createdAt: number
}

export class AlertStore {
  readonly #store: EntryStore
  readonly #clock: Clock

  constructor(store: EntryStore, clock: Clock) {
    this.#store = store
    this.#clock = clock
  }

  async readBoard(): Promise<Read<Board>> {
    const entry = await this.#get("alert", BOARD)
    return { value: entry === null ? EMPTY_BOARD : { ...EMPTY_BOARD, ...JSON.parse(entry.body) }, entry }
  }

  /** Rejects with `conflict` when the board has changed since it was read. */
  async saveBoard(board: Board, { entry }: Read<Board>): Promise<Read<Board>> {
    return { value: board, entry: await this.#save("alert", BOARD, board, entry) }
  }

  async readSettings(): Promise<Read<AlertSettings>> {
    const entry = await this.#get("alert", SETTINGS)
    return { value: entry === null ? ALERT_DEFAULTS : JSON.parse(entry.body), entry }
  }

  async saveSettings(settings: AlertSettings, { entry }: Read<AlertSettings>): Promise<void> {
    await this.#save("alert", SETTINGS, settings, entry)
  }

  async readRules(): Promise<StoredRules> {
    const entries = new Map((await this.#list("alert-rule")).map((entry) => [entry.name, entry]))
    const rules = RULE_IDS.map((id) => [id, toRule(id, entries.get(id) ?? null)])
    return Object.fromEntries(rules)
  }

  async readRule(id: RuleId): Promise<Read<RuleSettings>> {
    return toRule(id, await this.#get("alert-rule", id))
  }

  async saveRule(id: RuleId, settings: RuleSettings, { entry }: Read<RuleSettings>): Promise<void> {
    await this.#save("alert-rule", id, settings, entry)
  }

  async resetRule(id: RuleId): Promise<void> {
    await this.#store.deleteEntry("alert-rule", ORG, id)
  }

  async readSilences(): Promise<StoredSilence[]> {
    return (await this.#list("alert-silence")).map(toSilence)
  }

  async readSilence(id: string): Promise<StoredSilence | null> {
    const entry = await this.#get("alert-silence", id)
    return entry === null ? null : toSilence(entry)
  }

  async saveSilence(id: string, body: SilenceBody): Promise<StoredSilence> {
    return toSilence(await this.#save("alert-silence", id, body, null, body.until))
  }

  async deleteSilence(id: string): Promise<void> {
    await this.#store.deleteEntry("alert-silence", ORG, id)
  }

  #get(kind: EntryKind, name: string): Promise<Entry | null> {
    return this.#store.getEntry(kind, ORG, name, this.#clock.now())
  }

  #list(kind: EntryKind): Promise<Entry[]> {
    const page = { limit: MOST_SILENCES, order: "ascending", from: null, back: false } as const
    return this.#store.listEntries(kind, ORG, page, this.#clock.now())
  }

  async #save(
    kind: EntryKind,
    name: string,
    body: object,
    before: Entry | null,
    expiresAt: number | null = null,
  ): Promise<Entry> {
    const now = this.#clock.now()
    const entry: Entry = {
      kind,
      orgId: ORG,
      name,
      body: JSON.stringify(body),
      version: (before?.version ?? 0) + 1,
      createdAt: before?.createdAt ?? now,
      updatedAt: now,
      expiresAt,
    }
    await this.#store.saveEntryIfUnchanged(entry)
    return entry
  }
}

/** A threshold that a later version added has its default. */
function toRule(id: RuleId, entry: Entry | null): Read<RuleSettings> {
  const defaults = defaultsOf(id)
  if (entry === null) return { value: defaults, entry }
  const stored: RuleSettings = JSON.parse(entry.body)
  return { value: { ...stored, thresholds: { ...defaults.thresholds, ...stored.thresholds } }, entry }
}

const toSilence = ({ name, body, createdAt }: Entry): StoredSilence => ({
  id: name,
  ...(JSON.parse(body) as SilenceBody),
  createdAt,
})
