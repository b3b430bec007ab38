/** `posthorn migrate`: moves a store from an SQLite file to PostgreSQL. */

import { column, columnRight } from "../core/text.ts"
import type { TableResult } from "../migrate/compare.ts"
import { type Migrated, migrate } from "../migrate/migrate.ts"
import type { Flags } from "./parse-flags.ts"
import { noProgress, progressOn } from "./progress.ts"
import { configFor, flagOptions } from "./settings.ts"
import { asUsageError, UsageError } from "./usage-error.ts"

export const options = {
  from: { type: "string" },
  to: { type: "string" },
  quiet: { type: "boolean" },
  force: { type: "boolean" },
  ...flagOptions(["schema"]),
} as const

export const help = `posthorn migrate --from sqlite:FILE --to postgres://USER:PASSWORD@HOST:PORT/DATABASE [--schema NAME] [--quiet] [--force]

Moves everything in an SQLite file to an empty PostgreSQL database: applications, endpoints and their
secrets, policies, keys, messages, deliveries, attempts, tasks, idempotency keys. Stop every Posthorn on the
file first. Killed at any moment and started again, it goes on where it was. Nothing can open the database
before the move is finished. In the end every column of every row is compared on both sides; if one differs
the exit code is 1, and the file stays in use. If not, the file gets a mark: from then on Posthorn refuses to
open it (posthorn serve and posthorn worker open it with --force).

  --from    the file, as sqlite:FILE
  --to      the database; its tables are made if they are not there
  --schema  the schema of the database's tables (posthorn); also POSTHORN_SCHEMA, or ?schema= in the URL
  --quiet   no progress
  --force   moves a file that was moved to another database before; deliveries that wait in both are sent twice

  posthorn migrate --from sqlite:posthorn.db --to postgres://posthorn:secret@db.example.com/posthorn
  posthorn worker --store postgres://posthorn:secret@db.example.com/posthorn

The encryption key is POSTHORN_ENCRYPTION_KEY or, without that, FILE.key. A key from the file is stored in
the database; one from the environment is not, and every process must go on being given it.`

export async function run(flags: Flags): Promise<number> {
  const { from, to, quiet, force } = flags
  const path = pathOf(from)
  const target = { url: urlOf(to), schema: configFor(flags).values.schema }
  const progress = quiet ? noProgress : progressOn(process.stderr)
  let result: Migrated
  try {
    result = await migrate(path, target, {
      watch: (what, done, total) => progress.show(what, done, total),
      force: force === true,
    })
  } catch (error) {
    throw asUsageError(error, { store: "--to", schema: "--schema" })
  } finally {
    progress.end()
  }
  for (const line of report(result)) console.log(line)
  const different = result.tables.filter(({ isSame }) => !isSame).map(({ table }) => table)
  if (different.length === 0) return 0
  console.error(
    `posthorn: the contents of ${different.join(", ")} differ: something else writes to the database, or this is a fault of Posthorn's; the file is not moved, go on using it, or begin again with an empty database`,
  )
  return 1
}

function pathOf(from: unknown): string {
  if (typeof from !== "string") throw new UsageError("--from is missing: give it the file, as sqlite:FILE")
  const [, path] = /^sqlite:(.+)$/s.exec(from) ?? []
  if (path === undefined || path === ":memory:" || path.startsWith("file:"))
    throw new UsageError("--from must be sqlite: and the path of a file, such as sqlite:posthorn.db")
  return path
}

function urlOf(to: unknown): string {
  if (typeof to !== "string") throw new UsageError("--to is missing: give it the database, as postgres://…")
  if (!/^postgres(ql)?:\/\//.test(to))
    throw new UsageError("--to must be a URL like postgres://user:password@host:5432/database")
  return to
}

function report({ tables, finishedBefore, needsKey }: Migrated): string[] {
  if (finishedBefore !== null)
    return [`This file was moved to this database before, on ${finishedBefore.toISOString()}: nothing to do.`]
  const lines = [row("", "SQLite", "PostgreSQL"), ...tables.map(tableRow)]
  if (!tables.every(({ isSame }) => isSame)) return lines
  const key = needsKey ? " Give every process on it the same POSTHORN_ENCRYPTION_KEY." : ""
  return [...lines, `Moved. The database can be used now.${key} The file is not opened any more.`]
}

function tableRow({ table, source, target, isSame, columns }: TableResult): string {
  const where = columns.length === 0 ? "" : ` in ${columns.join(", ")}`
  return row(table, `${source}`, `${target}`) + (isSame ? "" : `   differs${where}`)
}

function row(table: string, source: string, target: string): string {
  return `${column(table, 20)}${columnRight(source, 12)}${columnRight(target, 12)}`
}
