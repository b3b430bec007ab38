/**
 * Brings the log into the file beside the writing. SQLite does it inside a commit, every 32 MB: 30 ms for which every send and every
 * outcome waited, and a fifth of the writing thread's time. Here the thread that looks things up copies, and the writer only the rest that
 * came meanwhile, with the sync of the file: that is what lets it begin the log anew.
 *
 *   writer    … commit, commit (log is long) ──► commit, commit, commit ──► commit (copied) ► the rest ──► commit (log begins anew) …
 *   copier                     └─ copies what there was ────────────────────┘
 *
 * A thread for it alone would take 11 MB.
 */
import { type MessagePort, receiveMessageOnPort } from "node:worker_threads"
import type { Connection } from "./connection.ts"
import type { Copied } from "./copier.ts"
import { fileFailed, toPosthornError } from "./errors.ts"
import { hasFailedSync } from "./failed-sync.ts"

/**
 * 32 MB: a page that is changed often is then written back once (a delivery took the writing thread 94 µs with 16 MB, with SQLite's 4 MB
 * 112 to 207).
 */
const LONG_LOG_PAGES = 8000
/** No more than this is left to the writer; more goes to the other thread once more. */
const SMALL_REST_PAGES = 400
/** A reader that looks at an old state keeps all behind it from being copied. */
const MOST_ROUNDS = 3
/** Of what is a long log: then the writer does not wait for the copier any more. */
const TOO_LONG = 4

export class Checkpoints {
  readonly #connection: Connection
  readonly #copier: MessagePort
  readonly #longLogPages: number
  #isCopying = false
  /** How often the copier was asked for this log. */
  #rounds = 0
  /** How long the log was when all that could be copied was. */
  #donePages = 0

  /** `copier` is the other end of a `Copier`'s port. */
  constructor(connection: Connection, copier: MessagePort, longLogPages = LONG_LOG_PAGES) {
    this.#connection = connection
    this.#copier = copier
    this.#longLogPages = longLogPages
  }

  /**
   * Between two transactions. Throws when the file has failed: the system forgets then what it could not write, and a later sync that
   * succeeds would let the log begin anew without it. What there is no room or no turn for is tried again when the log has grown.
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
    // The log must stay as it is then, whichever process met the failure.
    if (hasFailedSync(this.#connection.path)) throw fileFailed("a sync failed in another process", undefined)
    const isSmall = this.#rounds > 0 && log - checkpointed <= SMALL_REST_PAGES
    if (!this.#isCopying && !isSmall && this.#rounds < MOST_ROUNDS) return this.#copy()
    this.#rounds = 0
    this.#donePages = log
    this.#ask("PASSIVE")
  }

  /** NOOP only tells how many pages the log has, and how many of them are copied. */
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
