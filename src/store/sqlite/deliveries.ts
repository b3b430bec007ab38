/** Deliveries: reading and counting them. */
import { Conditions, ofDeliveries, oldestFirst } from "../conditions.ts"
import { orNull, toDeadGroup, toDelivery, toStatusCounts } from "../rows.ts"
import { countByStatusOf, groupDeadOf } from "../statements.ts"
import type { Delivery, DeliveryFilter, Page } from "../store.ts"
import { SQLITE } from "./conditions.ts"
import type { Context, Operation } from "./context.ts"
import { readAll, readPage } from "./page.ts"
import { indexOf } from "./search-bound.ts"

const SELECT = "SELECT d.* FROM webhook_deliveries d"

export const getDelivery: Operation<"getDelivery"> = ({ connection }, orgId, id) => {
  const where = new Conditions(SQLITE).narrow("d.id = ?", id).tenant(orgId, "applications", "d.app_id")
  return orNull(connection.sql(`${SELECT} WHERE ${where}`).get(...where.values), toDelivery)
}

export const listDeliveries: Operation<"listDeliveries"> = (context, filter, page) =>
  read(context, filter, page)

function read(context: Context, filter: DeliveryFilter, page: Page, upTo?: number): Delivery[] {
  const where = ofDeliveries(SQLITE, filter).narrow("d.seq <= ?", upTo)
  const { hint, isInEras } = filter.rows === undefined ? byNumber(filter) : indexOf(filter)
  return readPage(context, `${SELECT} ${hint}`, where, "d.seq", page, isInEras).map(toDelivery)
}

/** Waiting deliveries are read by number, too: SQLite would read their lanes by due time, and sort a million rows for each page. */
function byNumber({ live, endpointId, messageId }: DeliveryFilter) {
  const isInEras = endpointId !== undefined && messageId === undefined
  if (!live || messageId !== undefined) return { hint: "", isInEras }
  return { hint: isInEras ? "INDEXED BY deliveries_endpoint" : "NOT INDEXED", isInEras }
}

/** For tasks: the oldest deliveries after the cursor. */
export function rangeOfDeliveries(
  context: Context,
  filter: DeliveryFilter,
  after: number,
  upTo: number,
  limit: number,
): Delivery[] {
  return read(context, filter, oldestFirst(after, limit), upTo)
}

/** The index of waiting deliveries. Left to itself, SQLite prefers another one and reads all finished rows. */
const BY_LANE = "INDEXED BY deliveries_live"

function countedBy(filter: DeliveryFilter): string {
  if (filter.rows !== undefined) return indexOf(filter).hint
  const { live, appId, endpointId, messageId } = filter
  const isOfLanes = live && messageId === undefined && (endpointId ?? appId) !== undefined
  return isOfLanes ? BY_LANE : ""
}

/**
 * For a task that removes each delivery that it reads from its lane: the next ones are at the front of the lanes again. A page by number out
 * of a lane with a million rows takes 200 ms, or reads all that the endpoint has finished; this takes 1.
 */
export function frontOfLanes(
  context: Context,
  filter: Pick<DeliveryFilter, "appId" | "endpointId">,
  upTo: number,
  limit: number,
): Delivery[] {
  const where = ofDeliveries(SQLITE, { ...filter, live: true }).narrow("d.seq <= ?", upTo)
  const text = `${SELECT} ${BY_LANE} WHERE ${where} LIMIT ${where.parameter(limit)}`
  return readAll(context, text, where).map(toDelivery)
}

export const countDeliveries: Operation<"countDeliveries"> = (context, filter) => {
  const where = ofDeliveries(SQLITE, filter)
  const text = `SELECT count(*) AS n FROM webhook_deliveries d ${countedBy(filter)} WHERE ${where}`
  return readAll(context, text, where)[0]!.n as number
}

export const countByStatus: Operation<"countByStatus"> = (context, filter) => {
  const where = ofDeliveries(SQLITE, filter)
  return toStatusCounts(
    readAll(context, countByStatusOf(where, `webhook_deliveries d ${countedBy(filter)}`), where),
  )
}

export const groupDead: Operation<"groupDead"> = (context, filter, limit, by = "error") => {
  const where = ofDeliveries(SQLITE, filter)
  const text = groupDeadOf(where, limit, by, `webhook_deliveries d ${countedBy(filter)}`)
  return readAll(context, text, where).map(toDeadGroup)
}
