/** Bounded searches: the indexes that they read, and where they end. */
import { Conditions } from "../conditions.ts"
import type { Row } from "../rows.ts"
import {
  boundedBy,
  EVERY_ROW,
  firstSeqAt,
  lastRowOf,
  SEARCHED,
  type SearchedTable,
  timesOf,
} from "../search-bound.ts"
import type { DeliveryFilter, Page, SearchRows, Span } from "../store.ts"
import { POSTGRES } from "./conditions.ts"
import type { Context, Operation } from "./context.ts"
import { readAll } from "./page.ts"

export type DeliveryTable = "webhook_deliveries_live" | "webhook_deliveries_done"

export function tablesOf({ status, live, calledOff }: DeliveryFilter): readonly DeliveryTable[] {
  if (live || status === "pending" || status === "failed") return ["webhook_deliveries_live"]
  if (status !== undefined || calledOff !== undefined) return ["webhook_deliveries_done"]
  return ["webhook_deliveries_live", "webhook_deliveries_done"]
}

/** The rows of the index that a bounded search of the table reads, as `d`; `where` gets the parameters. */
export function selectIndexed(
  where: Conditions<unknown>,
  table: DeliveryTable,
  filter: DeliveryFilter,
): string {
  const { appId, endpointId, status, calledOff, undiscarded, rows: { few } = EVERY_ROW } = filter
  if (table === "webhook_deliveries_live")
    return few === null ? `SELECT d.* FROM ${table} d` : selectLanes(where, filter, few)
  const isDead = status === "dead" || calledOff !== undefined
  const indexed = where
    .sibling()
    .requireIf(isDead, "d.status = 'dead'")
    .requireIf(isDead && undiscarded, "d.discarded_at IS NULL")
    .narrow("d.webhook_id = ?", endpointId)
    .narrow("d.app_id = ?", isDead && endpointId === undefined ? appId : undefined)
  return `SELECT d.* FROM ${table} d WHERE ${indexed}`
}

/** At most this number of waiting deliveries, in the order of their lanes: otherwise the planner may read the whole table. */
function selectLanes(
  where: Conditions<unknown>,
  { appId, endpointId }: DeliveryFilter,
  most: number,
): string {
  const limit = `LIMIT ${where.parameter(most)}`
  const select = "SELECT d.* FROM webhook_deliveries_live d"
  const inLane = `ORDER BY d.rank, coalesce(d.next_retry_at, 0), d.seq ${limit}`
  if (endpointId !== undefined)
    return `${select} WHERE d.webhook_id = ${where.parameter(endpointId)} ${inLane}`
  if (appId === undefined) return `${select} ${limit}`
  return `
    SELECT d.* FROM endpoints e CROSS JOIN LATERAL (${select} WHERE d.webhook_id = e.id ${inLane}) d
     WHERE e.app_id = ${where.parameter(appId)} ${limit}`
}

export const boundDeliveries: Operation<"boundDeliveries"> = async (context, filter, page, most) => {
  if (filter.messageId !== undefined) return { filter, end: null }
  const tables = tablesOf(filter)
  const few =
    tables.includes("webhook_deliveries_live") && (await countLive(context, filter, most + 1)) <= most
      ? most
      : null
  const rows = { ...(await rowsOf(context, SEARCHED.deliveries, filter)), few }
  const bounded = { ...filter, rows }
  const searched = tables.filter((table) => few === null || table !== "webhook_deliveries_live")
  const last = await Promise.all(
    searched.map((table) => {
      const where = new Conditions(POSTGRES)
      const from = `(${selectIndexed(where, table, bounded)}) d`
      return lastRow(context, where, from, { seq: "d.seq", time: "d.received_at" }, rows, page, most)
    }),
  )
  return boundedBy(filter, rows, page, last)
}

/** Waiting deliveries of an endpoint, an application or all; it stops at `most`. */
async function countLive(context: Context, filter: DeliveryFilter, most: number): Promise<number> {
  const where = new Conditions(POSTGRES)
  const rows = selectLanes(where, filter, most)
  const [row] = await readAll(context, `SELECT count(*) AS n FROM (${rows}) live`, where)
  return row!.n as number
}

export const boundMessages: Operation<"boundMessages"> = async (context, filter, page, most) => {
  const rows = await rowsOf(context, SEARCHED.messages, filter)
  const where = new Conditions(POSTGRES).narrow("m.app_id = ?", filter.appId)
  const columns = { seq: "m.seq", time: "m.received_at" }
  const last = await lastRow(context, where, "messages m", columns, rows, page, most)
  return boundedBy(filter, rows, page, [last])
}

const ATTEMPT = { seq: "a.seq", time: "a.started_at" }

/** An application's attempts are read endpoint by endpoint, and each endpoint gets its share of the rows. */
export const boundAttempts: Operation<"boundAttempts"> = async (context, filter, page, most) => {
  const { appId, endpointId, deliveryId, messageId } = filter
  if ((deliveryId ?? messageId ?? endpointId ?? appId) === undefined) return { filter, end: null }
  if ((deliveryId ?? messageId) !== undefined) return { filter, end: null }
  if (endpointId !== undefined) {
    const rows = await rowsOf(context, SEARCHED.attempts, filter, endpointId)
    const where = new Conditions(POSTGRES).narrow("a.webhook_id = ?", endpointId)
    return boundedBy(filter, rows, page, [
      await lastRow(context, where, "attempts a", ATTEMPT, rows, page, most),
    ])
  }
  const ofApp = new Conditions(POSTGRES).narrow("app_id = ?", appId)
  const [count] = await readAll(context, `SELECT count(*) AS n FROM endpoints WHERE ${ofApp}`, ofApp)
  const share = Math.max(Math.ceil(most / Math.max(count!.n as number, 1)), page.limit)
  const where = new Conditions(POSTGRES).require("a.webhook_id = e.id")
  const last = lastRowOf(where, "attempts a", ATTEMPT, EVERY_ROW, page, share)
  const text = `
    SELECT l.* FROM endpoints e CROSS JOIN LATERAL (${last}) l WHERE e.app_id = ${where.parameter(appId!)}`
  return boundedBy(filter, EVERY_ROW, page, await readAll(context, text, where))
}

async function lastRow(
  context: Context,
  where: Conditions<unknown>,
  from: string,
  columns: Parameters<typeof lastRowOf>[2],
  rows: SearchRows,
  page: Page,
  most: number,
): Promise<Row | undefined> {
  const text = lastRowOf(where, from, columns, rows, page, most)
  return (await readAll(context, text, where))[0]
}

/** The rows of a span. Attempts have an index by number only for each endpoint. */
async function rowsOf(
  context: Context,
  table: SearchedTable,
  span: Span,
  endpointId?: string,
): Promise<SearchRows> {
  const { least, most } = timesOf(table, span)
  const seqAt = async (ms: number) => {
    const isOf = (where: Conditions<unknown>) =>
      endpointId === undefined ? "true" : `t.webhook_id = ${where.parameter(endpointId)}`
    const { text, where } = firstSeqAt(POSTGRES, table, ms, isOf)
    return (await readAll(context, text, where))[0]!.seq as number
  }
  return {
    least: least === null ? EVERY_ROW.least : await seqAt(least),
    most: most === null ? EVERY_ROW.most : (await seqAt(most)) - 1,
    few: null,
  }
}
