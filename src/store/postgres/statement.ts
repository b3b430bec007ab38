/**
 * Prepared statements over many rows: each column is one array parameter, which `unnest` turns into rows again. One round trip and one plan for
 * any number of rows.
 */
import { type Bytes, writeBytes } from "../../core/bytes.ts"
import type { Statement as SharedStatement } from "../statements.ts"

export interface Statement extends SharedStatement {
  /** Table names are not qualified: the transaction sets `search_path`. */
  readonly isMigration?: boolean
}

/** Not prepared: planned for its values at each run. */
export const unnamed = (text: string): Statement => ({ name: "", text })

/**
 * A row source that sets the lock timeout within the statement, without a round trip: another open transaction must not delay a whole batch.
 * After a failure each part is tried alone.
 */
export const patience = (ms: number): string =>
  `(SELECT set_config('lock_timeout', '${ms}', true)) AS patience`

/**
 * A join that looks up each row by the index of `column`, regardless of the planner's estimates. A plan that was made while the table was
 * nearly empty would start with that table, and later read all of it. An array comparison can be neither merged nor hashed, so the lookup is
 * the only plan without a sequential scan, which `HOT_SETTINGS` in `connection.ts` turns off.
 */
export const lookup = (column: string, value: string): string => `${column} = ANY (ARRAY[${value}])`

/** Type and value of a column. At least one column is never null: it determines the number of rows. */
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

  /** Number of the parameter after the last column. */
  next(from = 1): number {
    return from + this.#columns.length
  }

  values(rows: readonly Row[]): string[] {
    return this.#columns.map(([, [, value]]) => arrayOf(rows.map(value)))
  }
}

/** `unnest` fills shorter arrays with NULL, so a column with only nulls needs no elements. */
function arrayOf(values: readonly unknown[]): string {
  if (values.every((value) => value == null)) return "{}"
  return `{${values.map(literal).join(",")}}`
}

/** The driver's own escaping replaces twice in every text: a twentieth of a busy process's time. */
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
 * Byte strings of many rows as one parameter, split with `substr(packed, at, length)`: an array of bytea is sent as text, twice as long and
 * escaped.
 */
export class Packed {
  readonly bytes: Buffer
  /** Start of each part, counted from 1. */
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
