/**
 * The PostgreSQL database of a move. Its journal records the progress in the transaction of each chunk. Until the end the database is bound
 * to an encryption key that does not exist, so that no process can open it.
 */
import { PosthornError } from "../core/errors.ts"
import type { Runner } from "../store/postgres/connection.ts"
import { toPosthornError } from "../store/postgres/errors.ts"
import { UNFINISHED_MOVE } from "../store/postgres/meta.ts"
import type { Statement } from "../store/postgres/statement.ts"
import { openPostgresStore, type PostgresStore } from "../store/postgres/store.ts"
import type { Row } from "../store/rows.ts"
import type { Source, SourceKey } from "./source.ts"

/** By table, with `name` and `type`. */
export type TargetColumns = ReadonlyMap<string, readonly Row[]>

export type KeyValue = string | number | { readonly hex: string }

export interface StepProgress {
  /** The last row that was copied, by the columns that order the rows. */
  readonly after: readonly KeyValue[]
  readonly rows: number
}

export interface Journal {
  readonly from: string
  /** The state of the source when the move began. */
  readonly state: string
  readonly startedAt: number
  readonly finishedAt: number | null
  readonly progress: { readonly [step: string]: StepProgress }
}

const SEQUENCES = {
  message_seq: "messages",
  delivery_seq: "webhook_deliveries",
  attempt_seq: "attempts",
  task_seq: "tasks",
}

const unnamed = (text: string): Statement => ({ name: "", text })
const FIND_DATA = unnamed(`
  SELECT EXISTS (SELECT FROM applications) OR EXISTS (SELECT FROM messages) OR EXISTS (SELECT FROM policies)
      OR EXISTS (SELECT FROM tasks) OR EXISTS (SELECT FROM entries) AS found`)
const FIND_WORKER = unnamed("SELECT name FROM workers WHERE lease_until > clock_timestamp() LIMIT 1")
/** Without generated columns. */
const COLUMNS = unnamed(`
  SELECT c.relname AS "table", a.attname AS name, t.typname AS type
    FROM pg_class c
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
    JOIN pg_type t ON t.oid = a.atttypid
   WHERE c.relkind IN ('r', 'p')
     AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'messages'::regclass)
   ORDER BY c.oid, a.attnum`)
const SET_SEQUENCE = unnamed("SELECT setval($1::regclass, $2)")
const READ: Statement = {
  name: "migrate.read",
  text: "SELECT value FROM meta WHERE key = 'migration' FOR UPDATE",
}
const PUT: Statement = {
  name: "migrate.put",
  text: "INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
}
/** As after a send: the schedule learns of all lanes with waiting deliveries. */
const WAKE = unnamed(`
  INSERT INTO lane_wakes (lane_id, due_at)
  SELECT webhook_id, min(coalesce(next_retry_at, 0)) FROM webhook_deliveries_live GROUP BY webhook_id`)
const FILLED = [
  "applications",
  "endpoints",
  "lanes",
  "messages",
  "webhook_deliveries",
  "attempts",
  "attempt_rollups",
  "idempotency",
]

export async function openTarget(url: string, schema: string | null): Promise<PostgresStore> {
  return openPostgresStore({ url, schema, name: `posthorn migrate ${process.pid}` })
}

/** Locked until the end of the transaction. This waits for the last commit of an earlier run that was killed. */
export async function readJournal(runner: Runner): Promise<Journal | null> {
  const [row] = await runner.run(READ, [])
  return row === undefined ? null : JSON.parse(row.value as string)
}

export async function writeJournal(runner: Runner, journal: Journal): Promise<void> {
  await runner.run(PUT, ["migration", JSON.stringify(journal)])
}

export async function readColumns({ database }: PostgresStore): Promise<TargetColumns> {
  return Map.groupBy(await database.run(COLUMNS, []), (row) => row.table as string)
}

/** Begins a move, or continues an earlier one. */
export function begin({ database }: PostgresStore, source: Source, force: boolean): Promise<Journal> {
  const state = source.state()
  return database.transactionCalmly(async (runner) => {
    await runner.run(unnamed(`SELECT pg_advisory_xact_lock(${database.schema.lock("migrate")})`), [])
    const begun = await readJournal(runner)
    if (begun?.state === state) return begun
    if (begun !== null) throw refused(otherMove(begun, source.path))
    if (!force) source.refuseMoved()
    await refuseUsed(runner)
    // At the beginning: a send of a process that is already open must not take the number of a row in the source.
    for (const [sequence, table] of Object.entries(SEQUENCES)) {
      const [row] = source.all(`SELECT max(seq) AS most FROM ${table}`)
      if (row!.most !== null) await runner.run(SET_SEQUENCE, [database.schema.of(sequence), row!.most])
    }
    const journal = { from: source.path, state, startedAt: Date.now(), finishedAt: null, progress: {} }
    await runner.run(PUT, ["encryption_key", UNFINISHED_MOVE])
    await writeJournal(runner, journal)
    return journal
  })
}

async function refuseUsed(runner: Runner): Promise<void> {
  const [data] = await runner.run(FIND_DATA, [])
  if (data!.found) throw refused("the target has data already: give an empty database")
  const [worker] = await runner.run(FIND_WORKER, [])
  if (worker !== undefined)
    throw refused(
      `the target is in use (${worker.name}): stop every Posthorn on it until the move is finished`,
    )
}

function otherMove(begun: Journal, path: string): string {
  if (begun.from !== path || begun.finishedAt !== null)
    return `the target has data already, moved there from ${begun.from}: give an empty database`
  return `${path} was changed after its move to this target began: leave it alone meanwhile, and begin again with an empty database`
}

/** Without statistics, the planner would scan the new tables. */
export async function analyze({ database }: PostgresStore): Promise<void> {
  const client = await database.connect(() => {})
  try {
    await client.query(`ANALYZE ${FILLED.map((table) => database.schema.of(table)).join(", ")}`)
  } catch (error) {
    throw toPosthornError(error)
  } finally {
    await client.end()
  }
}

/** Releases the database for use. */
export async function finish(runner: Runner, journal: Journal, key: SourceKey): Promise<void> {
  await runner.run(WAKE, [])
  if (key.kept !== null)
    await runner.run(PUT, ["generated_encryption_key", Buffer.from(key.kept).toString("hex")])
  await runner.run(PUT, ["encryption_key", key.fingerprint])
  await writeJournal(runner, { ...journal, finishedAt: Date.now(), progress: {} })
}

function refused(text: string): PosthornError {
  return new PosthornError("conflict", text, { field: "to" })
}
