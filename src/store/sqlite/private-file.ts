/**
 * Only their owner may read the files of a database. They are created with that mode, since others could open them before a later chmod.
 * SQLite gives the `-wal`, `-shm` and `-journal` files the mode of the database.
 */
import { closeSync, openSync, readlinkSync, statSync } from "node:fs"
import { dirname, resolve } from "node:path"

const ENDINGS = ["", "-wal", "-shm", "-owner", "-failed", ".key"]

/** Creates an empty file, which SQLite takes for a new database. An existing file stays as it is. */
export function createPrivately(path: string): void {
  if (path === ":memory:") return
  try {
    closeSync(openSync(fileOf(path), "wx", 0o600))
  } catch (error) {
    // SQLite reports other problems better.
    if ((error as NodeJS.ErrnoException).code === undefined) throw error
  }
}

/** Files of the database that others may read or write. */
export function filesOpenToOthers(path: string): string[] {
  if (path === ":memory:" || process.platform === "win32") return []
  return ENDINGS.map((ending) => fileOf(path) + ending).filter((file) => {
    const mode = statSync(file, { throwIfNoEntry: false })?.mode ?? 0
    return (mode & 0o077) !== 0
  })
}

/** Where SQLite creates the file: after links, also to a file that does not exist yet. */
export function fileOf(path: string): string {
  try {
    return fileOf(resolve(dirname(path), readlinkSync(path)))
  } catch {
    return path
  }
}
