/** Endpoints: where webhooks go. */
import { notFound, PosthornError } from "../../core/errors.ts"
import { patchEndpoint, toEndpoint, toGate, toJson } from "../rows.ts"
import type { Endpoint, EndpointFilter, EndpointGate, EndpointPatch, Page, Task } from "../store.ts"
import { asList, Conditions } from "./conditions.ts"
import type { Context } from "./context.ts"
import { orConflict } from "./errors.ts"
import { readPage } from "./page.ts"
import { IN_BOTH_PARTS, LIVE } from "./schema.ts"
import { createTask } from "./tasks.ts"

/** A policy by name and the application's limit are read with the endpoint, so that whoever sends knows all of it from one row. */
const SELECT = `
  SELECT e.*, coalesce(e.retry_policy, p.policy) AS retry_policy, a.rate_limit AS app_rate_limit
    FROM endpoints e
    LEFT JOIN policies p ON p.org_id = e.org_id AND p.name = e.retry_name
    LEFT JOIN applications a ON a.id = e.app_id`

export function createEndpoint(context: Context, endpoint: Endpoint): void {
  orConflict("uid", `the application has an endpoint with uid "${endpoint.uid}" already`, () =>
    context.connection
      .sql(`
        INSERT INTO endpoints (
          uid, url, description, event_types, channels, headers, metadata, retry_name, retry_policy, ordered, concurrency, rate_limit,
          disabled, paused, hold_until, gate_epoch, resumed_at, secrets, version, updated_at, api_version, id, org_id, app_id, created_at
        ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
      .run(...changeable(endpoint), endpoint.id, endpoint.orgId, endpoint.appId, endpoint.createdAt),
  )
  context.forget()
}

function changeable(endpoint: Endpoint) {
  return [
    endpoint.uid,
    endpoint.url,
    endpoint.description,
    toJson(endpoint.eventTypes),
    toJson(endpoint.channels),
    toJson(endpoint.headers),
    toJson(endpoint.metadata),
    endpoint.retryName,
    // The join fills this in for a policy by name; only a policy of the endpoint's own is stored with it.
    endpoint.retryName === null ? endpoint.retryPolicy : null,
    Number(endpoint.ordered),
    endpoint.concurrency,
    endpoint.rateLimit,
    Number(endpoint.disabled),
    Number(endpoint.paused),
    endpoint.holdUntil,
    endpoint.gateEpoch,
    endpoint.resumedAt,
    endpoint.secrets,
    endpoint.version,
    endpoint.updatedAt,
    endpoint.apiVersion,
  ]
}

export function getEndpoint({ connection }: Context, appId: string, key: string): Endpoint | null {
  const row = connection
    .sql(
      `${SELECT} WHERE e.app_id = ?1 AND e.deleted_at IS NULL AND (e.id = ?2 OR e.uid = ?2) ORDER BY e.id = ?2 DESC LIMIT 1`,
    )
    .get(appId, key)
  return row === undefined ? null : toEndpoint(row)
}

export function getEndpoints({ connection }: Context, ids: readonly string[]): Endpoint[] {
  return connection
    .sql(`${SELECT} WHERE e.id IN (SELECT value FROM json_each(?))`)
    .all(asList(ids)!)
    .map(toEndpoint)
}

/** The head of a line is one probe of deliveries_line. */
export function getGates({ connection }: Context, ids: readonly string[]): EndpointGate[] {
  return connection
    .sql(`
      SELECT e.id, e.deleted_at IS NOT NULL AS deleted, e.disabled, e.paused, e.hold_until, h.seq AS head, h.next_retry_at AS head_due
        FROM endpoints e
        LEFT JOIN webhook_deliveries h ON h.seq = (
          SELECT seq FROM webhook_deliveries INDEXED BY deliveries_line WHERE ${LIVE} AND rank < 1 AND webhook_id = e.id ORDER BY seq LIMIT 1
        )
       WHERE e.id IN (SELECT value FROM json_each(?))`)
    .all(asList(ids)!)
    .map(toGate)
}

/** By id alone, deleted or not. */
export function readEndpoint({ connection }: Context, id: string): Endpoint | null {
  const row = connection.sql(`${SELECT} WHERE e.id = ?`).get(id)
  return row === undefined ? null : toEndpoint(row)
}

export function listEndpoints(
  context: Context,
  { orgId, appId, endpointId, heldAfter }: EndpointFilter,
  page: Page<string>,
): Endpoint[] {
  const where = new Conditions()
    .narrow("e.org_id = ?", orgId)
    .narrow("e.app_id = ?", appId)
    .narrow("e.id = ?", endpointId)
    .narrow("e.hold_until > ?", heldAfter)
    .require("e.deleted_at IS NULL")
  return readPage(context, SELECT, where, "e.id", page).map(toEndpoint)
}

export function updateEndpoint(
  context: Context,
  id: string,
  patch: EndpointPatch,
  now: number,
  ifVersion?: number,
): Endpoint {
  const { connection } = context
  const before = readEndpoint(context, id)
  if (before === null) throw notFound("endpoint", id)
  if (ifVersion !== undefined && ifVersion !== before.version) {
    throw new PosthornError("conflict", `endpoint "${id}" was changed by somebody else; read it again`)
  }
  const after = patchEndpoint(before, patch, now)
  orConflict("uid", `the application has an endpoint with uid "${after.uid}" already`, () => {
    const { changes } = connection
      .sql(`
        UPDATE endpoints
           SET uid = ?, url = ?, description = ?, event_types = ?, channels = ?, headers = ?, metadata = ?, retry_name = ?, retry_policy = ?,
               ordered = ?, concurrency = ?, rate_limit = ?, disabled = ?, paused = ?, hold_until = ?, gate_epoch = ?, resumed_at = ?,
               secrets = ?, version = ?, updated_at = ?, api_version = ?
         WHERE id = ? AND deleted_at IS NULL`)
      .run(...changeable(after), id)
    if (changes === 0) throw notFound("endpoint", id)
  })
  // What waits moves between the line and the queues; finished rows keep what they were.
  if (after.ordered !== before.ordered) {
    connection
      .sql(`
        UPDATE webhook_deliveries INDEXED BY deliveries_live SET ordered = ? OR dated
         WHERE ${LIVE} AND ${IN_BOTH_PARTS} AND webhook_id = ?`)
      .run(Number(after.ordered), id)
  }
  context.forget()
  return readEndpoint(context, id)!
}

export function deleteEndpoint(context: Context, id: string, task: Task): void {
  const { changes } = context.connection
    .sql("UPDATE endpoints SET deleted_at = ?, version = version + 1 WHERE id = ? AND deleted_at IS NULL")
    .run(task.createdAt, id)
  if (changes === 0) throw notFound("endpoint", id)
  createTask(context, task)
  context.forget()
}
