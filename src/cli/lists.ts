/** Reads lists of the API: up to a limit, or all pages. */
import type { Api } from "./api.ts"
import type { PAGE_FLAGS } from "./command.ts"
import type { Given } from "./flag.ts"
import type { Output } from "./output.ts"
import type { Column } from "./table.ts"

export interface List<R> {
  readonly data: readonly R[]
  readonly iterator: string | null
  readonly prevIterator?: string | null
  readonly done: boolean
}

const LARGEST_PAGE = 250
const USUAL = 50

export async function readList<R>(
  api: Api,
  route: string,
  query: { readonly [name: string]: unknown },
  { limit = USUAL, all = false, iterator }: Given<typeof PAGE_FLAGS>,
): Promise<List<R>> {
  const data: R[] = []
  let left = all ? Number.POSITIVE_INFINITY : limit
  // `prevIterator` is that of the first page, `iterator` that of the last.
  let wayBack: Pick<List<R>, "prevIterator"> | null = null
  for (let behind = iterator; ; ) {
    const asked = { ...query, limit: Math.min(left, LARGEST_PAGE), iterator: behind }
    const { prevIterator, ...page } = await api.get<List<R>>(route, asked)
    wayBack ??= prevIterator === undefined ? {} : { prevIterator }
    data.push(...page.data)
    left -= page.data.length
    if (left <= 0 || page.done || page.iterator === null) return { ...page, ...wayBack, data }
    behind = page.iterator
  }
}

export interface Listing<R> {
  readonly route: string
  readonly query?: { readonly [name: string]: unknown }
  readonly columns: readonly Column<R>[]
  /** Printed for an empty list. */
  readonly none: string
}

export async function showList<R>(
  { api, out, flags }: { readonly api: Api; readonly out: Output; readonly flags: Given<typeof PAGE_FLAGS> },
  { route, query = {}, columns, none }: Listing<R>,
): Promise<undefined> {
  const list = await readList<R>(api, route, query, flags)
  out.table(list, list.data, columns, none)
  if (!list.done) out.note("There are more: --all shows everything, --limit N the first N.")
}
