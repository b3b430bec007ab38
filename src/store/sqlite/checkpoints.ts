/**
 * Brings the log into the file beside the writing. SQLite does it inside a commit, every 32 MB: 30 ms for which every send and every
 * outcome waited, and a fifth of the writing thread's time. Here the thread that looks things up copies, and the writer only the rest that
 * came meanwhile, which is what lets it begin the log anew:
 *
 *   writer    … commit, commit (log is long) ──► commit, commit, commit ──► commit (copied) ► the rest ──► commit (log begins anew) …
 *   copier                     └─ copies what there was ────────────────────┘
 *
 * A thread for it alone would take 11 MB.
 */
import { type MessagePort, receiveMessageOnPort } from "node:worker_threads"
import { type Connection, LONG_LOG_PAGES } from "./connection.ts"

/** No more than this is copied by the writer, in a few milliseconds with the sync; more goes to the other thread once more. */
const SMALL_REST_PAGES = 400
/** A reader that looks at an old state keeps all behind it from being copied. */
const MOST_ROUNDS = 3

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
    // Where the copier cannot do its work, the commit does it in the end.
    connection.db.exec(`PRAGMA wal_autocheckpoint = ${4 * longLogPages}`)
  }

  /** Between two transactions. */
  committed(): void {
    if (this.#isCopying && receiveMessageOnPort(this.#copier) === undefined) return
    this.#isCopying = false
    try {
      this.#goOn()
    } catch {
      // No matter of those that have committed: the log has everything, and it is tried again when there is more.
    }
  }

  #goOn(): void {
    const { log, checkpointed } = this.#ask("NOOP")
    if (log < this.#donePages) this.#donePages = 0
    if (this.#rounds === 0 && log - this.#donePages < this.#longLogPages) return
    const isSmall = this.#rounds > 0 && log - checkpointed <= SMALL_REST_PAGES
    if (!isSmall && this.#rounds < MOST_ROUNDS) return this.#copy()
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
