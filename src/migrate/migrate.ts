/** Moves an SQLite file to PostgreSQL in chunks. A run that was killed is continued by the next one. */
import type { SQLOutputValue } from "node:sqlite"
import { withoutPassword } from "../core/location.ts"
import type { PostgresStore } from "../store/postgres/store.ts"
import { Comparison, type TableResult } from "./compare.ts"
import { Source, type SourceRow } from "./source.ts"
import { type Step, stepsOf } from "./steps.ts"
import * as target from "./target.ts"

/** A chunk ends with the first of these limits. */
const CHUNK_ROWS = 1000
const CHUNK_BYTES = 4 * 1024 * 1024

export interface Migrated {
  /** Empty if an earlier run finished the move. */
  readonly tables: readonly TableResult[]
  /** When an earlier run finished; null: this run finished, or the contents differ. */
  readonly finishedBefore: Date | null
  /** Whether processes on the target need the encryption key as a setting, because it is not stored with the data. */
  readonly needsKey: boolean
}

/** Called with the number of rows that are copied, and of all rows. */
export type Watch = (table: string, done: number, total: number) => void

export interface MigrateOptions {
  readonly watch?: Watch
  /** Moves a file again that was moved to another database. */
  readonly force?: boolean
}

export interface Target {
  readonly url: string
  /** The schema of its tables, as the library's option. */
  readonly schema: string | null
}

export async function migrate(fromPath: string, to: Target, options: MigrateOptions): Promise<Migrated> {
  const { watch = () => {}, force = false } = options
  const source = Source.open(fromPath)
  try {
    const key = source.key()
    const store = await target.openTarget(to.url, to.schema)
    const place = `${withoutPassword(to.url)}?schema=${store.database.schema.name}`
    try {
      const { startedAt, finishedAt, state } = await target.begin(store, source, force)
      const needsKey = key.kept === null
      if (finishedAt !== null) {
        source.markMoved(place, state)
        return { tables: [], finishedBefore: new Date(finishedAt), needsKey }
      }
      const steps = stepsOf(source, await target.readColumns(store), startedAt)
      await copyAll(store, source, steps, watch)
      await target.analyze(store)
      const comparison = new Comparison(source, steps)
      // A changed source is an error of its own, not a difference of the contents.
      source.refuseChanged(state)
      const isSame = await store.database.transactionCalmly(async (runner) => {
        const journal = (await target.readJournal(runner))!
        if (!(await comparison.isSame(runner))) return false
        await target.finish(runner, journal, key)
        // Before the commit: at no time can both deliver. A run that stops in between is started again.
        source.markMoved(place, state)
        return true
      })
      if (!isSame) await store.database.transactionCalmly((runner) => comparison.findColumns(runner))
      return { tables: comparison.results, finishedBefore: null, needsKey }
    } finally {
      await store.close()
    }
  } finally {
    source.close()
  }
}

async function copyAll(store: PostgresStore, source: Source, steps: readonly Step[], watch: Watch) {
  const totals = steps.map(({ select }) => source.count(select))
  const total = totals.reduce((sum, rows) => sum + rows, 0)
  let before = 0
  for (const [i, step] of steps.entries()) {
    watch(step.table, before, total)
    for (let done: number | null = 0; done !== null; ) {
      done = await copyChunk(store, source, step)
      if (done !== null) watch(step.table, before + done, total)
    }
    before += totals[i]!
  }
}

/** The number of rows of the step that are copied; null: none was left. */
function copyChunk(store: PostgresStore, source: Source, step: Step): Promise<number | null> {
  return store.database.transactionCalmly(async (runner) => {
    const journal = (await target.readJournal(runner))!
    const { after, rows: before } = journal.progress[step.name] ?? { after: [], rows: 0 }
    const rows = readChunk(source, step, after)
    if (rows.length === 0) return null
    await step.prepare(store.partitions, rows)
    await runner.run(step.insert, step.values(rows))
    const done = { after: step.key.map((name) => toKey(rows.at(-1)![name]!)), rows: before + rows.length }
    await target.writeJournal(runner, { ...journal, progress: { ...journal.progress, [step.name]: done } })
    return done.rows
  })
}

function readChunk(source: Source, { select, key }: Step, after: readonly target.KeyValue[]): SourceRow[] {
  const names = key.join(", ")
  const where = after.length === 0 ? "" : `WHERE (${names}) > (${key.map(() => "?").join(", ")})`
  const sql = `SELECT * FROM (${select}) ${where} ORDER BY ${names} LIMIT ${CHUNK_ROWS}`
  return source.chunk(sql, after.map(fromKey), CHUNK_BYTES)
}

function toKey(value: SQLOutputValue): target.KeyValue {
  return value instanceof Uint8Array
    ? { hex: Buffer.from(value).toString("hex") }
    : (value as string | number)
}

function fromKey(value: target.KeyValue): string | number | Uint8Array {
  return typeof value === "object" ? Buffer.from(value.hex, "hex") : value
}
