/**
 * Copies the write-ahead log into the file on the lookup thread. SQLite would do it inside a commit, every 32 MB: every call waited 30 ms,
 * and it took a fifth of the writer's time. The writer copies only the pages that were written meanwhile and syncs the file, which lets the
 * log start over. A thread of its own would take 11 MB.
 *
 *   writer    … commit, commit (log is long) ──► commit, commit, commit ──► commit (copied) ► the rest ──► commit (log starts over) …
 *   copier                     └─ copies the log so far ────────────────────┘
 */
import { type MessagePort, receiveMessageOnPort } from "node:worker_threads"
import type { Connection } from "./connection.ts"
import type { Copied } from "./copier.ts"
import { fileFailed, toPosthornError } from "./errors.ts"
import { hasFailedSync } from "./failed-sync.ts"

/** 32 MB: a page that changes often is copied once (a delivery took the writer 94 µs with 16 MB, and 112 to 207 with SQLite's 4 MB). */
const LONG_LOG_PAGES = 8000
/** The writer copies no more than this; a longer rest goes to the copier again. */
const SMALL_REST_PAGES = 400
/** A reader of an old snapshot keeps later pages from being copied. */
const MOST_ROUNDS = 3
/** Multiple of a long log from which on the writer does not wait for the copier. */
const TOO_LONG = 4

export class Checkpoints {
  readonly #connection: Connection
  readonly #copier: MessagePort
  readonly #longLogPages: number
  #isCopying = false
  /** Rounds of the copier for this log. */
  #rounds = 0
  /** Length of the log when it was last copied. */
  #donePages = 0

  /** `copier` is the other end of a `Copier`'s port. */
  constructor(connection: Connection, copier: MessagePort, longLogPages = LONG_LOG_PAGES) {
    this.#connection = connection
    this.#copier = copier
    this.#longLogPages = longLogPages
  }

  /**
   * Called between transactions. Throws when the file has failed: the system then drops pages that it could not write, and a later sync that
   * succeeds would let the log start over without them. A copy that was refused (busy, disk full) is tried again when the log has grown.
   */
  committed(): void {
    if (this.#isCopying) this.#hear(receiveMessageOnPort(this.#copier)?.message)
    try {
      this.#goOn()
    } catch (error) {
      const told = toPosthornError(error)
      if (told.code === "store_failed") throw told
    }
  }

  #hear(copied: Copied | undefined): void {
    if (copied === undefined) return
    this.#isCopying = false
    if (copied !== null) throw fileFailed(copied.failed, undefined)
  }

  #goOn(): void {
    const { log, checkpointed } = this.#ask("NOOP")
    if (log < this.#donePages) this.#donePages = 0
    const pages = log - this.#donePages
    if (this.#isCopying && pages < TOO_LONG * this.#longLogPages) return
    if (this.#rounds === 0 && pages < this.#longLogPages) return
    // After a failed sync in any process the log must stay as it is.
    if (hasFailedSync(this.#connection.path)) throw fileFailed("a sync failed in another process", undefined)
    const isSmall = this.#rounds > 0 && log - checkpointed <= SMALL_REST_PAGES
    if (!this.#isCopying && !isSmall && this.#rounds < MOST_ROUNDS) return this.#copy()
    this.#rounds = 0
    this.#donePages = log
    this.#ask("PASSIVE")
  }

  /** NOOP only counts the pages of the log and those that are copied. */
  #ask(mode: "NOOP" | "PASSIVE"): { readonly log: number; readonly checkpointed: number } {
    const row = this.#connection.sql(`PRAGMA wal_checkpoint(${mode})`).get()
    return row as { log: number; checkpointed: number }
  }

  #copy(): void {
    this.#rounds++
    this.#isCopying = true
    this.#copier.postMessage("copy")
  }
}
