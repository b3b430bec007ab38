/** Endpoints: where webhooks go. With each there is a lane, which is woken by every change: it may have been held. */
import { notFound, PosthornError } from "../../core/errors.ts"
import { toEndpoint, toJson } from "../rows.ts"
import type { Endpoint, EndpointPatch, Task } from "../store.ts"
import type { Runner } from "./connection.ts"
import type { Context } from "./context.ts"
import { orConflict } from "./errors.ts"
import type { Statement } from "./statement.ts"
import { insertTask } from "./tasks.ts"

/** A policy by name is read with the endpoint, so that whoever sends knows the whole policy from one row. */
const SELECT = `
  SELECT e.*, coalesce(e.retry_policy, p.policy) AS retry_policy
    FROM endpoints e LEFT JOIN policies p ON p.name = e.retry_name`

const CREATE: Statement = {
  name: "endpoints.create",
  text: `
    WITH lane AS (INSERT INTO lanes (id, app_id) VALUES ($1, $20))
    INSERT INTO endpoints (
      id, uid, url, description, event_types, channels, headers, metadata, retry_name, retry_policy, ordered, concurrency, rate_limit,
      disabled, paused, hold_until, secrets, version, updated_at, app_id, created_at
    ) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)`,
}

/** Held until the end of the transaction, so that a policy is not deleted while an endpoint begins to use it. */
const HOLD_POLICY: Statement = {
  name: "endpoints.hold-policy",
  text: "SELECT name FROM policies WHERE name = $1 FOR KEY SHARE",
}

export async function createEndpoint({ database }: Context, endpoint: Endpoint): Promise<void> {
  await orConflict("uid", taken(endpoint.uid), () =>
    database.transaction(async (runner) => {
      await holdPolicy(runner, endpoint.retryName)
      await runner.run(CREATE, [...changeable(endpoint), endpoint.appId, endpoint.createdAt])
    }),
  )
}

async function holdPolicy(runner: Runner, name: string | null): Promise<void> {
  if (name !== null) await runner.run(HOLD_POLICY, [name])
}

function taken(uid: string | null | undefined): string {
  return `the application has an endpoint with uid "${uid}" already`
}

function changeable(endpoint: Endpoint): unknown[] {
  return [
    endpoint.id,
    endpoint.uid,
    endpoint.url,
    endpoint.description,
    endpoint.eventTypes,
    endpoint.channels,
    toJson(endpoint.headers),
    toJson(endpoint.metadata),
    endpoint.retryName,
    // The join fills this in for a policy by name; only a policy of the endpoint's own is stored with it.
    endpoint.retryName === null ? endpoint.retryPolicy : null,
    endpoint.ordered,
    endpoint.concurrency,
    endpoint.rateLimit,
    endpoint.disabled,
    endpoint.paused,
    endpoint.holdUntil,
    endpoint.secrets,
    endpoint.version,
    endpoint.updatedAt,
  ]
}

const GET: Statement = {
  name: "endpoints.get",
  text: `
    ${SELECT}
     WHERE e.app_id = $1 AND e.deleted_at IS NULL AND (e.id = $2 OR e.uid = $2) ORDER BY e.id = $2 DESC LIMIT 1`,
}

export async function getEndpoint(
  { database }: Context,
  appId: string,
  key: string,
): Promise<Endpoint | null> {
  const [row] = await database.run(GET, [appId, key])
  return row === undefined ? null : toEndpoint(row)
}

const LIST: Statement = {
  name: "endpoints.list",
  text: `${SELECT} WHERE e.app_id = $1 AND e.deleted_at IS NULL AND e.id > $2 ORDER BY e.id LIMIT $3`,
}

export async function listEndpoints(
  { database }: Context,
  appId: string,
  limit: number,
  after: string | null,
): Promise<Endpoint[]> {
  return (await database.runCalmly(LIST, [appId, after ?? "", limit])).map(toEndpoint)
}

const LOCK: Statement = {
  name: "endpoints.lock",
  text: `${SELECT} WHERE e.id = $1 AND e.deleted_at IS NULL FOR NO KEY UPDATE OF e`,
}
const UPDATE: Statement = {
  name: "endpoints.update",
  text: `
    WITH woken AS (INSERT INTO lane_wakes (lane_id, due_at) VALUES ($1, 0))
    UPDATE endpoints
       SET uid = $2, url = $3, description = $4, event_types = $5, channels = $6, headers = $7, metadata = $8, retry_name = $9,
           retry_policy = $10, ordered = $11, concurrency = $12, rate_limit = $13, disabled = $14, paused = $15, hold_until = $16,
           secrets = $17, version = $18, updated_at = $19
     WHERE id = $1`,
}
/** What waits moves between the line and the queues; finished rows keep what they were. */
const LINE_UP: Statement = {
  name: "endpoints.line-up",
  text: "UPDATE webhook_deliveries_live SET ordered = $2 WHERE webhook_id = $1 AND ordered <> $2",
}
const READ: Statement = { name: "endpoints.read", text: `${SELECT} WHERE e.id = $1` }

export function updateEndpoint(
  { database }: Context,
  id: string,
  patch: EndpointPatch,
  now: number,
  ifVersion?: number,
): Promise<Endpoint> {
  return orConflict("uid", taken(patch.uid), () =>
    database.transactionCalmly(async (runner) => {
      await holdPolicy(runner, patch.retryName ?? null)
      const [row] = await runner.run(LOCK, [id])
      if (row === undefined) throw notFound("endpoint", id)
      const before = toEndpoint(row)
      if (ifVersion !== undefined && ifVersion !== before.version) {
        throw new PosthornError("conflict", `endpoint "${id}" was changed by somebody else; read it again`)
      }
      const after: Endpoint = { ...before, ...patch, version: before.version + 1, updatedAt: now }
      await runner.run(UPDATE, changeable(after))
      if (after.ordered !== before.ordered) await runner.run(LINE_UP, [id, after.ordered])
      const [read] = await runner.run(READ, [id])
      return toEndpoint(read!)
    }),
  )
}

const DELETE: Statement = {
  name: "endpoints.delete",
  text: `
    WITH gone AS (
      UPDATE endpoints SET deleted_at = $2, version = version + 1 WHERE id = $1 AND deleted_at IS NULL RETURNING id
    )
    INSERT INTO lane_wakes (lane_id, due_at) SELECT id, 0 FROM gone RETURNING lane_id`,
}

export async function deleteEndpoint({ database }: Context, id: string, task: Task): Promise<void> {
  await database.transaction(async (runner) => {
    const gone = await runner.run(DELETE, [id, task.createdAt])
    if (gone.length === 0) throw notFound("endpoint", id)
    await insertTask(runner, task)
  })
}
