/** Statements that SQLite and PostgreSQL run with the same text; SQLite's connection reads `$1` as `?1`. */
import { ENDPOINT, MESSAGE } from "./columns.ts"
import { CALLED_OFF, type Conditions } from "./conditions.ts"
import type { TaskAction } from "./store.ts"

export interface Statement {
  /** PostgreSQL prepares a statement once in each connection, under this name. */
  readonly name: string
  readonly text: string
}

export const statement = (name: string, text: string): Statement => ({ name, text })

export const CREATE_APPLICATION = statement(
  "applications.create",
  `INSERT INTO applications (id, org_id, uid, name, metadata, rate_limit, created_at, updated_at)
   VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
)
export const GET_APPLICATION = statement(
  "applications.get",
  `SELECT * FROM applications WHERE deleted_at IS NULL AND org_id = $1 AND id = $2
   UNION ALL SELECT * FROM applications WHERE deleted_at IS NULL AND org_id = $1 AND uid = $2 LIMIT 1`,
)
export const UPDATE_APPLICATION = statement(
  "applications.update",
  "UPDATE applications SET uid = $2, name = $3, metadata = $4, rate_limit = $5, updated_at = $6 WHERE id = $1",
)
export const DELETE_APPLICATION = statement(
  "applications.delete",
  "UPDATE applications SET deleted_at = $2 WHERE id = $1 AND deleted_at IS NULL RETURNING id",
)

/** A policy by name and the application's limit are read with the endpoint, so that a lane gets everything from one row. */
export const SELECT_ENDPOINTS = `
  SELECT e.*, coalesce(e.retry_policy, p.policy) AS retry_policy, o.rate_limit AS app_rate_limit
    FROM endpoints e
    LEFT JOIN applications o ON o.id = e.app_id
    LEFT JOIN policies p ON p.org_id = e.org_id AND p.name = e.retry_name`

const ENDPOINT_PARAMETERS = ENDPOINT.split(",").map((_, i) => `$${i + 1}`)
export const INSERT_ENDPOINT = `INSERT INTO endpoints (${ENDPOINT}) VALUES (${ENDPOINT_PARAMETERS})`
export const UPDATE_ENDPOINT = `
  UPDATE endpoints SET (${ENDPOINT}) = (${ENDPOINT_PARAMETERS}) WHERE id = $1 AND deleted_at IS NULL`
export const GET_ENDPOINT = statement(
  "endpoints.get",
  `${SELECT_ENDPOINTS}
    WHERE e.app_id = $1 AND e.deleted_at IS NULL AND (e.id = $2 OR e.uid = $2) ORDER BY e.id = $2 DESC LIMIT 1`,
)
/** Deleted or not. */
export const READ_ENDPOINT = statement("endpoints.read", `${SELECT_ENDPOINTS} WHERE e.id = $1`)

export const PUT_POLICY = statement(
  "policies.put",
  `INSERT INTO policies (org_id, name, policy, updated_at) VALUES ($1, $2, $3, $4)
   ON CONFLICT (org_id, name) DO UPDATE SET policy = excluded.policy, updated_at = excluded.updated_at`,
)
export const GET_POLICY = statement("policies.get", "SELECT * FROM policies WHERE org_id = $1 AND name = $2")
export const LIST_POLICIES = statement(
  "policies.list",
  "SELECT * FROM policies WHERE org_id = $1 ORDER BY name",
)
export const FIND_POLICY_USER = statement(
  "policies.user",
  "SELECT id FROM endpoints WHERE org_id = $1 AND retry_name = $2 AND deleted_at IS NULL LIMIT 1",
)
export const DELETE_POLICY = statement(
  "policies.delete",
  "DELETE FROM policies WHERE org_id = $1 AND name = $2 RETURNING name",
)

/** An entry that has expired is replaced. */
export const CREATE_ENTRY = statement(
  "entries.create",
  `INSERT INTO entries (kind, name, org_id, body, version, created_at, updated_at, expires_at, owner)
   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
   ON CONFLICT (kind, name, org_id) DO UPDATE
      SET body = excluded.body, version = excluded.version, created_at = excluded.created_at,
          updated_at = excluded.updated_at, expires_at = excluded.expires_at, owner = excluded.owner
    WHERE entries.expires_at <= excluded.updated_at
   RETURNING version`,
)
export const UPDATE_ENTRY = statement(
  "entries.update",
  `UPDATE entries SET body = $4, version = $5, created_at = $6, updated_at = $7, expires_at = $8, owner = $9
    WHERE kind = $1 AND name = $2 AND org_id = $3 AND version = $5 - 1
   RETURNING version`,
)
/** Of any tenant when `$3` is NULL. */
export const GET_ENTRY = statement(
  "entries.get",
  `SELECT * FROM entries
    WHERE kind = $1 AND name = $2 AND (CAST($3 AS text) IS NULL OR org_id = $3)
      AND (expires_at IS NULL OR expires_at > $4)
    LIMIT 1`,
)
export const DELETE_ENTRY = statement(
  "entries.delete",
  "DELETE FROM entries WHERE kind = $1 AND name = $2 AND org_id = $3",
)

export const selectMessages = (withPayload: boolean) =>
  `SELECT ${MESSAGE}${withPayload ? ", m.payload" : ""} FROM messages m`
/** Neither database reads a large payload for its length. */
export const SELECT_PAYLOAD_SIZES =
  "SELECT m.id, coalesce(octet_length(m.payload), 0) AS bytes FROM messages m"
/** In an order that no index has: a planner that reads an index in order until the limit would read every message. */
export const findMessagesOf = <V>(where: Conditions<V>, limit: number) =>
  `${selectMessages(false)} WHERE ${where} ORDER BY m.received_at DESC, m.id DESC LIMIT ${limit}`
export const GET_MESSAGE = statement(
  "messages.get",
  `${selectMessages(true)} WHERE m.app_id = $1 AND m.id = $2
   UNION ALL ${selectMessages(true)} WHERE m.app_id = $1 AND m.event_id = $2 LIMIT 1`,
)
/** The request of a source goes, too: its query and headers may have what its body has. */
export const EXPUNGED = "payload = NULL, inbound = NULL, expunged = true, payload_until = NULL"
export const EXPUNGE_MESSAGE = statement(
  "messages.expunge",
  `UPDATE messages SET ${EXPUNGED} WHERE app_id = $1 AND id = $2`,
)
export const usageOf = <V>(where: Conditions<V>) => `
  SELECT m.app_id, count(*) AS messages, sum(m.matched) AS destinations
    FROM messages m WHERE ${where} GROUP BY m.app_id ORDER BY m.app_id`

export const countAttemptsOf = <V>(where: Conditions<V>) =>
  `SELECT a.status, count(*) AS n FROM attempts a WHERE ${where} GROUP BY a.status`

/** `newest` selects the attempts, as `a`. */
export const countStatusCodesOf = <V>(newest: string, where: Conditions<V>) => `
  SELECT coalesce(a.response_status, 0) AS status, count(*) AS n
    FROM (${newest}) a WHERE a.status <> 'unknown' AND ${where}
   GROUP BY 1 ORDER BY n DESC, 1`

export const countByStatusOf = <V>(where: Conditions<V>, from = "webhook_deliveries d") => `
  SELECT d.status, count(*) AS n, count(*) FILTER (WHERE d.status = 'dead' AND ${CALLED_OFF}) AS called_off
    FROM ${from} WHERE ${where} GROUP BY d.status`
export const groupDeadOf = <V>(
  where: Conditions<V>,
  limit: number,
  by: "error" | "cause",
  from = "webhook_deliveries d",
) => `
  SELECT d.app_id, d.webhook_id, d.dead_reason, ${by === "error" ? "d.error_detail" : `nullif(${where.dialect.cause}, '')`} AS error, count(*) AS n,
         min(d.received_at) AS oldest_at, max(d.received_at) AS newest_at
    FROM ${from} WHERE ${where.require("d.status = 'dead'")}
 GROUP BY d.app_id, d.webhook_id, d.dead_reason, error
   ORDER BY n DESC, d.webhook_id, d.dead_reason, error LIMIT ${where.parameter(limit)}`

/** Whether a task goes over messages, or over deliveries. */
export const isOverMessages = (action: TaskAction) => action === "replay" || action === "expunge"

/** `upTo` is the newest number of `source`. */
export const createTask = (source: string, upTo: string): Statement => ({
  name: `tasks.create-${source}`,
  text: `
    INSERT INTO tasks (id, org_id, action, type, filter, status, data, total, done, changed, cursor, up_to, created_at, updated_at)
    SELECT $1, $2, $3, $4, $5, $6, $7, $8, 0, 0, 0, ${upTo}, $9, $9 FROM ${source}
    RETURNING *`,
})
export const GET_TASK = statement("tasks.get", "SELECT * FROM tasks WHERE org_id = $1 AND id = $2")
export const FIND_RUNNING_TASK = statement(
  "tasks.find-running",
  "SELECT * FROM tasks WHERE id = $1 AND status = 'running'",
)
export const LIST_RUNNING_TASKS = statement(
  "tasks.running",
  "SELECT * FROM tasks WHERE status = 'running' ORDER BY seq LIMIT $1",
)
export const CANCEL_TASK = statement(
  "tasks.cancel",
  "UPDATE tasks SET status = 'cancelled', updated_at = $3 WHERE org_id = $1 AND id = $2 AND status = 'running'",
)
export const STEP_TASK = statement(
  "tasks.step",
  `UPDATE tasks
      SET status = $2, done = done + $3, changed = changed + $4, cursor = coalesce($5, cursor), updated_at = $6
    WHERE id = $1`,
)
