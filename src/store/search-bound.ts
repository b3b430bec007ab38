/**
 * Bounded searches: a filter without an index of its own reads a limited number of rows of the list's index. Numbers rise with the time in the
 * ids, so a span of time is a range of numbers, found by halving.
 */
import { firstIdAt } from "../core/ids.ts"
import { Conditions, type Dialect, paging } from "./conditions.ts"
import type { Row } from "./rows.ts"
import type { Bounded, Page, SearchRows, Span } from "./store.ts"

/** Processes differ in their clocks, and write in batches. */
const SKEW_MS = 10_000
/** An attempt has its id when it ends, and a policy's longest timeout is ten minutes. */
const LONGEST_ATTEMPT_MS = 600_000

/** Tables with numbers and ids. `lateMs`: how much later than its time a row may get its id. */
export const SEARCHED = {
  deliveries: { table: "webhook_deliveries", prefix: "dlv", time: "received_at", lateMs: SKEW_MS },
  messages: { table: "messages", prefix: "msg", time: "received_at", lateMs: SKEW_MS },
  attempts: {
    table: "attempts",
    prefix: "atmpt",
    time: "started_at",
    lateMs: SKEW_MS + LONGEST_ATTEMPT_MS,
  },
} as const
export type SearchedTable = (typeof SEARCHED)[keyof typeof SEARCHED]

export const EVERY_ROW: SearchRows = { least: 0, most: Number.MAX_SAFE_INTEGER, few: null }

interface Query<V> {
  readonly text: string
  readonly where: Conditions<V>
}

/** The number of the first row at or after a time. `isOf` narrows the table to rows that have an index by number. */
export function firstSeqAt<V>(
  dialect: Dialect<V>,
  { table, prefix }: SearchedTable,
  ms: number,
  isOf: (where: Conditions<V>) => string = () => "true",
): Query<V> {
  const where = new Conditions(dialect)
  const last = `SELECT max(t.seq) FROM ${table} t WHERE ${isOf(where)}`
  const middle = "(low + high) / 2"
  /** Of the first row in the upper half. */
  const isEarlier = () => `(
    SELECT t.id FROM ${table} t WHERE ${isOf(where)} AND t.seq >= ${middle} ORDER BY t.seq LIMIT 1
  ) < ${where.parameter(firstIdAt(prefix, ms))}`
  const text = `
    WITH RECURSIVE halves(low, high) AS (
      SELECT CAST(0 AS bigint), CAST(coalesce((${last}), 0) + 1 AS bigint)
       UNION ALL
      SELECT CASE WHEN ${isEarlier()} THEN ${middle} + 1 ELSE low END, CASE WHEN ${isEarlier()} THEN high ELSE ${middle} END
        FROM halves WHERE low < high
    )
    SELECT min(high) AS seq FROM halves`
  return { text, where }
}

/** When to look for the ends of a span; null: the span is open there. */
export function timesOf({ lateMs }: SearchedTable, { since, until }: Span) {
  return {
    least: since === undefined ? null : since - SKEW_MS,
    most: until === undefined ? null : until + lateMs,
  }
}

/** The last row that a search reads, with its time as `at`; no row: the search reaches the end of the list. */
export function lastRowOf<V>(
  where: Conditions<V>,
  from: string,
  { seq, time, eras = "" }: { readonly seq: string; readonly time: string; readonly eras?: string },
  rows: SearchRows,
  page: Page,
  most: number,
): string {
  const { direction, limit } = paging(where.rows(seq, rows), seq, { ...page, limit: 1 })
  const order = `${eras === "" ? "" : `${eras} ${direction}, `}${seq} ${direction}`
  const offset = where.parameter(most - 1)
  return `SELECT ${seq} AS seq, ${time} AS at FROM ${from} WHERE ${where} ORDER BY ${order} LIMIT ${limit} OFFSET ${offset}`
}

/** `last`: of each part of the list that is longer than the search. */
export function boundedBy<F>(
  filter: F,
  rows: SearchRows,
  { order, back }: Page,
  last: readonly (Row | undefined)[],
): Bounded<F & { readonly rows: SearchRows }> {
  const upwards = (order === "ascending") !== back
  const ends = last
    .filter((row) => row !== undefined)
    .map((row) => ({ seq: row.seq as number, at: row.at as number }))
  const end = ends.sort((a, b) => (upwards ? a.seq - b.seq : b.seq - a.seq))[0] ?? null
  if (end === null) return { filter: { ...filter, rows }, end }
  const bounded = upwards ? { ...rows, most: end.seq } : { ...rows, least: end.seq }
  return { filter: { ...filter, rows: bounded }, end }
}
