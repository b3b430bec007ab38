/**
 * One process owns the file: it holds an exclusive lock on a file beside it, which the operating system releases when the process ends. The
 * database itself stays open to readers and operators.
 */
import { existsSync } from "node:fs"
import { hostname } from "node:os"
import { DatabaseSync } from "node:sqlite"
import { PosthornError } from "../../core/errors.ts"
import type { Connection } from "./connection.ts"
import { isBusy } from "./errors.ts"
import { createPrivately } from "./private-file.ts"

export interface Ownership {
  release(): void
}

export function selfName(): string {
  return `process ${process.pid} on ${hostname()}`
}

/** Whether a process owns the file: then the file beside it cannot be read. */
export function isOwned(path: string): boolean {
  let lock: DatabaseSync | null = null
  try {
    lock = new DatabaseSync(`${path}-owner`, { readOnly: true })
    lock.prepare("SELECT count(*) FROM sqlite_schema").get()
    return false
  } catch (error) {
    if (isBusy(error)) return true
    if (!existsSync(`${path}-owner`)) return false
    throw error
  } finally {
    lock?.close()
  }
}

/** `isOwned` holds the lock for microseconds; a start at that moment waits. */
const PATIENCE_MS = 50

export function takeOwnership(path: string, connection: Connection): Ownership {
  if (path === ":memory:") return { release() {} }
  const ownership = lockOut(path, connection)
  connection.db
    .prepare("INSERT INTO meta VALUES ('owner', ?) ON CONFLICT DO UPDATE SET value = excluded.value")
    .run(selfName())
  return ownership
}

/** Keeps other processes from owning the file, without writing to it. */
export function lockOut(path: string, connection: Connection): Ownership {
  createPrivately(`${path}-owner`)
  const lock = new DatabaseSync(`${path}-owner`, { timeout: PATIENCE_MS })
  try {
    lock.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE")
  } catch (error) {
    lock.close()
    if (!isBusy(error)) throw error
    const row = connection.db.prepare("SELECT value FROM meta WHERE key = 'owner'").get() as
      | { value: string }
      | undefined
    throw new PosthornError(
      "store_in_use",
      `${path} is in use by another Posthorn (${row?.value ?? "starting"}): stop it, or give this one a file of its own`,
    )
  }
  return { release: () => lock.close() }
}
