/** Applications: who owns endpoints and messages. */
import { notFound } from "../../core/errors.ts"
import { ofApplications } from "../conditions.ts"
import { applicationUidTaken } from "../refusals.ts"
import { orNull, toApplication, toJson } from "../rows.ts"
import {
  CREATE_APPLICATION,
  DELETE_APPLICATION,
  GET_APPLICATION,
  statement,
  UPDATE_APPLICATION,
} from "../statements.ts"
import type { Application } from "../store.ts"
import { POSTGRES } from "./conditions.ts"
import type { Operation } from "./context.ts"
import { orRefuse } from "./errors.ts"
import { readPage } from "./page.ts"
import { insertTask } from "./tasks.ts"

export const createApplication: Operation<"createApplication"> = async ({ database }, application) => {
  const { id, orgId, uid, name, metadata, rateLimit, createdAt, updatedAt } = application
  const values = [id, orgId, uid, name, toJson(metadata), rateLimit, createdAt, updatedAt]
  await orRefuse(
    () => applicationUidTaken(uid),
    () => database.run(CREATE_APPLICATION, values),
  )
}

export const getApplication: Operation<"getApplication"> = async ({ database }, orgId, key) =>
  orNull((await database.run(GET_APPLICATION, [orgId, key]))[0], toApplication)

export const listApplications: Operation<"listApplications"> = async (context, orgId, page, filter) => {
  const where = ofApplications(POSTGRES, orgId, filter)
  return (await readPage(context, "SELECT * FROM applications", where, "id", page)).map(toApplication)
}

const LOCK = statement(
  "applications.lock",
  "SELECT * FROM applications WHERE id = $1 AND deleted_at IS NULL FOR NO KEY UPDATE",
)
/** Each endpoint is read with the limit. They are locked in order of id, as in `policies.ts`, so that no two transactions deadlock. */
const PASS_ON = statement(
  "applications.pass-on",
  `WITH members AS (
     SELECT id FROM endpoints WHERE app_id = $1 AND deleted_at IS NULL ORDER BY id FOR NO KEY UPDATE
   ), changed AS (
     UPDATE endpoints SET version = version + 1 WHERE id IN (SELECT id FROM members) RETURNING id
   )
   INSERT INTO lane_wakes (lane_id, due_at) SELECT id, 0 FROM changed`,
)

export const updateApplication: Operation<"updateApplication"> = ({ database }, id, patch, now) =>
  orRefuse(
    () => applicationUidTaken(patch.uid),
    () =>
      database.transaction(async (runner) => {
        const [row] = await runner.run(LOCK, [id])
        if (row === undefined) throw notFound("application", id)
        const before = toApplication(row)
        const after: Application = { ...before, ...patch, updatedAt: now }
        const { uid, name, metadata, rateLimit } = after
        await runner.run(UPDATE_APPLICATION, [id, uid, name, toJson(metadata), rateLimit, now])
        if (rateLimit !== before.rateLimit) await runner.run(PASS_ON, [id])
        return after
      }),
  )

const DELETE_ENDPOINTS = statement(
  "applications.delete-endpoints",
  `WITH gone AS (
     UPDATE endpoints SET deleted_at = $2, version = version + 1 WHERE app_id = $1 AND deleted_at IS NULL RETURNING id
   )
   INSERT INTO lane_wakes (lane_id, due_at) SELECT id, 0 FROM gone`,
)

export const deleteApplication: Operation<"deleteApplication"> = ({ database }, id, task) =>
  database.transaction(async (runner) => {
    const gone = await runner.run(DELETE_APPLICATION, [id, task.createdAt])
    if (gone.length === 0) throw notFound("application", id)
    await runner.run(DELETE_ENDPOINTS, [id, task.createdAt])
    await insertTask(runner, task)
  })
