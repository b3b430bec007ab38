/** Lists in pages, in both directions. */
import { invalid } from "../core/errors.ts"
import { type IdPrefix, isId } from "../core/ids.ts"
import { refuseUnknown, requireObject, wholeNumber } from "../core/input.ts"
import type { Page } from "../store/store.ts"

/** A page of a list. */
export interface List<T> {
  readonly data: readonly T[]
  /** The position of the last entry: the next page begins after it. Null when the page is empty. */
  readonly cursor: string | null
  /** The cursor of the page before this one. Null when the page is empty. */
  readonly previous: string | null
  /** No more entries follow in the requested direction. */
  readonly done: boolean
  /**
   * Only of a bounded list: the time of the last row that was searched, when more rows follow and the page is not full. `cursor` continues
   * the search from there. Null: the page is full, or everything was searched.
   */
  readonly searchedTo?: Date | null
}

export interface PageInput {
  /** At most 250; 50 by default. */
  limit?: number
  /** The `cursor` of the page before, or the `previous` of the page after. */
  cursor?: string | null
  order?: Order
}

export type Order = "ascending" | "descending"

/** Awaited: the requested page. Iterated: the entries of that page and of all pages that follow in its direction. */
export type Listing<T> = Promise<List<T>> & AsyncIterable<T>

/** The rows of a page, and where the search for them ended. */
export interface SearchedRows<R> {
  readonly rows: readonly R[]
  /** Null: at the end of the list. */
  readonly end: { readonly seq: number; readonly at: number } | null
}

export interface BoundedInput {
  /**
   * True: each page searches at most 10 000 rows for a filter without an index, and says in `searchedTo` how far it came. `since` and `until`
   * are also compared with the time at which a row was added.
   */
  bounded?: boolean
}

/** How many rows a bounded search reads. */
export const MOST_SEARCHED = 10_000

/** The column that orders a list. Its value is the cursor. */
interface Ordering<R, C extends string | number> {
  readonly order: Order
  key(row: R): C
  /** Null: not a cursor of this list. */
  parse(cursor: string): C | null
}

export const bySeq: Ordering<{ readonly seq: number }, number> = {
  order: "descending",
  key: ({ seq }) => seq,
  parse: (cursor) => (/^\d{1,15}$/.test(cursor) ? Number(cursor) : null),
}

export function byId(prefix: IdPrefix): Ordering<{ readonly id: string }, string> {
  return {
    order: "ascending",
    key: ({ id }) => id,
    parse: (cursor) => (isId(prefix, cursor) ? cursor : null),
  }
}

export const byName: Ordering<{ readonly name: string }, string> = {
  order: "ascending",
  key: ({ name }) => name,
  parse: (cursor) => (/^\+?[\w\-.]{1,256}$/.test(cursor) ? cursor.replace("+", "") : null),
}

interface ListOptions<Q, R, T, C extends string | number> {
  /** The fields of the query beside those of the page. */
  readonly fields?: readonly string[]
  readonly by: Ordering<R, C>
  /** Checks the query and returns the reader of its pages. */
  read(query: Q): Promise<(page: Page<C>) => Promise<readonly R[] | SearchedRows<R>>>
  show(row: R): T
}

export function listing<Q extends PageInput, R, T, C extends string | number>(
  query: Q,
  options: ListOptions<Q, R, T, C>,
): Listing<T> {
  const first = readPage(query, options)
  async function* entries(): AsyncGenerator<T> {
    let page = await first
    const back = query.cursor?.startsWith("-") ?? false
    for (;;) {
      yield* back ? page.data.toReversed() : page.data
      if (page.done) return
      page = await readPage({ ...query, cursor: back ? page.previous : page.cursor }, options)
    }
  }
  return Object.assign(first, { [Symbol.asyncIterator]: entries })
}

async function readPage<Q extends PageInput, R, T, C extends string | number>(
  query: Q,
  options: ListOptions<Q, R, T, C>,
): Promise<List<T>> {
  const { fields = [], by, read, show } = options
  requireObject(query, "query")
  refuseUnknown(query, [...fields, "limit", "cursor", "order"], "")
  const page = parsePage(query, by)
  const readRows = await read(query)
  // One row more than requested shows whether more follow.
  const found = await readRows({ ...page, limit: page.limit + 1 })
  const { rows, end = undefined } = "rows" in found ? found : { rows: found }
  if (end !== undefined && rows.length <= page.limit) return lastSearched(rows, end, page, options)
  const done = rows.length <= page.limit
  const kept = done ? rows : page.back ? rows.slice(1) : rows.slice(0, page.limit)
  const [first] = kept
  return {
    data: kept.map(show),
    cursor: first === undefined ? null : toCursor(by.key(kept.at(-1)!)),
    previous: first === undefined ? null : `-${toCursor(by.key(first))}`,
    done,
    ...(end === undefined ? {} : { searchedTo: null }),
  }
}

/** A page that a bounded search did not fill. The next page continues where the search ended. */
function lastSearched<R, T, C extends string | number>(
  rows: readonly R[],
  end: SearchedRows<R>["end"],
  { back }: Page<C>,
  { by, show }: Pick<ListOptions<never, R, T, C>, "by" | "show">,
): List<T> {
  const cursorOf = (row: R | undefined) => (row === undefined ? null : toCursor(by.key(row)))
  const [first, last] = [cursorOf(rows[0]), cursorOf(rows.at(-1))]
  const ended = end === null ? null : String(end.seq)
  const newest = back ? (ended ?? first) : (first ?? ended)
  return {
    data: rows.map(show),
    cursor: back ? (last ?? ended) : (ended ?? last),
    previous: newest === null ? null : `-${newest}`,
    done: end === null,
    searchedTo: end === null ? null : new Date(end.at),
  }
}

function parsePage<C extends string | number>(input: PageInput, by: Ordering<never, C>): Page<C> {
  const limit = input.limit === undefined ? 50 : wholeNumber(input.limit, "limit", 1, 250)
  if (input.order !== undefined && input.order !== "ascending" && input.order !== "descending")
    throw invalid("order", "must be ascending or descending")
  const { cursor = null } = input
  const page = { limit, order: input.order ?? by.order, from: null, back: false }
  if (cursor === null) return page
  const back = typeof cursor === "string" && cursor.startsWith("-")
  const from = typeof cursor === "string" ? by.parse(back ? cursor.slice(1) : cursor) : null
  if (from === null) throw invalid("cursor", "must be one that a list returned")
  return { ...page, from, back }
}

/** A name may begin with "-", which in a cursor means backwards. */
function toCursor(key: string | number): string {
  const text = String(key)
  return text.startsWith("-") ? `+${text}` : text
}

/** A list without pages. */
export type WholeListing<T> = Promise<T[]> & AsyncIterable<T>

export function wholeListing<T>(all: Promise<T[]>): WholeListing<T> {
  async function* entries(): AsyncGenerator<T> {
    yield* await all
  }
  return Object.assign(all, { [Symbol.asyncIterator]: entries })
}
