/** Applications: who owns endpoints and messages. */
import { notFound } from "../../core/errors.ts"
import { toApplication, toJson } from "../rows.ts"
import type { Application, ApplicationPatch, Task } from "../store.ts"
import type { Context } from "./context.ts"
import { orConflict } from "./errors.ts"
import type { Statement } from "./statement.ts"
import { insertTask } from "./tasks.ts"

const CREATE: Statement = {
  name: "applications.create",
  text: "INSERT INTO applications (id, uid, name, metadata, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6)",
}

export async function createApplication({ database }: Context, application: Application): Promise<void> {
  const { id, uid, name, metadata, createdAt, updatedAt } = application
  await orConflict("uid", taken(uid), () =>
    database.run(CREATE, [id, uid, name, toJson(metadata), createdAt, updatedAt]),
  )
}

const GET: Statement = {
  name: "applications.get",
  text: `
    SELECT * FROM applications WHERE deleted_at IS NULL AND id = $1
    UNION ALL SELECT * FROM applications WHERE deleted_at IS NULL AND uid = $1 LIMIT 1`,
}

export async function getApplication({ database }: Context, key: string): Promise<Application | null> {
  const [row] = await database.run(GET, [key])
  return row === undefined ? null : toApplication(row)
}

const LIST: Statement = {
  name: "applications.list",
  text: "SELECT * FROM applications WHERE deleted_at IS NULL AND id > $1 ORDER BY id LIMIT $2",
}

export async function listApplications(
  { database }: Context,
  limit: number,
  after: string | null,
): Promise<Application[]> {
  return (await database.runCalmly(LIST, [after ?? "", limit])).map(toApplication)
}

const LOCK: Statement = {
  name: "applications.lock",
  text: "SELECT * FROM applications WHERE id = $1 AND deleted_at IS NULL FOR NO KEY UPDATE",
}
const UPDATE: Statement = {
  name: "applications.update",
  text: "UPDATE applications SET uid = $2, name = $3, metadata = $4, updated_at = $5 WHERE id = $1",
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
      const after: Application = { ...toApplication(row), ...patch, updatedAt: now }
      await runner.run(UPDATE, [id, after.uid, after.name, toJson(after.metadata), now])
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
