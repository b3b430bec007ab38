/** Copies the log into the file when the writer asks, on a connection of its own. See `checkpoints.ts`. */
import { DatabaseSync } from "node:sqlite"
import type { MessagePort } from "node:worker_threads"
import { toPosthornError } from "./errors.ts"
import { markFailedSync } from "./failed-sync.ts"

/** Answer to the writer; null unless the file has failed. */
export type Copied = { readonly failed: string } | null

export class Copier {
  readonly #path: string
  readonly #writer: MessagePort
  #db: DatabaseSync | null = null
  /** The file could not be read, written or synced. */
  hasFailed = false

  constructor(path: string, writer: MessagePort) {
    this.#path = path
    this.#writer = writer
    writer.on("message", () => writer.postMessage(this.#copy()))
    writer.unref()
  }

  #copy(): Copied {
    try {
      this.#db ??= new DatabaseSync(this.#path)
      this.#db.exec("PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0; PRAGMA cache_size = -64")
      this.#db.exec("PRAGMA wal_checkpoint(PASSIVE)")
      return null
    } catch (error) {
      // A transient error: the log still has everything, and the writer copies the rest.
      if (toPosthornError(error).code !== "store_failed") return null
      this.hasFailed = true
      markFailedSync(this.#path)
      return { failed: (error as Error).message }
    }
  }

  close(): void {
    this.#writer.close()
    this.#db?.close()
  }
}
