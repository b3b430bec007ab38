/** Bounded searches: the indexes that they read, and where they end. */
import { Conditions } from "../conditions.ts"
import {
  boundedBy,
  EVERY_ROW,
  firstSeqAt,
  lastRowOf,
  SEARCHED,
  type SearchedTable,
  timesOf,
} from "../search-bound.ts"
import type { DeliveryFilter, SearchRows, Span } from "../store.ts"
import { SQLITE } from "./conditions.ts"
import type { Context, Operation } from "./context.ts"
import { readAll } from "./page.ts"
import { eraOf } from "./schema.ts"

interface DeliveryIndex {
  readonly hint: string
  readonly where: Conditions<string | number>
  readonly isInEras?: boolean
}

/** The index that a bounded search of deliveries reads, with the conditions that the index has. */
export function indexOf(filter: DeliveryFilter): DeliveryIndex {
  const { appId, endpointId, status, calledOff, undiscarded, rows } = filter
  const where = new Conditions(SQLITE)
  if (rows !== undefined && rows.few !== null) return { hint: "INDEXED BY deliveries_live", where }
  const isDead = status === "dead" || calledOff !== undefined
  if (isDead && endpointId !== undefined && undiscarded)
    return {
      hint: "INDEXED BY deliveries_dead_endpoint",
      where: where
        .require("d.status = 'dead' AND d.discarded_at IS NULL")
        .narrow("d.webhook_id = ?", endpointId),
    }
  if (endpointId !== undefined)
    return {
      hint: "INDEXED BY deliveries_endpoint",
      where: where.narrow("d.webhook_id = ?", endpointId),
      isInEras: true,
    }
  if (!isDead) return { hint: "NOT INDEXED", where }
  const ofApp = where.require("d.status = 'dead'").narrow("d.app_id = ?", appId)
  return {
    hint: `INDEXED BY ${appId === undefined ? "deliveries_dead_seq" : "deliveries_dead"}`,
    where: ofApp,
  }
}

export const boundDeliveries: Operation<"boundDeliveries"> = (context, filter, page, most) => {
  if (filter.messageId !== undefined) return { filter, end: null }
  const isLive = filter.live || filter.status === "pending" || filter.status === "failed"
  if (isLive && countLive(context, filter, most + 1) <= most)
    return { filter: { ...filter, live: true, rows: { ...EVERY_ROW, few: most } }, end: null }
  const rows = rowsOf(context, SEARCHED.deliveries, filter)
  const { hint, where, isInEras } = indexOf(filter)
  const columns = {
    seq: "d.seq",
    time: "d.received_at",
    ...(isInEras ? { eras: eraOf("d.seq") } : {}),
  }
  const text = lastRowOf(where, `webhook_deliveries d ${hint}`, columns, rows, page, most)
  return boundedBy(filter, rows, page, readAll(context, text, where))
}

/** Waiting deliveries of an endpoint, an application or all; it stops at `most`. */
function countLive(context: Context, { appId, endpointId }: DeliveryFilter, most: number): number {
  const where = new Conditions(SQLITE).require(SQLITE.live).narrow("d.webhook_id = ?", endpointId)
  if (endpointId === undefined)
    where.narrow(SQLITE.oneOfQuery("d.webhook_id", "SELECT id FROM endpoints WHERE app_id = ?"), appId)
  const rows = `SELECT 1 FROM webhook_deliveries d INDEXED BY deliveries_live WHERE ${where} LIMIT ${where.parameter(most)}`
  return readAll(context, `SELECT count(*) AS n FROM (${rows})`, where)[0]!.n as number
}

export const boundMessages: Operation<"boundMessages"> = (context, filter, page, most) => {
  const rows = rowsOf(context, SEARCHED.messages, filter)
  const where = new Conditions(SQLITE).narrow("m.app_id = ?", filter.appId)
  const columns = { seq: "m.seq", time: "m.received_at" }
  const text = lastRowOf(where, "messages m", columns, rows, page, most)
  return boundedBy(filter, rows, page, readAll(context, text, where))
}

/** An application's attempts are read endpoint by endpoint, and each endpoint gets its share of the rows. */
export const boundAttempts: Operation<"boundAttempts"> = (context, filter, page, most) => {
  const { appId, endpointId, deliveryId, messageId } = filter
  if ((deliveryId ?? messageId) !== undefined) return { filter, end: null }
  const rows = rowsOf(context, SEARCHED.attempts, filter)
  const lastOf = (id: string | undefined, share: number) => {
    const where = new Conditions(SQLITE).narrow("a.webhook_id = ?", id)
    const eras = id === undefined ? {} : { eras: eraOf("a.seq") }
    const columns = { seq: "a.seq", time: "a.started_at", ...eras }
    return readAll(context, lastRowOf(where, "attempts a", columns, rows, page, share), where)
  }
  if (endpointId !== undefined || appId === undefined)
    return boundedBy(filter, rows, page, lastOf(endpointId, most))
  const endpoints = context.connection.sql("SELECT id FROM endpoints WHERE app_id = ?").all(appId)
  const share = Math.max(Math.ceil(most / Math.max(endpoints.length, 1)), page.limit)
  const last = endpoints.flatMap(({ id }) => lastOf(id as string, share))
  return boundedBy(filter, rows, page, last)
}

/** The rows of a span. */
function rowsOf(context: Context, table: SearchedTable, span: Span): SearchRows {
  const { least, most } = timesOf(table, span)
  const seqAt = (ms: number) => {
    const { text, where } = firstSeqAt(SQLITE, table, ms)
    return readAll(context, text, where)[0]!.seq as number
  }
  return {
    least: least === null ? EVERY_ROW.least : seqAt(least),
    most: most === null ? EVERY_ROW.most : seqAt(most) - 1,
    few: null,
  }
}
