/** Endpoints: where webhooks go. */
import { notFound } from "../../core/errors.ts"
import { FIRST_ATTEMPT_RANKS, selectActivity } from "../activity.ts"
import { endpointValues } from "../columns.ts"
import { ofEndpoints } from "../conditions.ts"
import { endpointChanged, endpointNotDisabled, endpointUidTaken } from "../refusals.ts"
import { orNull, patchEndpoint, toActivity, toEndpoint, toGate } from "../rows.ts"
import {
  GET_ENDPOINT,
  INSERT_ENDPOINT,
  READ_ENDPOINT,
  SELECT_ENDPOINTS,
  UPDATE_ENDPOINT,
} from "../statements.ts"
import type { Endpoint, EndpointPatch } from "../store.ts"
import { SQLITE } from "./conditions.ts"
import type { Context, Operation } from "./context.ts"
import { orRefuse } from "./errors.ts"
import { readPage } from "./page.ts"
import { IN_BOTH_PARTS, LIVE } from "./schema.ts"
import { createTask } from "./tasks.ts"

export const createEndpoint: Operation<"createEndpoint"> = (context, endpoint) => {
  write(context, INSERT_ENDPOINT, endpoint)
  context.forget()
}

/** False when there is no such endpoint. */
function write({ connection }: Context, text: string, endpoint: Endpoint): boolean {
  const values = endpointValues(endpoint).map((value) => {
    if (typeof value === "boolean") return Number(value)
    return Array.isArray(value) ? JSON.stringify(value) : (value as string | number | Uint8Array | null)
  })
  return orRefuse(
    () => endpointUidTaken(endpoint.uid),
    () => connection.sql(text).run(...values).changes === 1,
  )
}

export const getEndpoint: Operation<"getEndpoint"> = ({ connection }, appId, key) =>
  orNull(connection.sql(GET_ENDPOINT.text).get(appId, key), toEndpoint)

export const getEndpoints: Operation<"getEndpoints"> = ({ connection }, ids) =>
  connection
    .sql(`${SELECT_ENDPOINTS} WHERE ${SQLITE.oneOf("e.id")}`)
    .all(SQLITE.toParameter(ids))
    .map(toEndpoint)

/** The head of an ordered lane is one probe of deliveries_line. */
export const getGates: Operation<"getGates"> = ({ connection }, ids) =>
  connection
    .sql(`
      SELECT e.id, e.url, e.deleted_at IS NOT NULL AS deleted, e.disabled, e.paused, e.hold_until, e.breaker_until, e.protection, h.seq AS head, h.next_retry_at AS head_due
        FROM endpoints e
        LEFT JOIN webhook_deliveries h ON h.seq = (
          SELECT seq FROM webhook_deliveries INDEXED BY deliveries_line WHERE ${LIVE} AND rank < 1 AND webhook_id = e.id ORDER BY seq LIMIT 1
        )
       WHERE ${SQLITE.oneOf("e.id")}`)
    .all(SQLITE.toParameter(ids))
    .map(toGate)

const FIRST_ATTEMPTS = [0, 1].flatMap((handed) =>
  FIRST_ATTEMPT_RANKS.map(
    (rank) => `
      SELECT max(received_at, coalesce(next_retry_at, 0)) AS at FROM webhook_deliveries INDEXED BY deliveries_live
       WHERE ${LIVE} AND handed = ${handed} AND webhook_id = i.id AND rank = ${rank} AND coalesce(next_retry_at, 0) <= ?1
       ORDER BY coalesce(next_retry_at, 0), seq LIMIT 1`,
  ),
)
const RETRY = `
  SELECT received_at AS at FROM webhook_deliveries INDEXED BY deliveries_retrying
   WHERE ${LIVE} AND attempt_count > 0 AND webhook_id = i.id ORDER BY received_at LIMIT 1`
const GET_ACTIVITY = `${selectActivity("endpoints", [...FIRST_ATTEMPTS, RETRY])}
  WHERE i.id IN (SELECT value FROM json_each(?2))`

export const getActivity: Operation<"getActivity"> = ({ connection }, ids, now) =>
  connection.sql(GET_ACTIVITY).all(now, SQLITE.toParameter(ids)).map(toActivity)

/** By id alone, deleted or not. */
export function readEndpoint({ connection }: Context, id: string): Endpoint | null {
  return orNull(connection.sql(READ_ENDPOINT.text).get(id), toEndpoint)
}

export const listEndpoints: Operation<"listEndpoints"> = (context, filter, page) =>
  readPage(context, SELECT_ENDPOINTS, ofEndpoints(SQLITE, filter), "e.id", page).map(toEndpoint)

export const updateEndpoint: Operation<"updateEndpoint"> = (context, id, patch, now) =>
  update(context, id, patch, now)

export const updateEndpointIfVersion: Operation<"updateEndpointIfVersion"> = update

function update(context: Context, id: string, patch: EndpointPatch, now: number, version?: number): Endpoint {
  const before = readEndpoint(context, id)
  if (before === null) throw notFound("endpoint", id)
  if (version !== undefined && version !== before.version) throw endpointChanged(id)
  const after = patchEndpoint(before, patch, now)
  if (!write(context, UPDATE_ENDPOINT, after)) throw notFound("endpoint", id)
  // Waiting deliveries move between the ordered line and the queues; finished rows keep what they were.
  if (after.ordered !== before.ordered) {
    context.connection
      .sql(`
        UPDATE webhook_deliveries INDEXED BY deliveries_live SET ordered = ? OR dated
         WHERE ${LIVE} AND ${IN_BOTH_PARTS} AND webhook_id = ?`)
      .run(Number(after.ordered), id)
  }
  context.forget()
  return readEndpoint(context, id)!
}

export const enableEndpointIfDisabled: Operation<"enableEndpointIfDisabled"> = (context, id, now, tasks) => {
  if (readEndpoint(context, id)?.disabled === false) throw endpointNotDisabled(id)
  const enabled = update(context, id, { disabled: false }, now)
  for (const task of tasks) createTask(context, task)
  return enabled
}

export const deleteEndpoint: Operation<"deleteEndpoint"> = (context, id, task) => {
  const { changes } = context.connection
    .sql("UPDATE endpoints SET deleted_at = ?, version = version + 1 WHERE id = ? AND deleted_at IS NULL")
    .run(task.createdAt, id)
  if (changes === 0) throw notFound("endpoint", id)
  createTask(context, task)
  context.forget()
}
