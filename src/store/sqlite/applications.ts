/** Applications: who owns endpoints and messages. */
import { notFound } from "../../core/errors.ts"
import { toApplication, toJson } from "../rows.ts"
import type { Application, ApplicationFilter, ApplicationPatch, Page, Task } from "../store.ts"
import { Conditions } from "./conditions.ts"
import type { Context } from "./context.ts"
import { orConflict } from "./errors.ts"
import { readPage } from "./page.ts"
import { createTask } from "./tasks.ts"

export function createApplication({ connection }: Context, application: Application): void {
  const { id, orgId, uid, name, metadata, rateLimit, createdAt, updatedAt } = application
  orConflict("uid", `an application with uid "${uid}" exists already`, () =>
    connection
      .sql(`
        INSERT INTO applications (id, org_id, uid, name, metadata, rate_limit, created_at, updated_at)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?)`)
      .run(id, orgId, uid, name, toJson(metadata), rateLimit, createdAt, updatedAt),
  )
}

export function getApplication({ connection }: Context, orgId: string, key: string): Application | null {
  const row = connection
    .sql(`
      SELECT * FROM applications WHERE id = ?2 AND org_id = ?1 AND deleted_at IS NULL
      UNION ALL SELECT * FROM applications WHERE uid = ?2 AND org_id = ?1 AND deleted_at IS NULL LIMIT 1`)
    .get(orgId, key)
  return row === undefined ? null : toApplication(row)
}

/** By the index `endpoints_app`. */
const hasEndpoint = (condition: string) =>
  `EXISTS (SELECT 1 FROM endpoints e WHERE e.app_id = applications.id AND e.deleted_at IS NULL AND ${condition})`
const HAS_ENDPOINT = hasEndpoint("true")

export function listApplications(
  context: Context,
  orgId: string,
  page: Page<string>,
  filter: ApplicationFilter = {},
): Application[] {
  const where = new Conditions().narrow("org_id = ?", orgId).require("deleted_at IS NULL")
  if (filter.excludeWithoutEndpoints) where.require(HAS_ENDPOINT)
  if (filter.excludeAllDisabled) where.require(`(NOT ${HAS_ENDPOINT} OR ${hasEndpoint("NOT e.disabled")})`)
  where.narrow(`(NOT ${HAS_ENDPOINT} OR ${hasEndpoint("instr(e.url, ?) <> 1")})`, filter.excludeAllTo)
  return readPage(context, "SELECT * FROM applications", where, "id", page).map(toApplication)
}

export function updateApplication(
  context: Context,
  id: string,
  patch: ApplicationPatch,
  now: number,
): Application {
  const { connection } = context
  const row = connection.sql("SELECT * FROM applications WHERE id = ? AND deleted_at IS NULL").get(id)
  if (row === undefined) throw notFound("application", id)
  const before = toApplication(row)
  const after: Application = { ...before, ...patch, updatedAt: now }
  orConflict("uid", `an application with uid "${after.uid}" exists already`, () =>
    connection
      .sql(
        "UPDATE applications SET uid = ?, name = ?, metadata = ?, rate_limit = ?, updated_at = ? WHERE id = ?",
      )
      .run(after.uid, after.name, toJson(after.metadata), after.rateLimit, now, id),
  )
  // It is read with each endpoint: whoever sends there must learn of it.
  if (after.rateLimit !== before.rateLimit)
    connection
      .sql("UPDATE endpoints SET version = version + 1 WHERE app_id = ? AND deleted_at IS NULL")
      .run(id)
  context.forget()
  return after
}

export function deleteApplication(context: Context, id: string, task: Task): void {
  const { connection } = context
  const now = task.createdAt
  const { changes } = connection
    .sql("UPDATE applications SET deleted_at = ? WHERE id = ? AND deleted_at IS NULL")
    .run(now, id)
  if (changes === 0) throw notFound("application", id)
  connection
    .sql("UPDATE endpoints SET deleted_at = ?, version = version + 1 WHERE app_id = ? AND deleted_at IS NULL")
    .run(now, id)
  createTask(context, task)
  context.forget()
}
