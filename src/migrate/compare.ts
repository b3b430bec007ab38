/** Compares the contents of both databases table by table, and finds the columns that differ. */
import type { Runner } from "../store/postgres/connection.ts"
import type { Row } from "../store/rows.ts"
import { Digest, expectedValues, foundValues, selectList } from "./digest.ts"
import type { Source } from "./source.ts"
import type { Step } from "./steps.ts"

/** Small enough for the time limit of a statement, also with large rows. */
const FETCHED_ROWS = 500

export interface TableResult {
  readonly table: string
  readonly source: number
  readonly target: number
  readonly isSame: boolean
  /** The columns that differ, if both tables have the same number of rows. */
  readonly columns: readonly string[]
}

interface Compared {
  readonly step: Step
  readonly source: Digest
  target: Digest
  columns: readonly string[]
}

export class Comparison {
  readonly #source: Source
  readonly #steps: readonly Compared[]

  /** Reads the source here, so that no transaction on the target waits for it. */
  constructor(source: Source, steps: readonly Step[]) {
    this.#source = source
    this.#steps = steps.map((step) => ({
      step,
      source: digestSource(source, step, Object.keys(step.shape)),
      target: new Digest(),
      columns: [],
    }))
  }

  async isSame(runner: Runner): Promise<boolean> {
    for (const one of this.#steps)
      one.target = await digestTarget(runner, one.step, Object.keys(one.step.shape))
    return this.#steps.every(({ source, target }) => source.equals(target))
  }

  async findColumns(runner: Runner): Promise<void> {
    for (const one of this.#steps) {
      if (one.source.equals(one.target) || one.source.rows !== one.target.rows) continue
      const columns: string[] = []
      for (const name of Object.keys(one.step.shape)) {
        const columnOfRow = [...one.step.key, name]
        const expected = digestSource(this.#source, one.step, columnOfRow)
        if (!expected.equals(await digestTarget(runner, one.step, columnOfRow))) columns.push(name)
      }
      one.columns = columns
    }
  }

  /** One result for each table, which may have several steps. */
  get results(): TableResult[] {
    return [...Map.groupBy(this.#steps, ({ step }) => step.table)].map(([table, parts]) => ({
      table,
      source: parts.reduce((sum, { source }) => sum + source.rows, 0),
      target: parts.reduce((sum, { target }) => sum + target.rows, 0),
      isSame: parts.every(({ source, target }) => source.equals(target)),
      columns: [...new Set(parts.flatMap(({ columns }) => columns))],
    }))
  }
}

function digestSource(source: Source, { select, shape }: Step, columns: readonly string[]): Digest {
  const digest = new Digest()
  for (const row of source.each(select)) digest.add(expectedValues(shape, columns, row))
  return digest
}

async function digestTarget(
  runner: Runner,
  { shape, found }: Step,
  columns: readonly string[],
): Promise<Digest> {
  const digest = new Digest()
  const run = (text: string) => runner.run({ name: "", text }, [])
  await run(`DECLARE compared NO SCROLL CURSOR FOR SELECT ${selectList(shape, columns)} FROM ${found}`)
  for (let rows: Row[] | null = null; rows === null || rows.length > 0; ) {
    rows = await run(`FETCH ${FETCHED_ROWS} FROM compared`)
    for (const row of rows) digest.add(foundValues(columns, row))
  }
  await run("CLOSE compared")
  return digest
}
