/** One connection to the file, with its prepared statements. */
import { closeSync, fdatasyncSync, openSync, readSync, writeSync } from "node:fs"
import { DatabaseSync, type StatementSync } from "node:sqlite"
import { BoundedCache } from "../../core/bounded-cache.ts"
import { PosthornError } from "../../core/errors.ts"
import { fileFailed, isBusy } from "./errors.ts"
import { createPrivately } from "./private-file.ts"

const OLDEST_SQLITE = [3, 51, 3]
const BUSY_TIMEOUT_MS = 5000
const MOST_STATEMENTS = 1000
const REWRITTEN_AT_ONCE = 1 << 20

export interface ConnectionOptions {
  readonly readOnly?: boolean
  /** Fails while another connection to the file is open, and keeps others out. Reads the log from its beginning. */
  readonly alone?: boolean
}

export class Connection {
  readonly path: string
  readonly db: DatabaseSync
  /** Bounded: some texts contain a number, such as a limit. */
  readonly #statements = new BoundedCache<string, StatementSync>(MOST_STATEMENTS)
  /** Descriptor of the log that `commit` syncs. */
  #log: number | null = null
  /** State of the database at the last sync. */
  #synced: string | null = null

  constructor(path: string, { readOnly = false, alone = false }: ConnectionOptions = {}) {
    refuseOldSqlite(process.versions.sqlite ?? "0")
    this.path = path
    if (!readOnly) createPrivately(path)
    this.db = new DatabaseSync(path, { timeout: alone ? 0 : BUSY_TIMEOUT_MS, readOnly })
    // Before the first read, so that SQLite builds its own index of the log instead of using the `-shm` file.
    if (alone) this.db.exec("PRAGMA locking_mode = EXCLUSIVE")
    if (!readOnly) {
      this.#waitForWal()
      // FULL syncs every commit, until `syncItself`: a send that resolved survives a power cut. `Checkpoints` copies the log, since SQLite
      // does not report a failed sync of the file inside a commit.
      this.db.exec(
        "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0; PRAGMA journal_size_limit = 67108864",
      )
    }
    // Larger caches are no faster: the system caches the file. A reader of a backlog fills its whole cache.
    this.db.exec(`PRAGMA cache_size = ${readOnly ? -2048 : -4096}`)
    this.db.exec("PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF")
  }

  /** On a new file that two processes open at once, SQLite ignores the timeout and answers "busy". */
  #waitForWal(): void {
    for (let waitedMs = 0; ; waitedMs += 5) {
      try {
        return this.db.exec("PRAGMA journal_mode = WAL")
      } catch (error) {
        if (!isBusy(error) || waitedMs >= BUSY_TIMEOUT_MS) {
          this.db.close()
          throw error
        }
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5)
      }
    }
  }

  /**
   * Writes the existing log once more and syncs it. After a failed sync the system marks pages as written that are only in its cache:
   * commits behind such a page would be synced, and lost with it at the next power cut.
   */
  rewriteLog(): void {
    // The write lock keeps others from appending to the log or starting it over.
    this.db.exec("BEGIN IMMEDIATE")
    try {
      const file = this.#path()
      if (file === "") return
      const log = openSync(`${file}-wal`, "r+")
      try {
        const piece = new Uint8Array(REWRITTEN_AT_ONCE)
        for (let at = 0; ; at += piece.length) {
          const read = readSync(log, piece, 0, piece.length, at)
          if (read === 0) break
          writeSync(log, piece, 0, read, at)
        }
        fdatasyncSync(log)
      } catch (error) {
        throw fileFailed((error as Error).message, error)
      } finally {
        closeSync(log)
      }
    } finally {
      this.db.exec("ROLLBACK")
    }
  }

  /** After links and URIs are resolved; empty for a database in memory. */
  #path(): string {
    return this.sql("SELECT file FROM pragma_database_list WHERE name = 'main'").get()!.file as string
  }

  /**
   * From now on `commit` syncs the log instead of SQLite. Node's SQLite uses fsync, which on ext4 also waits for the file system's journal
   * and for all other writes to the disk: single commits took 45 to 68 ms. fdatasync waits for the log's data alone.
   */
  syncItself(): void {
    const file = this.#path()
    if (file === "") return
    // Closing this descriptor releases no lock: SQLite has none on the log.
    this.#log = openSync(`${file}-wal`, "r+")
    this.db.exec("PRAGMA synchronous = NORMAL")
  }

  /** Returns when the transaction, and every commit that it has seen, is on the disk. */
  commit(): void {
    this.sql("COMMIT").run()
    if (this.#log === null) return
    const seen = this.#seen()
    if (seen !== null && seen === this.#synced) return
    try {
      fdatasyncSync(this.#log)
    } catch (error) {
      throw fileFailed((error as Error).message, error)
    }
    this.#synced = seen
  }

  /** State of the database; null when it cannot be read, which must not reject a committed transaction. */
  #seen(): string | null {
    try {
      return `${this.totalChanges()} ${this.dataVersion()}`
    } catch {
      return null
    }
  }

  /** Prepares each text once. Shared texts number their parameters as PostgreSQL does. */
  sql(text: string): StatementSync {
    let statement = this.#statements.get(text)
    if (statement === undefined) {
      statement = this.db.prepare(text.replace(/\$(?=\d)/g, "?"))
      this.#statements.set(text, statement)
    }
    return statement
  }

  /** For texts that depend on a filter: there are too many to cache. */
  once(text: string): StatementSync {
    return this.db.prepare(text)
  }

  /** A number that changes when another connection commits. */
  dataVersion(): number {
    return (this.sql("PRAGMA data_version").get() as { data_version: number }).data_version
  }

  /** Rows that this connection has written, including those that were rolled back. */
  totalChanges(): number {
    return (this.sql("SELECT total_changes() AS rows").get() as { rows: number }).rows
  }

  close(): void {
    this.#statements.clear()
    if (this.#log !== null) closeSync(this.#log)
    this.db.close()
  }
}

/** Before 3.51.3 SQLite could reset the log wrongly under load and lose commits. */
export function refuseOldSqlite(version: string): void {
  const parts = version.split(".").map(Number)
  for (const [i, least] of OLDEST_SQLITE.entries()) {
    const part = parts[i] ?? 0
    if (part > least) return
    if (part < least) {
      const text = `this Node brings SQLite ${version}; Posthorn needs ${OLDEST_SQLITE.join(".")} or newer: update Node`
      throw new PosthornError("store_incompatible", text)
    }
  }
}
