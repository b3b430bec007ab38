/** `posthorn migrate`: moves a store from an SQLite file to PostgreSQL. */

import { column, columnRight } from "../core/text.ts"
import { isEqual, type Migrated, migrate, type TableCount } from "../migrate/migrate.ts"
import { type Flags, UsageError } from "./options.ts"
import { noProgress, progressOn } from "./progress.ts"
import { asUsageError } from "./usage.ts"

export const options = {
  from: { type: "string" },
  to: { type: "string" },
  quiet: { type: "boolean" },
} as const

export const help = `posthorn migrate --from sqlite:FILE --to postgres://USER:PASSWORD@HOST:PORT/DATABASE [--quiet]

Moves everything in an SQLite file to an empty PostgreSQL database: applications, endpoints and their
secrets, policies, messages, deliveries, attempts, tasks, idempotency keys. Stop every Posthorn on the file
first; it is only read, and stays as it is. Killed at any moment and started again, it goes on where it
was. Nothing can open the database before the move is finished. In the end the rows of every table are
counted on both sides; the exit code is 1 if they differ.

  --from    the file, as sqlite:FILE
  --to      the database; its tables are made if they are not there
  --quiet   no progress

  posthorn migrate --from sqlite:posthorn.db --to postgres://posthorn:secret@db.example.com/posthorn
  posthorn worker --store postgres://posthorn:secret@db.example.com/posthorn

The encryption key is POSTHORN_ENCRYPTION_KEY or, without that, FILE.key. A key from the file is stored in
the database; one from the environment is not, and every process must go on being given it.`

export async function run({ from, to, quiet }: Flags): Promise<number> {
  const path = pathOf(from)
  const url = urlOf(to)
  const progress = quiet ? noProgress : progressOn(process.stderr)
  let result: Migrated
  try {
    result = await migrate(path, url, (what, done, total) => progress.show(what, done, total))
  } catch (error) {
    throw asUsageError(error, { store: "--to" })
  } finally {
    progress.end()
  }
  for (const line of report(result)) console.log(line)
  const different = result.counts.filter((count) => !isEqual(count)).map(({ table }) => table)
  if (different.length === 0) return 0
  console.error(
    `posthorn: the counts differ (${different.join(", ")}): something else writes to the database; begin again with an empty one`,
  )
  return 1
}

function pathOf(from: unknown): string {
  if (typeof from !== "string") throw new UsageError("--from is missing: give it the file, as sqlite:FILE")
  const [, path] = /^sqlite:(.+)$/s.exec(from) ?? []
  if (path === undefined || path === ":memory:")
    throw new UsageError("--from must be sqlite: and the path of a file, such as sqlite:posthorn.db")
  return path
}

function urlOf(to: unknown): string {
  if (typeof to !== "string") throw new UsageError("--to is missing: give it the database, as postgres://…")
  if (!/^postgres(ql)?:\/\//.test(to))
    throw new UsageError("--to must be a URL like postgres://user:password@host:5432/database")
  return to
}

function report({ counts, finishedBefore, needsKey }: Migrated): string[] {
  if (finishedBefore !== null)
    return [`This file was moved to this database before, on ${finishedBefore.toISOString()}: nothing to do.`]
  const lines = [row("", "SQLite", "PostgreSQL"), ...counts.map(countRow)]
  if (!counts.every(isEqual)) return lines
  const key = needsKey ? " Give every process on it the same POSTHORN_ENCRYPTION_KEY." : ""
  return [...lines, `Moved. The database can be used now.${key} Do not start Posthorn on the file again.`]
}

function countRow(count: TableCount): string {
  return row(count.table, `${count.source}`, `${count.target}`) + (isEqual(count) ? "" : "   differs")
}

function row(table: string, source: string, target: string): string {
  return `${column(table, 20)}${columnRight(source, 12)}${columnRight(target, 12)}`
}
