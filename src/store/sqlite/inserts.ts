/**
 * Rows of one table, batched in a transaction and written by multi-row statements: a statement with one row spends most of its time
 * opening the table and its indexes. A delivery's four rows take 15 µs instead of 24.
 */
import type { SQLInputValue } from "node:sqlite"
import type { Connection } from "./connection.ts"

/** Rows in a statement, largest first. */
const SIZES = [16, 4, 1]
/** From this number on values are written early: a batch to many endpoints has millions. */
const MOST_VALUES = 16_384

export class Inserts {
  readonly #connection: Connection
  readonly #width: number
  readonly #statements: readonly { readonly text: string; readonly values: number }[]
  #values: SQLInputValue[] = []

  /** `into` is the beginning of the statement, `end` its end. The value of the column `blob` may be a text. */
  constructor(connection: Connection, into: string, columns: string, blob?: string, end = "") {
    this.#connection = connection
    const names = columns.split(", ")
    if (blob !== undefined && !names.includes(blob)) throw new RangeError(`${blob} is no column`)
    this.#width = names.length
    const row = `(${names.map((name) => (name === blob ? "CAST(? AS BLOB)" : "?")).join(", ")})`
    this.#statements = SIZES.map((size) => ({
      text: `${into} (${columns}) VALUES ${Array(size).fill(row).join(", ")}${end}`,
      values: size * this.#width,
    }))
  }

  get isEmpty(): boolean {
    return this.#values.length === 0
  }

  add(...row: readonly SQLInputValue[]): void {
    if (row.length !== this.#width) throw new RangeError(`${row.length} values for ${this.#width} columns`)
    this.#values.push(...row)
    if (this.#values.length >= MOST_VALUES) this.flush()
  }

  /** After a failure the rows are kept until `drop`. */
  flush(): void {
    const values = this.#values
    if (values.length === 0) return
    let at = 0
    for (const { text, values: width } of this.#statements)
      for (; values.length - at >= width; at += width)
        this.#connection.sql(text).run(...values.slice(at, at + width))
    this.#values = []
  }

  /** For a transaction that is rolled back. */
  drop(): void {
    this.#values = []
  }
}
