/** One page of any list, in either direction. */
import type { Row } from "../rows.ts"
import type { Page } from "../store.ts"
import { type Conditions, unprepared } from "./conditions.ts"
import type { Context } from "./context.ts"

export interface Paging {
  readonly direction: "ASC" | "DESC"
  /** The parameter with the limit. */
  readonly most: string
  /** Going back, the rows nearest to `from` come first, and are turned round. */
  arrange(rows: Row[]): Row[]
}

/** Narrows the list to what lies beyond the page's `from`. */
export function paging(where: Conditions, by: string, page: Page<string | number>): Paging {
  const { limit, order, from, back } = page
  const upwards = (order === "ascending") !== back
  where.narrow(`${by} ${upwards ? ">" : "<"} ?`, from ?? undefined)
  return {
    direction: upwards ? "ASC" : "DESC",
    most: where.parameter(limit),
    arrange: (rows) => (back ? rows.reverse() : rows),
  }
}

/** `by` is the column that orders the list and that the page's `from` is compared with. */
export async function readPage(
  { database }: Context,
  select: string,
  where: Conditions,
  by: string,
  page: Page<string | number>,
): Promise<Row[]> {
  const { direction, most, arrange } = paging(where, by, page)
  const text = `${select} WHERE ${where} ORDER BY ${by} ${direction} LIMIT ${most}`
  return arrange(await database.runCalmly(unprepared(text), where.values))
}

/** The rows of a task: beyond its cursor, the oldest first. */
export function oldestFirst(after: number, limit: number): Page {
  return { limit, order: "ascending", from: after, back: false }
}
