/**
 * Keeps SQLite from copying and deleting the log when the last connection closes, also at the end of the process. After a failed sync that
 * would lose data: pages that were copied and never reached the disk count as copied, and the log that still has them is deleted.
 *
 * The guard is a read-only connection: it cannot copy the log, and while it is open no other connection is the last. It belongs to the thread
 * that opened the store, since Node ends started threads before it closes that thread's connections. `node:sqlite` has no
 * SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE.
 */
import { DatabaseSync } from "node:sqlite"

/** Keeps open guards from the garbage collector, which would close them. */
const open = new Set<DatabaseSync>()

export interface LogGuard {
  close(): void
}

/** The file must exist in WAL mode. */
export function guardLog(path: string): LogGuard {
  if (path === ":memory:") return { close() {} }
  const db = new DatabaseSync(path, { readOnly: true })
  open.add(db)
  // The first read takes a shared lock on the file until the connection closes.
  db.exec("PRAGMA cache_size = 0; PRAGMA schema_version")
  return {
    close() {
      if (open.delete(db)) db.close()
    },
  }
}
