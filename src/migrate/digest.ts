/** A digest of all rows of a table: the sum of the digests of its rows, so that it depends neither on their order nor on the database. */
import { hash } from "node:crypto"
import type { SQLOutputValue } from "node:sqlite"
import type { Row } from "../store/rows.ts"
import { type Kind, type Shape, toPostgres } from "./bulk.ts"
import type { SourceRow } from "./source.ts"

const MODULUS = 1n << 128n

export class Digest {
  rows = 0
  #sum = 0n

  add(values: readonly unknown[]): void {
    this.rows++
    this.#sum += BigInt(`0x${hash("sha256", JSON.stringify(values)).slice(0, 32)}`)
  }

  equals(other: Digest): boolean {
    return this.rows === other.rows && this.#sum % MODULUS === other.#sum % MODULUS
  }
}

/** The values that PostgreSQL should have. */
export function expectedValues(shape: Shape, columns: readonly string[], row: SourceRow): unknown[] {
  return columns.map((name) => {
    const kind = shape[name]!
    return typeof kind === "string" ? canonical(kind, row[name]!) : kind[1](row)
  })
}

function canonical(kind: Kind, value: SQLOutputValue): unknown {
  if (value === null) return null
  if (kind === "bytea") return hash("sha256", value as Uint8Array)
  return kind === "list" ? JSON.parse(toPostgres(kind, value) as string) : toPostgres(kind, value)
}

/** The server hashes bytes, so that payloads are not transferred. */
export function selectList(shape: Shape, columns: readonly string[]): string {
  return columns
    .map((name) => (shape[name] === "bytea" ? `encode(sha256(${name}), 'hex') AS ${name}` : name))
    .join(", ")
}

export function foundValues(columns: readonly string[], row: Row): unknown[] {
  return columns.map((name) => row[name])
}
