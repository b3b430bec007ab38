/** A page of rows that are in memory, ordered by id. */
import type { Page } from "../store/store.ts"

export function cutPage<R extends { readonly id: string }>(rows: readonly R[], page: Page<string>): R[] {
  const { limit, order, from, back } = page
  const sign = order === "ascending" ? 1 : -1
  const compare = (a: string, b: string) => (a === b ? 0 : sign * (a < b ? -1 : 1))
  const sorted = rows.toSorted((a, b) => compare(a.id, b.id))
  if (from === null) return sorted.slice(0, limit)
  if (back) return sorted.filter(({ id }) => compare(id, from) < 0).slice(-limit)
  return sorted.filter(({ id }) => compare(id, from) > 0).slice(0, limit)
}
