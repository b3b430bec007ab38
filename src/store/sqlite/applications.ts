/** Applications: who owns endpoints and messages. */
import { notFound } from "../../core/errors.ts"
import { toApplication, toJson } from "../rows.ts"
import type { Application, ApplicationPatch, Task } from "../store.ts"
import type { Context } from "./context.ts"
import { orConflict } from "./errors.ts"
import { createTask } from "./tasks.ts"

export function createApplication({ connection }: Context, application: Application): void {
  const { id, uid, name, metadata, createdAt, updatedAt } = application
  orConflict("uid", `an application with uid "${uid}" exists already`, () =>
    connection
      .sql(
        "INSERT INTO applications (id, uid, name, metadata, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?)",
      )
      .run(id, uid, name, toJson(metadata), createdAt, updatedAt),
  )
}

export function getApplication({ connection }: Context, key: string): Application | null {
  const row = connection
    .sql(
      "SELECT * FROM applications WHERE deleted_at IS NULL AND id = ?1 UNION ALL SELECT * FROM applications WHERE deleted_at IS NULL AND uid = ?1 LIMIT 1",
    )
    .get(key)
  return row === undefined ? null : toApplication(row)
}

export function listApplications(
  { connection }: Context,
  limit: number,
  after: string | null,
): Application[] {
  return connection
    .sql("SELECT * FROM applications WHERE deleted_at IS NULL AND id > ? ORDER BY id LIMIT ?")
    .all(after ?? "", limit)
    .map(toApplication)
}

export function updateApplication(
  context: Context,
  id: string,
  patch: ApplicationPatch,
  now: number,
): Application {
  const before = getApplication(context, id)
  if (before === null) throw notFound("application", id)
  const after: Application = { ...before, ...patch, updatedAt: now }
  orConflict("uid", `an application with uid "${after.uid}" exists already`, () =>
    context.connection
      .sql("UPDATE applications SET uid = ?, name = ?, metadata = ?, updated_at = ? WHERE id = ?")
      .run(after.uid, after.name, toJson(after.metadata), now, before.id),
  )
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
