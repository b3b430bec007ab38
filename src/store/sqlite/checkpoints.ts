/**
 * Brings the log into the file beside the writing. SQLite does it inside a commit, every 32 MB: 30 ms for which every send and every
 * outcome waited, and a fifth of the writing thread's time. Here another thread copies, and the writer only the rest that came
 * meanwhile, which is what lets it begin the log anew:
 *
 *   writer    … commit, commit (log is long) ──► commit, commit, commit ──► commit (copied) ► the rest ──► commit (log begins anew) …
 *   copier                     └─ copies what there was, synced ────────────┘
 */
import { Worker } from "node:worker_threads"
import { type Connection, LONG_LOG_PAGES } from "./connection.ts"

/** Less than this is copied by the writer, in about a millisecond; more goes to the other thread once more. */
const SMALL_REST_PAGES = 400
/** A reader that looks at an old state keeps all behind it from being copied. */
const MOST_ROUNDS = 3

/** Whose turn it is, in memory that both threads see. */
export const TURN = { writers: 0, copiers: 1, end: 2, ended: 3 } as const
const LONGEST_END_MS = 5000

export class Checkpoints {
  readonly #connection: Connection
  readonly #path: string
  readonly #longLogPages: number
  readonly #turn = new Int32Array(new SharedArrayBuffer(4))
  #copier: Worker | null = null
  /** How often the copier was given its turn for this log. */
  #rounds = 0
  /** How long the log was when all that could be copied was. */
  #donePages = 0

  constructor(connection: Connection, path: string, longLogPages = LONG_LOG_PAGES) {
    this.#connection = connection
    this.#path = path
    this.#longLogPages = longLogPages
    // Where the copier cannot do its work, the commit does it in the end.
    connection.db.exec(`PRAGMA wal_autocheckpoint = ${4 * longLogPages}`)
  }

  /** Between two transactions. */
  committed(): void {
    if (Atomics.load(this.#turn, 0) !== TURN.writers) return
    const { log, checkpointed } = this.#ask("NOOP")
    if (log < this.#donePages) this.#donePages = 0
    if (this.#rounds === 0 && log - this.#donePages < this.#longLogPages) return
    const isSmall = this.#rounds > 0 && log - checkpointed <= SMALL_REST_PAGES
    if (!isSmall && this.#rounds < MOST_ROUNDS) return this.#copy()
    this.#rounds = 0
    this.#donePages = this.#ask("PASSIVE").log
  }

  /** NOOP only tells how many pages the log has, and how many of them are copied. */
  #ask(mode: "NOOP" | "PASSIVE"): { readonly log: number; readonly checkpointed: number } {
    const row = this.#connection.sql(`PRAGMA wal_checkpoint(${mode})`).get()
    return row as { log: number; checkpointed: number }
  }

  #copy(): void {
    this.#rounds++
    this.#copier ??= this.#startCopier()
    this.#give(TURN.copiers)
  }

  #startCopier(): Worker {
    const file = import.meta.url.endsWith(".ts") ? "./copier.ts" : "./copier.js"
    const copier = new Worker(new URL(file, import.meta.url), {
      workerData: { path: this.#path, turn: this.#turn },
      name: "posthorn-copier",
    })
    // The commits do its work then.
    return copier.on("error", () => Atomics.store(this.#turn, 0, TURN.ended))
  }

  #give(turn: number): void {
    Atomics.store(this.#turn, 0, turn)
    Atomics.notify(this.#turn, 0)
  }

  /** Before the writer's connection, which is to be the last: that one brings all that is left into the file. */
  close(): void {
    if (this.#copier === null) return
    if (Atomics.load(this.#turn, 0) !== TURN.ended) this.#give(TURN.end)
    Atomics.wait(this.#turn, 0, TURN.end, LONGEST_END_MS)
    void this.#copier.terminate()
  }
}
