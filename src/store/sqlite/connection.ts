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
  /** Opens only while no other connection to the file is open, and lets none in. Reads the log from its beginning. */
  readonly alone?: boolean
}

export class Connection {
  readonly path: string
  readonly db: DatabaseSync
  /** Some texts have a number in them, such as how many are fetched. */
  readonly #statements = new BoundedCache<string, StatementSync>(MOST_STATEMENTS)
  /** A descriptor of the log, where `commit` syncs it. */
  #log: number | null = null
  /** What had been written, here and by others, when it was last synced. */
  #synced: string | null = null

  constructor(path: string, { readOnly = false, alone = false }: ConnectionOptions = {}) {
    refuseOldSqlite(process.versions.sqlite ?? "0")
    this.path = path
    if (!readOnly) createPrivately(path)
    this.db = new DatabaseSync(path, { timeout: alone ? 0 : BUSY_TIMEOUT_MS, readOnly })
    // Before the first read, so that SQLite builds an index of the log of its own instead of the one that others left in the `-shm` file.
    if (alone) this.db.exec("PRAGMA locking_mode = EXCLUSIVE")
    if (!readOnly) {
      this.#waitForWal()
      // FULL syncs every commit, until `syncItself`: a send that resolved survives a power cut. `Checkpoints` copies the log: inside a
      // commit SQLite would keep to itself that the file could not be synced.
      this.db.exec(
        "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0; PRAGMA journal_size_limit = 67108864",
      )
    }
    // Larger ones are no faster: what they lack is in the system's own cache. A reader that goes through a backlog fills all that it may.
    this.db.exec(`PRAGMA cache_size = ${readOnly ? -2048 : -4096}`)
    this.db.exec("PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF")
  }

  /** On a new file that another process opens at the same moment, SQLite answers "busy" to this at once, whatever the timeout. */
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
   * Writes the log that was found once more, as it is, and syncs it. After a failed sync the system marks pages as written that are not on
   * the disk, and reads them from its cache: commits behind such a page would be synced, and lost with it at the next power cut.
   */
  rewriteLog(): void {
    // With the write lock nobody else appends to the log or begins it anew.
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

  /** As SQLite has it, behind links and URIs; empty for a database in memory. */
  #path(): string {
    return this.sql("SELECT file FROM pragma_database_list WHERE name = 'main'").get()!.file as string
  }

  /**
   * From now on `commit` syncs the log, and SQLite does not. Node's SQLite syncs with fsync, which on ext4 waits for the file system's own
   * journal as well, and with it for whatever else is on its way to the disk: single commits took 45 to 68 ms. The log has its
   * blocks already, so fdatasync waits for its data alone.
   */
  syncItself(): void {
    const file = this.#path()
    if (file === "") return
    // SQLite holds no lock on the log that closing a second descriptor of it would take away.
    this.#log = openSync(`${file}-wal`, "r+")
    this.db.exec("PRAGMA synchronous = NORMAL")
  }

  /** When this returns, the transaction is on the disk, and so is whatever of others it has seen. */
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

  /** What was written, here and by others; null where that cannot be told. What was committed is not to be refused for it. */
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

  /** For texts that a filter has put together: there are too many of them to keep each. */
  once(text: string): StatementSync {
    return this.db.prepare(text)
  }

  /** A number that changes when another connection commits. */
  dataVersion(): number {
    return (this.sql("PRAGMA data_version").get() as { data_version: number }).data_version
  }

  /** How many rows this connection has written so far, also those that were taken back. */
  totalChanges(): number {
    return (this.sql("SELECT total_changes() AS rows").get() as { rows: number }).rows
  }

  close(): void {
    this.#statements.clear()
    if (this.#log !== null) closeSync(this.#log)
    this.db.close()
  }
}

/** Before 3.51.3 a WAL file could be reset wrongly under load and lose commits. */
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
