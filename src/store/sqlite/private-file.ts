/**
 * The files of a database are for their owner alone. They are made so, not changed afterwards: in between anybody could open them. SQLite
 * gives the `-wal`, `-shm` and `-journal` files the mode that the database has.
 */
import { closeSync, openSync, readlinkSync, statSync } from "node:fs"
import { dirname, resolve } from "node:path"

const ENDINGS = ["", "-wal", "-shm", "-owner", "-failed", ".key"]

/** Makes an empty file, which SQLite takes for a new database. One that is there stays as it is. */
export function createPrivately(path: string): void {
  if (path === ":memory:") return
  try {
    closeSync(openSync(fileOf(path), "wx", 0o600))
  } catch (error) {
    // Whatever else is wrong with it, SQLite says better.
    if ((error as NodeJS.ErrnoException).code === undefined) throw error
  }
}

/** Those of the database's files that others than their owner may read or write. */
export function filesOpenToOthers(path: string): string[] {
  if (path === ":memory:" || process.platform === "win32") return []
  return ENDINGS.map((ending) => fileOf(path) + ending).filter((file) => {
    const mode = statSync(file, { throwIfNoEntry: false })?.mode ?? 0
    return (mode & 0o077) !== 0
  })
}

/** Where SQLite makes the file: behind links, also one that leads nowhere yet. */
export function fileOf(path: string): string {
  try {
    return fileOf(resolve(dirname(path), readlinkSync(path)))
  } catch {
    return path
  }
}
