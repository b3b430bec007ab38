/** The columns of a table, read from both databases: a new column of the stores is moved without a change here. */
import { PosthornError } from "../core/errors.ts"
import type { Row } from "../store/rows.ts"
import type { Kind, Shape } from "./bulk.ts"

const KINDS: { readonly [type: string]: Kind } = {
  text: "text",
  int8: "bigint",
  int4: "int",
  int2: "int",
  bool: "bool",
  bytea: "bytea",
  _text: "list",
}

/** State of one process or of its tokens, which is not moved: PostgreSQL's tokens begin at 1. The target has the default. */
const STAYS = new Set([
  "webhook_deliveries.handed",
  "webhook_deliveries.handed_token",
  "endpoints.gate_token",
  "endpoints.gate_revision",
])

export interface TableColumns {
  /** By name. */
  readonly source: readonly string[]
  /** With `name` and `type`. */
  readonly target: readonly Row[]
}

/** `derived` are columns that only PostgreSQL has, computed from the row. Any other column of one side only stops the move. */
export function shapeOf(table: string, { source, target }: TableColumns, derived: Shape): Shape {
  const types = new Map(target.map(({ name, type }) => [name as string, type as string]))
  const shape: { [column: string]: Shape[string] } = {}
  for (const name of source) {
    if (STAYS.has(`${table}.${name}`)) continue
    const type = types.get(name)
    if (type === undefined) throw unknown(table, name, "the file and not in the database")
    if (KINDS[type] === undefined) throw unknown(table, name, `the database with the type ${type}`)
    shape[name] = KINDS[type]
  }
  for (const name of types.keys()) {
    if (shape[name] !== undefined || derived[name] !== undefined || STAYS.has(`${table}.${name}`)) continue
    throw unknown(table, name, "the database and not in the file")
  }
  return { ...shape, ...derived }
}

function unknown(table: string, column: string, where: string): PosthornError {
  const text = `the column ${table}.${column} is in ${where}: this Posthorn does not know how to move it`
  return new PosthornError("store_incompatible", text)
}
