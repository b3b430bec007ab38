/** One page of any list, in either direction. */
import type { Row } from "../rows.ts"
import type { Page } from "../store.ts"
import type { Conditions } from "./conditions.ts"
import type { Context } from "./context.ts"
import { eraOf } from "./schema.ts"

/**
 * `by` is the column that orders the list and that the page's `from` is compared with. What is read through an index in eras says so
 * with `inEras`: SQLite does not know that it is the same order, and would sort.
 */
export function readPage(
  { connection }: Context,
  select: string,
  where: Conditions,
  by: string,
  { limit, order, from, back }: Page<string | number>,
  inEras = false,
): Row[] {
  // Going back, the rows nearest to `from` come first, and are turned round.
  const upwards = (order === "ascending") !== back
  where.narrow(`${by} ${upwards ? ">" : "<"} ?`, from ?? undefined)
  const direction = upwards ? "ASC" : "DESC"
  const eras = inEras ? `${eraOf(by)} ${direction}, ` : ""
  const rows = connection
    .once(`${select} WHERE ${where} ORDER BY ${eras}${by} ${direction} LIMIT ?`)
    .all(...where.values, limit)
  return back ? rows.reverse() : rows
}

/** The rows of a task: beyond its cursor, the oldest first. */
export function oldestFirst(after: number, limit: number): Page {
  return { limit, order: "ascending", from: after, back: false }
}
