/** The latest overview, an entry that the leader of the monitor writes and that every process reads. */
import { hasCode } from "../core/errors.ts"
import type { Entry, Store } from "../store/store.ts"
import type { Overview } from "./overview.ts"

const KIND = "overview"
/** No key can name this tenant. */
const ORG = "posthorn:monitor"
const NAME = "overview"

/** With the entry that it was read from; null: there is no entry, or this version cannot read it. */
export interface ReadOverview {
  readonly overview: Overview | null
  readonly entry: Entry | null
}

export class OverviewStore {
  readonly #store: Pick<Store, "getEntry" | "saveEntryIfUnchanged">

  constructor(store: Pick<Store, "getEntry" | "saveEntryIfUnchanged">) {
    this.#store = store
  }

  async read(now: number): Promise<ReadOverview> {
    const entry = await this.#store.getEntry(KIND, ORG, NAME, now)
    return { overview: entry === null ? null : parse(entry.body), entry }
  }

  /** Of two leaders at one moment, one writes; the other has seen the same store. */
  async save(overview: Overview, { entry: before }: ReadOverview, now: number): Promise<void> {
    const entry: Entry = {
      kind: KIND,
      orgId: ORG,
      name: NAME,
      body: JSON.stringify(overview),
      version: (before?.version ?? 0) + 1,
      createdAt: before?.createdAt ?? now,
      updatedAt: now,
      expiresAt: null,
    }
    try {
      await this.#store.saveEntryIfUnchanged(entry)
    } catch (error) {
      if (!hasCode(error, "conflict")) throw error
    }
  }
}

/** Null for a text of another form: an operator's, or another version's. */
function parse(text: string): Overview | null {
  try {
    const { surveyedAt, deliveries, oldestDue, endpoints, troubled, deadLetters, hours } = JSON.parse(
      text,
    ) as Partial<Overview>
    const lists = [troubled, deadLetters, hours]
    const isOverview =
      typeof surveyedAt === "number" &&
      typeof deliveries === "object" &&
      typeof endpoints === "object" &&
      lists.every((list) => Array.isArray(list))
    if (!isOverview) return null
    return {
      surveyedAt,
      deliveries,
      oldestDue: oldestDue ?? null,
      endpoints,
      troubled,
      deadLetters,
      hours,
    } as Overview
  } catch {
    return null
  }
}
