/** Writes rows of SQLite with one PostgreSQL statement: each column is an array, and bytes are packed, as in the store's statements. */
import type { SQLOutputValue } from "node:sqlite"
import { type Column, Columns, Packed } from "../store/postgres/statement.ts"
import type { SourceRow } from "./source.ts"

/** A column's type in PostgreSQL; `list` is an array of text there and JSON in SQLite. */
export type Kind = "text" | "bigint" | "int" | "bool" | "bytea" | "list"
/** A column that SQLite does not have, computed from the row. */
type Derived = readonly ["int", (row: SourceRow) => number]
export type Shape = { readonly [column: string]: Kind | Derived }

interface Part {
  readonly row: SourceRow
  /** The position and length of this row's bytes, by column. */
  readonly bytes: { readonly [column: string]: { readonly at: number; readonly length: number | null } }
}

export class Bulk {
  readonly names: readonly string[]
  /** The rows as a table, with `ord`. */
  readonly select: string
  readonly #columns: Columns<Part>
  readonly #byteNames: readonly string[]

  constructor(shape: Shape) {
    const columns: { [name: string]: Column<Part> } = {}
    for (const [name, kind] of Object.entries(shape)) {
      if (kind === "bytea") {
        columns[`${name}_at`] = ["int", ({ bytes }) => bytes[name]!.at]
        columns[`${name}_length`] = ["int", ({ bytes }) => bytes[name]!.length]
      } else if (typeof kind !== "string") columns[name] = [kind[0], ({ row }) => kind[1](row)]
      else columns[name] = [kind === "list" ? "text" : kind, ({ row }) => toPostgres(kind, row[name]!)]
    }
    this.names = Object.keys(shape)
    this.#byteNames = this.names.filter((name) => shape[name] === "bytea")
    this.#columns = new Columns(columns)
    const fields = this.names.map((name) => {
      if (shape[name] === "list") return `${listOf(name)} AS ${name}`
      if (shape[name] !== "bytea") return name
      const parameter = `$${this.#columns.next() + this.#byteNames.indexOf(name)}::bytea`
      return `substr(${parameter}, ${name}_at, ${name}_length) AS ${name}`
    })
    this.select = `SELECT ord, ${fields.join(", ")} FROM ${this.#columns.unnest("u")}`
  }

  values(rows: readonly SourceRow[]): unknown[] {
    const packed = this.#byteNames.map(
      (name) => new Packed(rows.map((row) => row[name] as Uint8Array | null)),
    )
    const places = packed.map(({ at, lengths }) => at.map((start, i) => ({ at: start, length: lengths[i]! })))
    const parts = rows.map((row, i) => ({
      row,
      bytes: Object.fromEntries(this.#byteNames.map((name, j) => [name, places[j]![i]!])),
    }))
    return [...this.#columns.values(parts), ...packed.map(({ bytes }) => bytes)]
  }
}

/** Replaces NUL, which SQLite's texts and lists may have and PostgreSQL's text cannot. */
export function toPostgres(kind: Kind, value: SQLOutputValue): unknown {
  if (kind === "list" && typeof value === "string")
    return JSON.stringify((JSON.parse(value) as string[]).map(withoutNul))
  if (typeof value === "string") return withoutNul(value)
  return kind === "bool" ? value === 1 : value
}

function withoutNul(text: string): string {
  return text.replaceAll("\0", "\ufffd")
}

function listOf(json: string): string {
  return `CASE WHEN ${json} IS NOT NULL THEN ARRAY(SELECT json_array_elements_text(${json}::json)) END`
}
