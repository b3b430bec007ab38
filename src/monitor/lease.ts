/** The lease of the monitor: one process of those that share a store has it, and keeps its memory there for its successor. */
import { hasCode } from "../core/errors.ts"
import type { Entry, Store } from "../store/store.ts"
import { type History, NO_HISTORY } from "./history.ts"

const KIND = "lease"
/** No key can name this tenant. */
const ORG = "posthorn:monitor"
const NAME = "monitor"

interface Body {
  readonly holder: string
  /** By the holder's clock. A wrong clock makes two leaders for a moment; the version still lets only one of them write. */
  readonly until: number
  readonly history: History
}

/** The lease as it was read. */
export interface Found {
  readonly entry: Entry | null
  readonly history: History
  /** Whether this process may take or renew it. */
  readonly isFree: boolean
  /** Whether this process had it last. */
  readonly isOurs: boolean
}

export class MonitorLease {
  readonly #store: Pick<Store, "getEntry" | "saveEntryIfUnchanged">
  readonly #holder: string

  constructor(store: Pick<Store, "getEntry" | "saveEntryIfUnchanged">, holder: string) {
    this.#store = store
    this.#holder = holder
  }

  async read(now: number): Promise<Found> {
    const entry = await this.#store.getEntry(KIND, ORG, NAME, now)
    const body = entry === null ? null : readBody(entry.body)
    const isOurs = body?.holder === this.#holder
    return {
      entry,
      history: body?.history ?? NO_HISTORY,
      isOurs,
      isFree: body === null || isOurs || body.until <= now,
    }
  }

  /** Takes or renews the lease that was read. Null: another process was faster. */
  async hold({ entry: before }: Found, history: History, now: number, until: number): Promise<Found | null> {
    const body: Body = { holder: this.#holder, until, history }
    const entry: Entry = {
      kind: KIND,
      orgId: ORG,
      name: NAME,
      body: JSON.stringify(body),
      version: (before?.version ?? 0) + 1,
      createdAt: before?.createdAt ?? now,
      updatedAt: now,
      expiresAt: null,
    }
    try {
      await this.#store.saveEntryIfUnchanged(entry)
      return { entry, history, isFree: true, isOurs: true }
    } catch (error) {
      if (hasCode(error, "conflict")) return null
      throw error
    }
  }

  /** Another process may take it at once. */
  async release(now: number): Promise<void> {
    const found = await this.read(now)
    if (found.isOurs) await this.hold(found, found.history, now, 0)
  }
}

/** Null for a text that was not written by a monitor: the lease is then free. */
function readBody(text: string): Body | null {
  try {
    const { holder, until, history } = JSON.parse(text) as Partial<Body>
    const isBody =
      typeof holder === "string" &&
      typeof until === "number" &&
      typeof history?.dead === "number" &&
      Array.isArray(history.samples)
    return isBody ? { holder, until, history } : null
  } catch {
    return null
  }
}
