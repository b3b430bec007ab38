/** Copies the log into the file when the writer asks for it, on a connection of its own. See `checkpoints.ts`. */
import { DatabaseSync } from "node:sqlite"
import type { MessagePort } from "node:worker_threads"

export class Copier {
  readonly #path: string
  #db: DatabaseSync | null = null

  constructor(path: string, writer: MessagePort) {
    this.#path = path
    writer.on("message", () => {
      this.#copy()
      writer.postMessage("copied")
    })
    // It keeps no thread alive.
    writer.unref()
  }

  #copy(): void {
    try {
      this.#db ??= open(this.#path)
      this.#db.exec("PRAGMA wal_checkpoint(PASSIVE)")
    } catch {
      // As SQLite does with its own: the log has everything, and what is wrong with the file shows in a commit.
    }
  }

  close(): void {
    this.#db?.close()
    this.#db = null
  }
}

function open(path: string): DatabaseSync {
  const db = new DatabaseSync(path)
  db.exec("PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0; PRAGMA cache_size = -64")
  return db
}
