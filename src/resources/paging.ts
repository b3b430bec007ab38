/** Lists in pages, in both directions: what a caller asks for, what the store reads, and what comes back. */
import { invalid } from "../core/errors.ts"
import { type IdPrefix, isId } from "../core/ids.ts"
import { refuseUnknown, requireObject, wholeNumber } from "../core/input.ts"
import type { Page } from "../store/store.ts"

/** A page of a list. */
export interface List<T> {
  readonly data: readonly T[]
  /** Where it ends: the page after this one begins behind it. Null when the page is empty. */
  readonly cursor: string | null
  /** Asks for the page before this one. Null when the page is empty. */
  readonly previous: string | null
  /** Nothing more follows in the direction that was asked for. */
  readonly done: boolean
}

export interface PageInput {
  /** At most 250; 50 unless told. */
  limit?: number
  /** The `cursor` of the page before, or the `previous` of the page after. */
  cursor?: string | null
  order?: Order
}

export type Order = "ascending" | "descending"

export const PAGE_FIELDS = ["limit", "cursor", "order"] as const

/** For lists that have no filter. */
export function onlyPage(input: PageInput): PageInput {
  requireObject(input, "page")
  refuseUnknown(input, PAGE_FIELDS, "")
  return input
}

/** For lists by the order in which things were accepted. */
export function pageBySeq(input: PageInput, order: Order = "descending"): Page {
  return parsePage(input, order, (cursor) => (/^\d{1,15}$/.test(cursor) ? Number(cursor) : null))
}

/** For lists by id. */
export function pageById(prefix: IdPrefix, input: PageInput): Page<string> {
  return parsePage(input, "ascending", (cursor) => (isId(prefix, cursor) ? cursor : null))
}

/** For lists by name. */
export function pageByName(input: PageInput): Page<string> {
  return parsePage(input, "ascending", (cursor) =>
    /^\+?[\w\-.]{1,256}$/.test(cursor) ? cursor.replace("+", "") : null,
  )
}

function parsePage<C extends string | number>(
  input: PageInput,
  order: Order,
  read: (cursor: string) => C | null,
): Page<C> {
  requireObject(input, "page")
  const limit = input.limit === undefined ? 50 : wholeNumber(input.limit, "limit", 1, 250)
  if (input.order !== undefined && input.order !== "ascending" && input.order !== "descending")
    throw invalid("order", "must be ascending or descending")
  const { cursor = null } = input
  const page = { limit, order: input.order ?? order, from: null, back: false }
  if (cursor === null) return page
  const back = typeof cursor === "string" && cursor.startsWith("-")
  const from = typeof cursor === "string" ? read(back ? cursor.slice(1) : cursor) : null
  if (from === null) throw invalid("cursor", "must be one that a list returned")
  return { ...page, from, back }
}

/** One row more than asked for is read, to know whether anything follows. */
export async function listPage<R, T, C extends string | number>(
  page: Page<C>,
  read: (page: Page<C>) => Promise<readonly R[]>,
  key: (row: R) => C,
  show: (row: R) => T,
): Promise<List<T>> {
  const rows = await read({ ...page, limit: page.limit + 1 })
  const done = rows.length <= page.limit
  const kept = done ? rows : page.back ? rows.slice(1) : rows.slice(0, page.limit)
  const first = kept[0]
  return {
    data: kept.map(show),
    cursor: first === undefined ? null : toCursor(key(kept.at(-1)!)),
    previous: first === undefined ? null : `-${toCursor(key(first))}`,
    done,
  }
}

/** Awaited, the page that was asked for. Iterated, that page and all that follow it in its direction. */
export type Listing<T> = Promise<List<T>> & AsyncIterable<T>

export function listing<T, Q extends PageInput>(query: Q, read: (query: Q) => Promise<List<T>>): Listing<T> {
  const first = read(query)
  async function* everyOne(): AsyncGenerator<T> {
    let page = await first
    const back = query.cursor?.startsWith("-") ?? false
    for (;;) {
      yield* back ? page.data.toReversed() : page.data
      if (page.done) return
      page = await read({ ...query, cursor: back ? page.previous : page.cursor })
    }
  }
  return Object.assign(first, { [Symbol.asyncIterator]: everyOne })
}

/** For lists that have no pages. */
export type WholeListing<T> = Promise<T[]> & AsyncIterable<T>

export function wholeListing<T>(all: Promise<T[]>): WholeListing<T> {
  async function* everyOne(): AsyncGenerator<T> {
    yield* await all
  }
  return Object.assign(all, { [Symbol.asyncIterator]: everyOne })
}

/** A name may begin with the sign that means backwards. */
function toCursor(key: string | number): string {
  const text = String(key)
  return text.startsWith("-") ? `+${text}` : text
}
