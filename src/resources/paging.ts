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
  read(query: Q): Promise<(page: Page<C>) => Promise<readonly R[]>>
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
  { fields = [], by, read, show }: ListOptions<Q, R, T, C>,
): Promise<List<T>> {
  requireObject(query, "query")
  refuseUnknown(query, [...fields, "limit", "cursor", "order"], "")
  const page = parsePage(query, by)
  const readRows = await read(query)
  // One row more than requested shows whether more follow.
  const rows = await readRows({ ...page, limit: page.limit + 1 })
  const done = rows.length <= page.limit
  const kept = done ? rows : page.back ? rows.slice(1) : rows.slice(0, page.limit)
  const [first] = kept
  return {
    data: kept.map(show),
    cursor: first === undefined ? null : toCursor(by.key(kept.at(-1)!)),
    previous: first === undefined ? null : `-${toCursor(by.key(first))}`,
    done,
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
