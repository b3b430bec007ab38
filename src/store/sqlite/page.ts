/** Reading lists, whose texts a filter has put together. */
import { type Conditions, paging } from "../conditions.ts"
import type { Row } from "../rows.ts"
import type { Page } from "../store.ts"
import type { Context } from "./context.ts"
import { eraOf } from "./schema.ts"

type Where = Conditions<string | number>

export function readAll({ connection }: Context, text: string, where: Where): Row[] {
  return connection.once(text).all(...where.values)
}

/**
 * One page, in either direction. `inEras`: it is read through an index in eras, which SQLite does not know to be in the order of `by`.
 */
export function readPage(
  context: Context,
  select: string,
  where: Where,
  by: string,
  page: Page<string | number>,
  inEras = false,
): Row[] {
  const { direction, limit, arrange } = paging(where, by, page)
  const eras = inEras ? `${eraOf(by)} ${direction}, ` : ""
  const text = `${select} WHERE ${where} ORDER BY ${eras}${by} ${direction} LIMIT ${limit}`
  return arrange(readAll(context, text, where))
}
