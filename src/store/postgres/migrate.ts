/** Brings the database to this program's schema: numbered migrations, each run once by one process. */
import { PosthornError } from "../../core/errors.ts"
import type { Row } from "../rows.ts"
import type { Database, Runner } from "./connection.ts"
import { isMissingTable } from "./errors.ts"
import type { PgSchema } from "./pg-schema.ts"
import { MIGRATIONS, type Migration } from "./schema.ts"
import { type Statement, unnamed } from "./statement.ts"

/** Older servers plan an update once for each partition, and cannot detach partitions concurrently. */
const OLDEST_SERVER = 14

const APPLIED = unnamed(
  "SELECT number, additive, current_setting('server_version') AS server FROM posthorn_migrations",
)
const SERVER = unnamed("SELECT current_setting('server_version') AS server")
const FIND_SCHEMA = unnamed("SELECT FROM pg_namespace WHERE nspname = $1")
const migration = (text: string): Statement => ({ name: "", text, isMigration: true })

const CREATE = migration(`
  CREATE TABLE IF NOT EXISTS posthorn_migrations (
    number     integer PRIMARY KEY,
    additive   boolean NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
  )`)
const RECORD = unnamed("INSERT INTO posthorn_migrations (number, additive) VALUES ($1, $2)")

/**
 * Functions run with their own schema as search_path. Set after every migration, since CREATE OR REPLACE drops it. pg_temp is last: by default
 * it is first, and a user's temporary table could replace one of ours.
 */
const PIN_FUNCTIONS = migration(`
  DO $$
  DECLARE
    pinned regprocedure;
  BEGIN
    FOR pinned IN
      SELECT p.oid FROM pg_proc p
        JOIN pg_language l ON l.oid = p.prolang AND l.lanname = 'plpgsql'
        JOIN pg_namespace n ON n.oid = p.pronamespace AND n.nspname = current_schema()
       WHERE starts_with(p.proname, 'posthorn_')
    LOOP
      EXECUTE format('ALTER FUNCTION %s SET search_path FROM CURRENT', pinned);
    END LOOP;
  END $$`)

/** One statement when there is nothing to migrate. */
export async function migrate(database: Database): Promise<void> {
  let applied = await readApplied(database)
  if (applied === null) {
    const [row] = await database.run(SERVER, [])
    refuseOldServer(row!.server as string)
    applied = []
  }
  if (applied[0] !== undefined) refuseOldServer(applied[0].server as string)
  refuseNewerSchema(applied)
  for (const [i, migration] of MIGRATIONS.entries()) {
    if (!isAmong(i + 1, applied))
      await database.transactionCalmly((runner) => apply(runner, database.schema, i + 1, migration))
  }
}

async function readApplied(database: Database): Promise<Row[] | null> {
  try {
    return await database.run(APPLIED, [])
  } catch (error) {
    if (isMissingTable((error as Error).cause)) return null
    throw error
  }
}

/** Checks again under the lock: another process may have run the migration. */
async function apply(
  runner: Runner,
  schema: PgSchema,
  number: number,
  { sql, additive }: Migration,
): Promise<void> {
  await runner.run(unnamed(`SELECT pg_advisory_xact_lock(${schema.lock("migrations")})`), [])
  // CREATE SCHEMA IF NOT EXISTS needs a privilege on the database even when the schema exists.
  if ((await runner.run(FIND_SCHEMA, [schema.name])).length === 0)
    await runner.run(unnamed(`CREATE SCHEMA ${schema.quoted}`), [])
  await runner.run(unnamed(`SET LOCAL search_path TO ${schema.quoted}, pg_temp`), [])
  await runner.run(CREATE, [])
  const applied = await runner.run(APPLIED, [])
  refuseNewerSchema(applied)
  if (isAmong(number, applied)) return
  await runner.run(migration(sql), [])
  await runner.run(PIN_FUNCTIONS, [])
  await runner.run(RECORD, [number, additive])
}

function isAmong(number: number, applied: readonly Row[]): boolean {
  return applied.some((row) => row.number === number)
}

/** Additive migrations of a newer program do not affect this one. */
function refuseNewerSchema(applied: readonly Row[]): void {
  const unknown = applied.filter((row) => (row.number as number) > MIGRATIONS.length)
  if (unknown.every((row) => row.additive)) return
  const newest = Math.max(...unknown.map((row) => row.number as number))
  const text = `the database has schema ${newest}, this program knows ${MIGRATIONS.length}: it was written by a newer Posthorn; update this one`
  throw new PosthornError("store_incompatible", text)
}

export function refuseOldServer(version: string): void {
  if (Number.parseInt(version, 10) >= OLDEST_SERVER) return
  const text = `the server is PostgreSQL ${version}; Posthorn needs ${OLDEST_SERVER} or newer: update the server`
  throw new PosthornError("store_incompatible", text)
}
