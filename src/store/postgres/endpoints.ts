/** Endpoints: where webhooks go. With each there is a lane, which is woken by every change: it may have been held. */
import { notFound, PosthornError } from "../../core/errors.ts"
import { patchEndpoint, toEndpoint, toGate, toJson } from "../rows.ts"
import type { Endpoint, EndpointFilter, EndpointGate, EndpointPatch, Page, Task } from "../store.ts"
import { Conditions } from "./conditions.ts"
import type { Context } from "./context.ts"
import { orConflict } from "./errors.ts"
import { readPage } from "./page.ts"
import type { Statement } from "./statement.ts"
import { insertTask } from "./tasks.ts"

/** A policy by name, and its application's limit, are read with the endpoint: whoever sends knows all of it from one row. */
const SELECT = `
  SELECT e.*, coalesce(e.retry_policy, p.policy) AS retry_policy, o.rate_limit AS app_rate_limit
    FROM endpoints e
    JOIN applications o ON o.id = e.app_id
    LEFT JOIN policies p ON p.org_id = e.org_id AND p.name = e.retry_name`

const CREATE: Statement = {
  name: "endpoints.create",
  text: `
    WITH lane AS (INSERT INTO lanes (id, app_id) VALUES ($1, $23))
    INSERT INTO endpoints (
      id, uid, url, description, event_types, channels, headers, metadata, retry_name, retry_policy, ordered, concurrency, rate_limit,
      disabled, paused, hold_until, gate_epoch, resumed_at, secrets, version, updated_at, api_version, app_id, org_id, created_at
    ) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25)`,
}

/** Held until the end of the transaction, so that a policy is not deleted while an endpoint begins to use it. */
const HOLD_POLICY: Statement = {
  name: "endpoints.hold-policy",
  text: "SELECT name FROM policies WHERE org_id = $1 AND name = $2 FOR KEY SHARE",
}

export async function createEndpoint({ database }: Context, endpoint: Endpoint): Promise<void> {
  await orConflict("uid", taken(endpoint.uid), () =>
    database.transaction(async (runner) => {
      const { orgId, appId, retryName, createdAt } = endpoint
      if (retryName !== null) await runner.run(HOLD_POLICY, [orgId, retryName])
      await runner.run(CREATE, [...changeable(endpoint), appId, orgId, createdAt])
    }),
  )
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
    endpoint.gateEpoch,
    endpoint.resumedAt,
    endpoint.secrets,
    endpoint.version,
    endpoint.updatedAt,
    endpoint.apiVersion,
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

const GET_MANY: Statement = { name: "endpoints.get-many", text: `${SELECT} WHERE e.id = ANY ($1)` }

export async function getEndpoints({ database }: Context, ids: readonly string[]): Promise<Endpoint[]> {
  return (await database.runCalmly(GET_MANY, [ids])).map(toEndpoint)
}

/** The head of a line is one probe of deliveries_live_line. */
const GET_GATES: Statement = {
  name: "endpoints.get-gates",
  text: `
    SELECT e.id, e.deleted_at IS NOT NULL AS deleted, e.disabled, e.paused, e.hold_until, h.seq AS head, h.next_retry_at AS head_due
      FROM endpoints e
      LEFT JOIN LATERAL (
        SELECT d.seq, d.next_retry_at FROM webhook_deliveries_live d WHERE d.webhook_id = e.id AND d.rank = 0 ORDER BY d.seq LIMIT 1
      ) h ON true
     WHERE e.id = ANY ($1)`,
}

export async function getGates({ database }: Context, ids: readonly string[]): Promise<EndpointGate[]> {
  return (await database.runCalmly(GET_GATES, [ids])).map(toGate)
}

export async function listEndpoints(
  context: Context,
  { orgId, appId, endpointId, heldAfter }: EndpointFilter,
  page: Page<string>,
): Promise<Endpoint[]> {
  const where = new Conditions()
    .narrow("e.org_id = ?", orgId)
    .narrow("e.app_id = ?", appId)
    .narrow("e.id = ?", endpointId)
    .narrow("e.hold_until > ?", heldAfter)
    .require("e.deleted_at IS NULL")
  return (await readPage(context, SELECT, where, "e.id", page)).map(toEndpoint)
}

/** Before the endpoint itself, as whoever changes a policy locks them. */
const HOLD_ITS_POLICY: Statement = {
  name: "endpoints.hold-its-policy",
  text: `
    SELECT p.name FROM endpoints e JOIN policies p ON p.org_id = e.org_id
     WHERE e.id = $1 AND p.name = $2 FOR KEY SHARE OF p`,
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
           gate_epoch = $17, resumed_at = $18, secrets = $19, version = $20, updated_at = $21, api_version = $22
     WHERE id = $1`,
}
/** What waits moves between the line and the queues; finished rows keep what they were. */
const LINE_UP: Statement = {
  name: "endpoints.line-up",
  text: "UPDATE webhook_deliveries_live SET ordered = $2 WHERE webhook_id = $1 AND ordered <> $2 AND NOT dated",
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
      if (typeof patch.retryName === "string") await runner.run(HOLD_ITS_POLICY, [id, patch.retryName])
      const [row] = await runner.run(LOCK, [id])
      if (row === undefined) throw notFound("endpoint", id)
      const before = toEndpoint(row)
      if (ifVersion !== undefined && ifVersion !== before.version) {
        throw new PosthornError("conflict", `endpoint "${id}" was changed by somebody else; read it again`)
      }
      const after = patchEndpoint(before, patch, now)
      // Before the endpoint: what takes long holds up nobody who changes another of the application's endpoints.
      if (after.ordered !== before.ordered) await runner.run(LINE_UP, [id, after.ordered])
      await runner.run(UPDATE, changeable(after))
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
