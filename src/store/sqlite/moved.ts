/**
 * Marks a file that was moved to PostgreSQL. Its waiting deliveries are in both stores and would be sent twice; new messages would be missing
 * in PostgreSQL. So the file opens only on demand.
 */
import { PosthornError } from "../../core/errors.ts"
import type { Connection } from "./connection.ts"

interface Move {
  /** The database's URL, without its password. */
  readonly to: string
  readonly at: string
}

export function markMoved({ db }: Connection, to: string): void {
  const move: Move = { to, at: new Date().toISOString() }
  db.prepare("INSERT INTO meta VALUES ('moved', ?) ON CONFLICT DO UPDATE SET value = excluded.value").run(
    JSON.stringify(move),
  )
}

export function refuseMoved(path: string, { db }: Connection): void {
  const row = db.prepare("SELECT value FROM meta WHERE key = 'moved'").get()
  if (row === undefined) return
  const { to, at } = JSON.parse(row.value as string) as Move
  throw new PosthornError(
    "store_moved",
    `${path} was moved to ${to} on ${at}: use that database; posthorn serve --force, posthorn worker --force and the option openMoved open the file all the same, and what waits in both is sent twice`,
    { field: "store" },
  )
}
