/** Reading lists, whose texts a filter has put together. */
import { type Conditions, paging } from "../conditions.ts"
import type { Row } from "../rows.ts"
import type { Page } from "../store.ts"
import type { Context } from "./context.ts"
import { unnamed } from "./statement.ts"

/**
 * Planned for the values at hand, so that only the partitions that can have the status are read. Prepared once for all values, the endpoint
 * with a million rows would be read like the one with ten: all of them sorted for each page.
 */
export function readAll({ database }: Context, text: string, where: Conditions<unknown>): Promise<Row[]> {
  return database.runCalmly(unnamed(text), where.values)
}

/** One page, in either direction. */
export async function readPage(
  context: Context,
  select: string,
  where: Conditions<unknown>,
  by: string,
  page: Page<string | number>,
): Promise<Row[]> {
  const { direction, limit, arrange } = paging(where, by, page)
  const text = `${select} WHERE ${where} ORDER BY ${by} ${direction} LIMIT ${limit}`
  return arrange(await readAll(context, text, where))
}
