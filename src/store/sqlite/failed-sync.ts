/**
 * A file beside the database marks a failed sync. Pages that SQLite counts as copied may then be in the log alone. The count is in the `-shm`
 * file, which exists while any process has the database open. So the next opening needs the database to itself, counts from zero and
 * copies the whole log again. The mark need not survive a power cut, which ends every process.
 */
import { closeSync, existsSync, openSync, rmSync } from "node:fs"
import { PosthornError } from "../../core/errors.ts"
import { Connection } from "./connection.ts"
import { fileFailed, isBusy } from "./errors.ts"
import { fileOf } from "./private-file.ts"

export function markFailedSync(path: string): void {
  if (path === ":memory:") return
  try {
    closeSync(openSync(markOf(path), "w", 0o600))
  } catch {
    // Report the failure of the database.
  }
}

export function hasFailedSync(path: string): boolean {
  return path !== ":memory:" && existsSync(markOf(path))
}

/** Runs before a connection for writes opens. Throws while another process has the database open. */
export function recoverFromFailedSync(path: string): void {
  if (!hasFailedSync(path)) return
  const connection = openAlone(path)
  if (connection === null) return
  try {
    connection.rewriteLog()
    const { busy } = connection.sql("PRAGMA wal_checkpoint(TRUNCATE)").get() as { busy: number }
    if (busy !== 0) throw fileFailed("the log could not be copied", undefined)
    rmSync(markOf(path), { force: true })
  } finally {
    connection.close()
  }
}

/** Null when another process has recovered the file and has it open. */
function openAlone(path: string): Connection | null {
  try {
    return new Connection(path, { alone: true })
  } catch (error) {
    if (!isBusy(error)) throw error
    if (!hasFailedSync(path)) return null
    throw new PosthornError(
      "store_in_use",
      `a sync of ${path} failed, and another process still has the file open: end every process that uses it, then start again; the first start recovers from the log`,
      { field: "store", cause: error },
    )
  }
}

function markOf(path: string): string {
  return `${fileOf(path)}-failed`
}
