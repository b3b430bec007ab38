/** Endpoints: where webhooks go. */
import { notFound, PosthornError } from "../../core/errors.ts"
import { toEndpoint, toJson } from "../rows.ts"
import type { Endpoint, EndpointPatch, Task } from "../store.ts"
import type { Context } from "./context.ts"
import { orConflict } from "./errors.ts"
import { createTask } from "./tasks.ts"

/** A policy by name is read with the endpoint, so that whoever sends knows the whole policy from one row. */
const SELECT = `
  SELECT e.*, coalesce(e.retry_policy, p.policy) AS retry_policy
    FROM endpoints e LEFT JOIN policies p ON p.name = e.retry_name`

export function createEndpoint(context: Context, endpoint: Endpoint): void {
  orConflict("uid", `the application has an endpoint with uid "${endpoint.uid}" already`, () =>
    context.connection
      .sql(`
        INSERT INTO endpoints (
          uid, url, description, event_types, channels, headers, metadata, retry_name, retry_policy, ordered, concurrency, rate_limit,
          disabled, paused, hold_until, secrets, version, updated_at, id, app_id, created_at
        ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
      .run(...changeable(endpoint), endpoint.id, endpoint.appId, endpoint.createdAt),
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
    endpoint.secrets,
    endpoint.version,
    endpoint.updatedAt,
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

/** By id alone, deleted or not. */
export function readEndpoint({ connection }: Context, id: string): Endpoint | null {
  const row = connection.sql(`${SELECT} WHERE e.id = ?`).get(id)
  return row === undefined ? null : toEndpoint(row)
}

export function listEndpoints(
  { connection }: Context,
  appId: string,
  limit: number,
  after: string | null,
): Endpoint[] {
  return connection
    .sql(`${SELECT} WHERE e.app_id = ? AND e.deleted_at IS NULL AND e.id > ? ORDER BY e.id LIMIT ?`)
    .all(appId, after ?? "", limit)
    .map(toEndpoint)
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
  const after: Endpoint = { ...before, ...patch, version: before.version + 1, updatedAt: now }
  orConflict("uid", `the application has an endpoint with uid "${after.uid}" already`, () => {
    const { changes } = connection
      .sql(`
        UPDATE endpoints
           SET uid = ?, url = ?, description = ?, event_types = ?, channels = ?, headers = ?, metadata = ?, retry_name = ?, retry_policy = ?,
               ordered = ?, concurrency = ?, rate_limit = ?, disabled = ?, paused = ?, hold_until = ?, secrets = ?, version = ?, updated_at = ?
         WHERE id = ? AND deleted_at IS NULL`)
      .run(...changeable(after), id)
    if (changes === 0) throw notFound("endpoint", id)
  })
  // What waits moves between the line and the queues; finished rows keep what they were.
  if (after.ordered !== before.ordered) {
    connection
      .sql(
        "UPDATE webhook_deliveries SET ordered = ? WHERE webhook_id = ? AND status IN ('pending', 'failed')",
      )
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
