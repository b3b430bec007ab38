/** Applications: who owns endpoints and messages. */
import { notFound } from "../../core/errors.ts"
import { toApplication, toJson } from "../rows.ts"
import type { Application, ApplicationFilter, ApplicationPatch, Page, Task } from "../store.ts"
import { Conditions } from "./conditions.ts"
import type { Context } from "./context.ts"
import { orConflict } from "./errors.ts"
import { readPage } from "./page.ts"
import type { Statement } from "./statement.ts"
import { insertTask } from "./tasks.ts"

const CREATE: Statement = {
  name: "applications.create",
  text: `
    INSERT INTO applications (id, org_id, uid, name, metadata, rate_limit, created_at, updated_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
}

export async function createApplication({ database }: Context, application: Application): Promise<void> {
  const { id, orgId, uid, name, metadata, rateLimit, createdAt, updatedAt } = application
  await orConflict("uid", taken(uid), () =>
    database.run(CREATE, [id, orgId, uid, name, toJson(metadata), rateLimit, createdAt, updatedAt]),
  )
}

const GET: Statement = {
  name: "applications.get",
  text: `
    SELECT * FROM applications WHERE deleted_at IS NULL AND org_id = $1 AND id = $2
    UNION ALL SELECT * FROM applications WHERE deleted_at IS NULL AND org_id = $1 AND uid = $2 LIMIT 1`,
}

export async function getApplication(
  { database }: Context,
  orgId: string,
  key: string,
): Promise<Application | null> {
  const [row] = await database.run(GET, [orgId, key])
  return row === undefined ? null : toApplication(row)
}

/** By the index `endpoints_app`. */
const hasEndpoint = (condition: string) =>
  `EXISTS (SELECT 1 FROM endpoints e WHERE e.app_id = applications.id AND e.deleted_at IS NULL AND ${condition})`
const HAS_ENDPOINT = hasEndpoint("true")

export async function listApplications(
  context: Context,
  orgId: string,
  page: Page<string>,
  filter: ApplicationFilter = {},
): Promise<Application[]> {
  const where = new Conditions().narrow("org_id = ?", orgId).require("deleted_at IS NULL")
  if (filter.excludeWithoutEndpoints) where.require(HAS_ENDPOINT)
  if (filter.excludeAllDisabled) where.require(`(NOT ${HAS_ENDPOINT} OR ${hasEndpoint("NOT e.disabled")})`)
  where.narrow(`(NOT ${HAS_ENDPOINT} OR ${hasEndpoint("NOT starts_with(e.url, ?)")})`, filter.excludeAllTo)
  return (await readPage(context, "SELECT * FROM applications", where, "id", page)).map(toApplication)
}

const LOCK: Statement = {
  name: "applications.lock",
  text: "SELECT * FROM applications WHERE id = $1 AND deleted_at IS NULL FOR NO KEY UPDATE",
}
const UPDATE: Statement = {
  name: "applications.update",
  text: "UPDATE applications SET uid = $2, name = $3, metadata = $4, rate_limit = $5, updated_at = $6 WHERE id = $1",
}
/** Each of its endpoints has the limit too. In order of id, as policies are passed on: nobody waits in a circle. */
const PASS_ON: Statement = {
  name: "applications.pass-on",
  text: `
    WITH members AS (
      SELECT id FROM endpoints WHERE app_id = $1 AND deleted_at IS NULL ORDER BY id FOR NO KEY UPDATE
    ), changed AS (
      UPDATE endpoints SET version = version + 1 WHERE id IN (SELECT id FROM members) RETURNING id
    )
    INSERT INTO lane_wakes (lane_id, due_at) SELECT id, 0 FROM changed`,
}

export function updateApplication(
  { database }: Context,
  id: string,
  patch: ApplicationPatch,
  now: number,
): Promise<Application> {
  return orConflict("uid", taken(patch.uid), () =>
    database.transaction(async (runner) => {
      const [row] = await runner.run(LOCK, [id])
      if (row === undefined) throw notFound("application", id)
      const before = toApplication(row)
      const after: Application = { ...before, ...patch, updatedAt: now }
      const { uid, name, metadata, rateLimit } = after
      await runner.run(UPDATE, [id, uid, name, toJson(metadata), rateLimit, now])
      if (rateLimit !== before.rateLimit) await runner.run(PASS_ON, [id])
      return after
    }),
  )
}

function taken(uid: string | null | undefined): string {
  return `an application with uid "${uid}" exists already`
}

const DELETE: Statement = {
  name: "applications.delete",
  text: "UPDATE applications SET deleted_at = $2 WHERE id = $1 AND deleted_at IS NULL RETURNING id",
}
const DELETE_ENDPOINTS: Statement = {
  name: "applications.delete-endpoints",
  text: `
    WITH gone AS (
      UPDATE endpoints SET deleted_at = $2, version = version + 1 WHERE app_id = $1 AND deleted_at IS NULL RETURNING id
    )
    INSERT INTO lane_wakes (lane_id, due_at) SELECT id, 0 FROM gone`,
}

export async function deleteApplication({ database }: Context, id: string, task: Task): Promise<void> {
  await database.transaction(async (runner) => {
    const gone = await runner.run(DELETE, [id, task.createdAt])
    if (gone.length === 0) throw notFound("application", id)
    await runner.run(DELETE_ENDPOINTS, [id, task.createdAt])
    await insertTask(runner, task)
  })
}
