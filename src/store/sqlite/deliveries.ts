/** Deliveries: reading them. */
import { toDelivery } from "../rows.ts"
import type { Delivery, DeliveryFilter, Page } from "../store.ts"
import { asList, Conditions, responseClassOf, throughMessage } from "./conditions.ts"
import type { Context } from "./context.ts"
import { oldestFirst, readPage } from "./page.ts"
import { IN_BOTH_PARTS, LIVE } from "./schema.ts"

const SELECT = "SELECT d.* FROM webhook_deliveries d"

export function getDelivery({ connection }: Context, orgId: string, id: string): Delivery | null {
  const where = new Conditions().narrow("d.id = ?", id).tenant(orgId, "applications", "d.app_id")
  const row = connection.sql(`${SELECT} WHERE ${where}`).get(...where.values)
  return row === undefined ? null : toDelivery(row)
}

export function listDeliveries(context: Context, filter: DeliveryFilter, page: Page): Delivery[] {
  return readDeliveries(context, filter, conditions(filter), page)
}

function readDeliveries(context: Context, filter: DeliveryFilter, where: Conditions, page: Page): Delivery[] {
  const inEras = filter.endpointId !== undefined && filter.messageId === undefined
  return readPage(context, `${SELECT} ${byNumber(filter)}`, where, "d.seq", page, inEras).map(toDelivery)
}

/** Waiting deliveries are read by number, too: SQLite would take their lanes by due time, and sort a million rows for each page. */
function byNumber({ live, endpointId, messageId }: DeliveryFilter): string {
  if (!live || messageId !== undefined) return ""
  return endpointId === undefined ? "NOT INDEXED" : "INDEXED BY deliveries_endpoint"
}

/** Between two numbers, for tasks. */
export function rangeOfDeliveries(
  context: Context,
  filter: DeliveryFilter,
  after: number,
  upTo: number,
  limit: number,
): Delivery[] {
  const where = conditions(filter).narrow("d.seq <= ?", upTo)
  return readDeliveries(context, filter, where, oldestFirst(after, limit))
}

/** The index of what waits: SQLite by itself prefers another, and goes through all that is finished. */
const BY_LANE = "INDEXED BY deliveries_live"

/** By the lanes of an endpoint or an application, if that is where what fits the filter waits. */
export function byLane({ live, appId, endpointId, messageId }: DeliveryFilter): string {
  const isOfLanes = live && messageId === undefined && (endpointId ?? appId) !== undefined
  return isOfLanes ? BY_LANE : ""
}

/**
 * For a task that takes away whatever it reads: the next are at the front of the lanes again. By number, a page out of a lane with a
 * million rows would take 200 ms, or a walk through all that the endpoint has finished; so it takes 1.
 */
export function frontOfLanes(
  { connection }: Context,
  filter: Pick<DeliveryFilter, "appId" | "endpointId">,
  upTo: number,
  limit: number,
): Delivery[] {
  const where = conditions({ ...filter, live: true }).narrow("d.seq <= ?", upTo)
  return connection
    .once(`${SELECT} ${BY_LANE} WHERE ${where} LIMIT ?`)
    .all(...where.values, limit)
    .map(toDelivery)
}

/** Dead, and yet not given up. */
export const CALLED_OFF = "d.dead_reason IN ('cancelled', 'expunged')"

/** The same as by `app_id`, through the index that has lanes and no applications. */
const OF_LANES = "d.webhook_id IN (SELECT id FROM endpoints WHERE app_id = ?)"

/** Found by the primary key of the endpoints, for each delivery. */
const ENDPOINT_SENDS =
  "EXISTS (SELECT 1 FROM endpoints e WHERE e.id = d.webhook_id AND NOT (e.paused OR e.disabled))"

const LAST_RESPONSE_CLASS = `
  (SELECT ${responseClassOf("a")} FROM attempts a WHERE a.delivery_id = d.id ORDER BY a.seq DESC LIMIT 1)`

/** Of the table `d`. The literal 'dead' lets SQLite use the index of dead letters. */
export function conditions(filter: DeliveryFilter): Conditions {
  const where = new Conditions()
  if (filter.status === "dead") where.require("d.status = 'dead'")
  else where.narrow("d.status = ?", filter.status)
  if (filter.live) where.require(`d.${LIVE} AND d.${IN_BOTH_PARTS}`)
  if (filter.calledOff !== undefined)
    where.require(`d.status = 'dead' AND (${CALLED_OFF}) IS ${filter.calledOff ? "TRUE" : "NOT TRUE"}`)
  if (filter.undiscarded) where.require("d.discarded_at IS NULL")
  if (filter.endpointSends) where.require(ENDPOINT_SENDS)
  const { eventTypes, ...ofMessage } = filter
  return where
    .narrow(filter.live ? OF_LANES : "d.app_id = ?", filter.appId)
    .narrow("d.webhook_id = ?", filter.endpointId)
    .narrow("d.message_id = ?", filter.messageId)
    .narrow("d.dead_reason = ?", filter.deadReason)
    .narrow("d.event_type IN (SELECT value FROM json_each(?))", asList(eventTypes))
    .narrow("(d.attempt_count > 0 OR d.dated OR coalesce(d.next_retry_at, 0) <= ?)", filter.startableBy)
    .narrow("(NOT d.dated OR d.next_retry_at <= ?)", filter.datesBy ?? filter.startableBy)
    .span("d.received_at", filter)
    .tenant(filter.orgId, "applications", "d.app_id")
    .content(ofMessage, throughMessage("d.message_id"))
    .narrow(`${LAST_RESPONSE_CLASS} = ?`, filter.responseClass)
}
