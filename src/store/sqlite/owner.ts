/**
 * One process owns the file: an exclusive lock on a file beside it, which the operating system drops when the process ends, however
 * it ends. The database itself stays open to readers and operators.
 */
import { hostname } from "node:os"
import { DatabaseSync } from "node:sqlite"
import { PosthornError } from "../../core/errors.ts"
import type { Connection } from "./connection.ts"
import { isBusy } from "./errors.ts"

export interface Ownership {
  release(): void
}

export function takeOwnership(path: string, connection: Connection): Ownership {
  if (path === ":memory:") return { release() {} }
  const ownership = lockOut(path, connection)
  connection.db
    .prepare("INSERT INTO meta VALUES ('owner', ?) ON CONFLICT DO UPDATE SET value = excluded.value")
    .run(`process ${process.pid} on ${hostname()}`)
  return ownership
}

/** Keeps every process that would deliver from the file away from it, without writing into it. */
export function lockOut(path: string, connection: Connection): Ownership {
  const lock = new DatabaseSync(`${path}-owner`)
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
