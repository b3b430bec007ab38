/** Adds up what comes to the sources of this process, and writes it every two seconds, one entry for each source that was busy. */
import type { Clock, Timer } from "../core/clock.ts"
import { PosthornError } from "../core/errors.ts"
import type { InboundResult, RefusalReason } from "../core/inbound-results.ts"
import { headerOf, type ReceivedRequest } from "../core/received-request.ts"
import { readAndSave } from "../resources/optimistic.ts"
import type { Store } from "../store/store.ts"
import {
  ACTIVITY_KIND,
  type ActivityRecord,
  activityEntry,
  activityOf,
  merge,
  NO_ACTIVITY,
} from "./activity-record.ts"
import { SOURCE_KIND } from "./source-record.ts"
import type { OpenSource } from "./source-ring.ts"

/** What is shown of a refused request. */
export type RequestFacts = Pick<ReceivedRequest, "method" | "path" | "headers"> & {
  readonly remoteAddress: string | null
}

interface Pending {
  readonly source: Pick<OpenSource, "id" | "orgId" | "appId">
  record: ActivityRecord
}

const FLUSH_MS = 2000
const MOST_PENDING = 10_000
const LONGEST_SHOWN = 200

export class ActivityLog {
  readonly #store: Store
  readonly #clock: Clock
  #pending = new Map<string, Pending>()
  #timer: Timer | null = null
  #flushing: Promise<void> | null = null

  constructor(store: Store, clock: Clock) {
    this.#store = store
    this.#clock = clock
  }

  taken(source: OpenSource, result: Exclude<InboundResult, `refused_${RefusalReason}`>): void {
    const one =
      result === "handshake"
        ? { handshakes: 1 }
        : { [result === "accepted" ? "accepted" : "duplicates"]: 1, lastAcceptedAt: this.#clock.now() }
    this.#add(source, one)
  }

  refused(source: OpenSource, reason: RefusalReason, detail: string | null, facts: RequestFacts): void {
    const at = this.#clock.now()
    const { method, path, headers, remoteAddress } = facts
    const userAgent = headerOf(headers, "user-agent")?.slice(0, LONGEST_SHOWN) ?? null
    const request = {
      ...{ at, reason, detail, method: method.slice(0, LONGEST_SHOWN) },
      ...{ path: path.slice(0, LONGEST_SHOWN), remoteAddress, userAgent },
    }
    this.#add(source, { refused: { [reason]: 1 }, lastRefusedAt: at, recent: [request] })
  }

  /** One after the other. After a failure of the store the rest is dropped, too: these counts are lost, and the webhooks are not. */
  flush(): Promise<void> {
    if (this.#flushing !== null) return this.#flushing.then(() => this.flush())
    this.#timer?.cancel()
    this.#timer = null
    const pending = this.#pending
    this.#pending = new Map()
    this.#flushing = this.#writeAll(pending.values()).finally(() => {
      this.#flushing = null
      if (this.#pending.size > 0) this.#arm()
    })
    return this.#flushing
  }

  async #writeAll(all: Iterable<Pending>): Promise<void> {
    for (const one of all) {
      const error = await this.#write(one).catch((error: unknown) => error)
      if (error instanceof PosthornError && error.code.startsWith("store_")) return
    }
  }

  /** A flush that takes longer than the interval is waited for: what comes meanwhile is added up. */
  #arm(): void {
    if (this.#flushing !== null) return
    this.#timer ??= this.#clock.setTimer(FLUSH_MS, () => void this.flush())
  }

  #add({ id, orgId, appId }: OpenSource, one: Partial<ActivityRecord>): void {
    const pending = this.#pending.get(id)
    if (pending === undefined && this.#pending.size >= MOST_PENDING) return
    const record = merge(pending?.record ?? NO_ACTIVITY, { ...NO_ACTIVITY, ...one })
    this.#pending.set(id, { source: { id, orgId, appId }, record })
    this.#arm()
  }

  #write({ source, record }: Pending): Promise<void> {
    return readAndSave(async () => {
      const now = this.#clock.now()
      const before = await this.#store.getEntry(ACTIVITY_KIND, source.orgId, source.id, now)
      const after = merge(activityOf(before), record)
      await this.#store.saveEntryIfUnchanged(activityEntry(source, before, after, now))
      if (before === null) await this.#deleteIfOrphaned(source)
    })
  }

  /**
   * A source may be deleted while its activity is pending, also by another process. Deleting it deletes the stored activity, after which
   * an update is a conflict. Only a first write succeeds then.
   */
  async #deleteIfOrphaned({ id, orgId }: Pending["source"]): Promise<void> {
    const source = await this.#store.getEntry(SOURCE_KIND, orgId, id, this.#clock.now())
    if (source === null) await this.#store.deleteEntry(ACTIVITY_KIND, orgId, id)
  }
}
