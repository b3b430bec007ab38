/**
 * Alerts about the store and its disk. They must work when the store does not: their state is in the memory of the leader, and
 * notifications are sent directly, with the rules and channels that were last read. While the store works, the leader saves a copy of
 * the state, and its successor continues from it.
 */
import type { Clock } from "../core/clock.ts"
import { describe, PosthornError } from "../core/errors.ts"
import type { Ids } from "../core/ids.ts"
import { bytesText, durationText, percentText } from "../core/wording.ts"
import type { Logger } from "../observe/log.ts"
import { type Alert, advance, endAll, forget } from "./alert-state.ts"
import type { StoredSilence } from "./alert-store.ts"
import { EMPTY_LOCAL, type LocalState } from "./board.ts"
import { DirectOutbox } from "./direct-outbox.ts"
import type { Subject } from "./evaluate.ts"
import type { NotifiedChannel, Notifier } from "./notifier.ts"
import { type Book, plan } from "./plan.ts"
import type { RuleId, RuleSettings } from "./rules.ts"
import type { AlertSettings } from "./settings.ts"

/** What an evaluation reads beside the board. */
export interface Surroundings {
  readonly rules: { readonly [id in RuleId]: RuleSettings }
  readonly settings: AlertSettings
  readonly silences: readonly StoredSilence[]
  readonly channels: readonly NotifiedChannel[]
}

export interface DiskSpace {
  readonly freeBytes: number
  readonly totalBytes: number
}

export interface LocalParts {
  readonly notifier: Notifier
  readonly clock: Clock
  readonly ids: Ids
  readonly logger: Logger
  /** The same in all processes that share a store, and in no others. */
  readonly deployment: string
  /** The space of the store's volume; null: the store is on another machine or in memory. */
  readonly diskSpace: (() => Promise<DiskSpace>) | null
}

type LocalRule = "store-unavailable" | "disk-space"

export class LocalAlerts {
  readonly #parts: LocalParts
  #surroundings: Surroundings | null = null
  #book: Book = EMPTY_LOCAL.book
  /** The copy in the store; null: this process is not the leader. */
  #saved: LocalState | null = null
  readonly #outbox: DirectOutbox
  #failure: { readonly since: number; readonly error: string } | null = null
  #isReadable = false
  #running: Promise<void> = Promise.resolve()
  #isClosed = false

  constructor(parts: LocalParts) {
    this.#parts = parts
    this.#outbox = new DirectOutbox(parts)
  }

  get alerts(): readonly Alert[] {
    return this.#book.alerts
  }

  get #state(): LocalState {
    return { book: this.#book, outbox: this.#outbox.waiting }
  }

  /** What replaces the copy in the store: that copy itself if another process has written it meanwhile. */
  merge(stored: LocalState): LocalState {
    this.#yieldTo(stored)
    if (this.#saved === null) return stored
    this.#book = withAcknowledgements(this.#book, stored.book)
    return this.#state
  }

  /** Whether the copy in the store is behind and can be written. */
  get isUnsaved(): boolean {
    if (this.#saved === null || !this.#isReadable) return false
    return JSON.stringify(this.#saved) !== JSON.stringify(this.#state)
  }

  /** As they were last read; null: this process has not been the leader. */
  get surroundings(): Surroundings | null {
    return this.#surroundings
  }

  /** Replaces an alert of this process with a change of it. False: it is not one of them. */
  change(id: string, change: (alert: Alert) => Alert): boolean {
    const alerts = this.#book.alerts.map((alert) => (alert.id === id ? change(alert) : alert))
    const isFound = alerts.some((alert) => alert.id === id)
    this.#book = { ...this.#book, alerts }
    return isFound
  }

  /**
   * On the leader. `saved` is the copy in the store. `failure`: the store could be read, but something else of an evaluation
   * failed, so that the other rules are not evaluated.
   */
  async storeRead(surroundings: Surroundings, saved: LocalState, failure: Error | null): Promise<void> {
    this.#yieldTo(saved)
    this.#surroundings = surroundings
    this.#isReadable = true
    this.#setFailure(failure)
    if (this.#saved === null) this.#continue(saved)
    else this.#book = withAcknowledgements(this.#book, saved.book)
    this.#saved = saved
    await this.#run()
  }

  /** The copy in the store has become this one. */
  wasSaved(saved: LocalState): void {
    if (this.#saved !== null) this.#saved = saved
  }

  async storeFailed(error: Error): Promise<void> {
    this.#isReadable = false
    this.#setFailure(error)
    await this.#run()
  }

  #setFailure(error: Error | null): void {
    const since = this.#failure?.since ?? this.#parts.clock.now()
    this.#failure = error && { since, error: describe(error) }
  }

  /** Another process evaluates now, so the store works. That process continues the saved alerts; the others end here. */
  stoodDown(): void {
    const saved = this.#saved ?? EMPTY_LOCAL
    this.#saved = null
    if (this.#isClosed) return
    this.#failure = null
    this.#outbox.leave(new Set(saved.outbox.map(({ key }) => key)))
    const alerts = this.#book.alerts.filter((alert) => !isContinued(alert, saved.book))
    const now = this.#parts.clock.now()
    const ended = (["store-unavailable", "disk-space"] as const).reduce(
      (some: readonly Alert[], rule) => endAll(some, rule, now, "another process evaluates the alerts now"),
      alerts,
    )
    this.#book = { ...this.#book, alerts: ended }
    void this.#queue(async () => this.#tell(now))
  }

  /**
   * No notification about an alert that ends with the process: a successor may continue it. Waits for notifications in flight at most
   * for `limitMs`.
   */
  async close(limitMs: number): Promise<void> {
    this.#isClosed = true
    await this.#running
    await this.#outbox.close(limitMs)
  }

  /** @internal For tests: no notification is on its way any more. */
  async settled(): Promise<void> {
    await this.#running
    await this.#outbox.settled()
  }

  /** Another process has led without our notice, and has written the copy. */
  #yieldTo(stored: LocalState): void {
    if (this.#saved !== null && !isSameCopy(stored, this.#saved)) this.stoodDown()
  }

  /** A predecessor's alerts and notifications, beside those that this process ended when it last stood down. */
  #continue({ book, outbox }: LocalState): void {
    const known = new Set(book.alerts.map(({ id }) => id))
    const own = this.#book.alerts.filter(({ id }) => !known.has(id))
    this.#book = {
      alerts: [...book.alerts, ...own],
      groups: { ...this.#book.groups, ...book.groups },
      channels: { ...this.#book.channels, ...book.channels },
    }
    this.#outbox.restore(outbox)
  }

  #run(): Promise<void> {
    return this.#queue(async () => {
      const now = this.#parts.clock.now()
      if (this.#surroundings === null || this.#isClosed) return
      this.#advance("store-unavailable", this.#storeSubjects(now), "the store works again", now)
      if (this.#parts.diskSpace !== null)
        this.#advance("disk-space", await this.#diskSubjects(now), "there is enough space again", now)
      this.#tell(now)
    })
  }

  #queue(work: () => Promise<void>): Promise<void> {
    this.#running = this.#running.then(work).catch((error) => {
      this.#parts.logger.error(
        { err: error },
        `Alerts about the store could not be evaluated: ${describe(error)}`,
      )
    })
    return this.#running
  }

  #advance(rule: LocalRule, subjects: Subject[] | null, ending: string, now: number): void {
    const { enabled } = this.#surroundings!.rules[rule]
    const newId = () => this.#parts.ids.make("alert", now)
    const alerts = enabled
      ? advance(this.#book.alerts, {
          rule,
          subjects: subjects ?? [],
          isComplete: subjects !== null,
          ending: () => ending,
          now,
          newId,
        })
      : endAll(this.#book.alerts, rule, now)
    this.#book = { ...this.#book, alerts }
  }

  #storeSubjects(now: number): Subject[] {
    const limitMs = this.#surroundings!.rules["store-unavailable"].thresholds.seconds! * 1000
    if (this.#failure === null || now - this.#failure.since < limitMs) return []
    const { since, error } = this.#failure
    return [
      { key: "", name: "the store", since, detail: `failing for ${durationText(now - since)}: ${error}` },
    ]
  }

  /** Null: the space is not known. */
  async #diskSubjects(now: number): Promise<Subject[] | null> {
    let space: DiskSpace
    try {
      space = await this.#parts.diskSpace!()
    } catch (error) {
      this.#parts.logger.warn(
        { err: error },
        `The free space of the store's disk is not known: ${describe(error)}`,
      )
      return null
    }
    const { freeBytes, totalBytes } = space
    const { share, bytes } = this.#surroundings!.rules["disk-space"].thresholds
    if (freeBytes >= bytes! && freeBytes >= share! * totalBytes) return []
    const detail = `${bytesText(freeBytes)} (${percentText(freeBytes / totalBytes)}) of ${bytesText(totalBytes)} are free`
    return [{ key: "", name: "the disk of the store", since: now, detail }]
  }

  #tell(now: number): void {
    if (this.#surroundings === null) return
    const { settings } = this.#surroundings
    const { book, outgoing } = plan(this.#book, {
      ...this.#surroundings,
      repeatMs: settings.repeatHours * 3_600_000,
      perHour: settings.notificationsPerHour,
      now,
      newKey: () => this.#parts.ids.make("alert", now),
      // An alert that could not be saved is forgotten when its process ends: with a constant key the next process continues its group.
      newGroupKey: ({ rule }) => `${rule}:${this.#parts.deployment}`,
    })
    this.#book = { ...book, alerts: forget(book.alerts, now) }
    this.#outbox.add(outgoing)
  }
}

/** Another process acknowledges an alert in the store. */
function withAcknowledgements(book: Book, saved: Book): Book {
  const acknowledged = new Map(saved.alerts.map((alert) => [alert.id, alert.acknowledged]))
  const alerts = book.alerts.map((alert) =>
    alert.acknowledged === null && acknowledged.get(alert.id)
      ? { ...alert, acknowledged: acknowledged.get(alert.id)! }
      : alert,
  )
  return { ...book, alerts }
}

/** Whether they differ at most in acknowledgements, which any process writes. */
function isSameCopy(one: LocalState, other: LocalState): boolean {
  const text = ({ book, outbox }: LocalState) =>
    JSON.stringify([
      { ...book, alerts: book.alerts.map((alert) => ({ ...alert, acknowledged: null })) },
      outbox,
    ])
  return text(one) === text(other)
}

/** Whether the next leader finds the alert in the store, with all channels that wait for its end. */
function isContinued({ id, told }: Alert, saved: Book): boolean {
  const copy = saved.alerts.find((alert) => alert.id === id)
  return copy !== undefined && Object.keys(told).every((channel) => copy.told[channel] !== undefined)
}

export function isStoreError(error: unknown): boolean {
  return error instanceof PosthornError && error.code.startsWith("store_")
}
