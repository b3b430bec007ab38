/**
 * Keeps SQLite from copying and deleting the log when a connection closes. SQLite does so when the last connection of all closes, also when
 * the process ends and Node closes what is open. After a failed sync that loses data: pages that were copied before and never reached the
 * disk count as copied, and the log that still has them is deleted.
 *
 * The guard is a connection that only reads, so it cannot copy the log itself, and while it is open no other one is the last. It belongs to
 * the thread that opened the store: Node ends the threads that a thread has started before it closes that thread's own connections, however
 * the process ends. `node:sqlite` has no SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE.
 */
import { DatabaseSync } from "node:sqlite"

/** Referenced for as long as they are open: the garbage collector would close them. */
const open = new Set<DatabaseSync>()

export interface LogGuard {
  close(): void
}

/** The file is there and in WAL mode. */
export function guardLog(path: string): LogGuard {
  if (path === ":memory:") return { close() {} }
  const db = new DatabaseSync(path, { readOnly: true })
  open.add(db)
  // From its first read on a connection holds a shared lock on the file, until it closes.
  db.exec("PRAGMA cache_size = 0; PRAGMA schema_version")
  return {
    close() {
      if (open.delete(db)) db.close()
    },
  }
}
