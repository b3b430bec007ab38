/** One connection to the file, with its prepared statements. */
import { DatabaseSync, type StatementSync } from "node:sqlite"
import { PosthornError } from "../../core/errors.ts"
import { isBusy } from "./errors.ts"

const OLDEST_SQLITE = [3, 51, 3]
const BUSY_TIMEOUT_MS = 5000
const MOST_STATEMENTS = 1000

export class Connection {
  readonly db: DatabaseSync
  readonly #statements = new Map<string, StatementSync>()

  constructor(path: string, { readOnly = false }: { readOnly?: boolean } = {}) {
    refuseOldSqlite(process.versions.sqlite ?? "0")
    this.db = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS, readOnly })
    if (!readOnly) {
      this.#waitForWal()
      // FULL syncs every commit: a send that resolved survives a power cut. The log goes into the file every 32 MB: a page that is
      // changed often is then written back once (a delivery took this thread 94 µs with 16 MB, with SQLite's 4 MB 112 to 207), and less
      // often does anything wait behind such a write (retry.settle.p99ms was 9 to 20 in four runs, with 16 MB 8 to 51 in eight).
      this.db.exec(
        "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 8000; PRAGMA journal_size_limit = 67108864",
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
        if (!isBusy(error) || waitedMs >= BUSY_TIMEOUT_MS) throw error
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5)
      }
    }
  }

  /** Prepares each text once. */
  sql(text: string): StatementSync {
    let statement = this.#statements.get(text)
    if (statement === undefined) {
      statement = this.db.prepare(text)
      // Some have a number in them, such as how many are fetched.
      if (this.#statements.size >= MOST_STATEMENTS) this.#statements.clear()
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
