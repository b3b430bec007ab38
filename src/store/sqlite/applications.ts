/** Applications: who owns endpoints and messages. */
import { notFound } from "../../core/errors.ts"
import { ofApplications } from "../conditions.ts"
import { applicationUidTaken } from "../refusals.ts"
import { orNull, toApplication, toJson } from "../rows.ts"
import { CREATE_APPLICATION, DELETE_APPLICATION, GET_APPLICATION, UPDATE_APPLICATION } from "../statements.ts"
import type { Application } from "../store.ts"
import { SQLITE } from "./conditions.ts"
import type { Operation } from "./context.ts"
import { orRefuse } from "./errors.ts"
import { readPage } from "./page.ts"
import { createTask } from "./tasks.ts"

export const createApplication: Operation<"createApplication"> = ({ connection }, application) => {
  const { id, orgId, uid, name, metadata, rateLimit, createdAt, updatedAt } = application
  orRefuse(
    () => applicationUidTaken(uid),
    () =>
      connection
        .sql(CREATE_APPLICATION.text)
        .run(id, orgId, uid, name, toJson(metadata), rateLimit, createdAt, updatedAt),
  )
}

export const getApplication: Operation<"getApplication"> = ({ connection }, orgId, key) =>
  orNull(connection.sql(GET_APPLICATION.text).get(orgId, key), toApplication)

export const listApplications: Operation<"listApplications"> = (context, orgId, page, filter) => {
  const where = ofApplications(SQLITE, orgId, filter)
  return readPage(context, "SELECT * FROM applications", where, "id", page).map(toApplication)
}

export const updateApplication: Operation<"updateApplication"> = (context, id, patch, now) => {
  const { connection } = context
  const row = connection.sql("SELECT * FROM applications WHERE id = ? AND deleted_at IS NULL").get(id)
  if (row === undefined) throw notFound("application", id)
  const before = toApplication(row)
  const after: Application = { ...before, ...patch, updatedAt: now }
  const { uid, name, metadata, rateLimit } = after
  orRefuse(
    () => applicationUidTaken(uid),
    () => connection.sql(UPDATE_APPLICATION.text).run(id, uid, name, toJson(metadata), rateLimit, now),
  )
  // The limit is read with each endpoint: a new version tells the lanes of it.
  if (rateLimit !== before.rateLimit)
    connection
      .sql("UPDATE endpoints SET version = version + 1 WHERE app_id = ? AND deleted_at IS NULL")
      .run(id)
  context.forget()
  return after
}

export const deleteApplication: Operation<"deleteApplication"> = (context, id, task) => {
  const { connection } = context
  if (connection.sql(DELETE_APPLICATION.text).get(id, task.createdAt) === undefined)
    throw notFound("application", id)
  connection
    .sql("UPDATE endpoints SET deleted_at = ?, version = version + 1 WHERE app_id = ? AND deleted_at IS NULL")
    .run(task.createdAt, id)
  createTask(context, task)
  context.forget()
}
