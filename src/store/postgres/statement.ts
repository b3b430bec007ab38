/**
 * A prepared statement over many rows at once: each column of the rows is one array parameter, and `unnest` makes rows of them
 * again. One round trip and one plan, however many rows there are.
 */
import { type Bytes, writeBytes } from "../../core/bytes.ts"
import type { Statement as SharedStatement } from "../statements.ts"

export interface Statement extends SharedStatement {
  /** Runs as typed, in the schema that its transaction's `search_path` names. */
  readonly isMigration?: boolean
}

/** Not prepared: planned for its values at each run. */
export const unnamed = (text: string): Statement => ({ name: "", text })

/**
 * A row source that ends the statement when it has waited so long for a lock: somebody's open transaction must not hold up everybody
 * whose work goes with it in one batch. What fails is then tried alone. Set inside the statement, it costs no round trip.
 */
export const patience = (ms: number): string =>
  `(SELECT set_config('lock_timeout', '${ms}', true)) AS patience`

/**
 * A join that looks up each row by the index of `column`, whatever the planner believes of the table. A plan is kept as long as its
 * connection; one that was made while the table was nearly empty would otherwise begin with that table, and later read the whole of it.
 * Written as an array, the comparison can be neither merged nor hashed, so the lookup is the only plan without a sequential scan,
 * which is turned off where these statements run (`HOT_SETTINGS` in `connection.ts`).
 */
export const lookup = (column: string, value: string): string => `${column} = ANY (ARRAY[${value}])`

/** A column: its type in PostgreSQL, and where its value comes from. One of a row source must never be null: it says how many rows there are. */
export type Column<Row> = readonly [type: string, value: (row: Row) => unknown]

export class Columns<Row> {
  readonly #columns: readonly (readonly [string, Column<Row>])[]

  constructor(columns: { readonly [name: string]: Column<Row> }) {
    this.#columns = Object.entries(columns)
  }

  /** `unnest($1::text[], …) WITH ORDINALITY AS alias(id, …, ord)`; the first parameter has the number `from`. */
  unnest(alias: string, from = 1): string {
    const parameters = this.#columns.map(([, [type]], i) => `$${from + i}::${type}[]`)
    const names = this.#columns.map(([name]) => name)
    return `unnest(${parameters.join(", ")}) WITH ORDINALITY AS ${alias}(${names.join(", ")}, ord)`
  }

  /** The number of the parameter behind the last column. */
  next(from = 1): number {
    return from + this.#columns.length
  }

  values(rows: readonly Row[]): string[] {
    return this.#columns.map(([, [, value]]) => arrayOf(rows.map(value)))
  }
}

/** `unnest` fills up with NULL what is shorter than others: a column with nothing else, as many are, needs no elements. */
function arrayOf(values: readonly unknown[]): string {
  if (values.every((value) => value == null)) return "{}"
  return `{${values.map(literal).join(",")}}`
}

/** As it stands in an array. The driver's own way replaces twice in every text: a twentieth of a busy process's time. */
function literal(value: unknown): string {
  if (value === null || value === undefined) return "NULL"
  if (typeof value === "number" || typeof value === "bigint" || typeof value === "boolean")
    return String(value)
  if (typeof value === "string")
    return /["\\]/.test(value) ? `"${value.replace(/["\\]/g, "\\$&")}"` : `"${value}"`
  if (value instanceof Uint8Array) return `"\\\\x${Buffer.from(value).toString("hex")}"`
  throw new TypeError(`a column cannot hold a ${typeof value}`)
}

/**
 * Byte strings of many rows as one parameter, cut up again with `substr(packed, at, length)`: an array of bytea would travel as text,
 * twice as long and escaped.
 */
export class Packed {
  readonly bytes: Buffer
  /** Where the parts begin, counted from one. */
  readonly at: readonly number[]
  readonly lengths: readonly (number | null)[]

  constructor(parts: readonly (Bytes | null)[]) {
    let next = 1
    this.lengths = parts.map((part) => part?.length ?? null)
    this.at = this.lengths.map((length) => {
      const at = next
      next += length ?? 0
      return at
    })
    this.bytes = Buffer.allocUnsafe(next - 1)
    for (const [i, part] of parts.entries()) if (part !== null) writeBytes(part, this.bytes, this.at[i]! - 1)
  }
}
