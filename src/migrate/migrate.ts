/** Moves everything from an SQLite file to PostgreSQL, chunk by chunk; killed at any moment and started again, it goes on where it was. */
import type { SQLOutputValue } from "node:sqlite"
import { withoutPassword } from "../core/location.ts"
import type { PostgresStore } from "../store/postgres/store.ts"
import { Comparison, type TableResult } from "./compare.ts"
import { Source, type SourceRow } from "./source.ts"
import { type Step, stepsOf } from "./steps.ts"
import * as target from "./target.ts"

/** A chunk is full with so many rows, or with so many bytes in them. */
const CHUNK_ROWS = 1000
const CHUNK_BYTES = 4 * 1024 * 1024

export interface Migrated {
  /** Empty when the move had been finished before. */
  readonly tables: readonly TableResult[]
  /** When that was; null when it was now, or when the contents differ. */
  readonly finishedBefore: Date | null
  /** Whether processes on the target must be given the encryption key, because it is not kept beside the data. */
  readonly needsKey: boolean
}

/** Told of rows that were copied, of all there are. */
export type Watch = (table: string, done: number, total: number) => void

export interface MigrateOptions {
  readonly watch?: Watch
  /** Moves a file that was moved to another database before. */
  readonly force?: boolean
}

export interface Target {
  readonly url: string
  /** Of its tables, as an option of the library. */
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
      // A change is told as such, not as contents that differ.
      source.refuseChanged(state)
      const isSame = await store.database.transactionCalmly(async (runner) => {
        const journal = (await target.readJournal(runner))!
        if (!(await comparison.isSame(runner))) return false
        await target.finish(runner, journal, key)
        // Before the commit, so that there is no moment at which both could deliver; a run that ends in between is started again.
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

/** How many rows of the step are copied by now; null when none was left to copy. */
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
