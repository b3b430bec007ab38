/** Durable work on many deliveries or messages, step by step; every step commits its changes and its progress together. */
import { notFound } from "../../core/errors.ts"
import { ofTasks } from "../conditions.ts"
import { orNull, toJson, toTask } from "../rows.ts"
import {
  CANCEL_TASK,
  createTask as create,
  FIND_RUNNING_TASK,
  GET_TASK,
  isOverMessages,
  LIST_RUNNING_TASKS,
  STEP_TASK,
} from "../statements.ts"
import type { DeliveryFilter, Task } from "../store.ts"
import { addIfMissing } from "./add.ts"
import { amendIfUnchanged } from "./amend.ts"
import { SQLITE } from "./conditions.ts"
import type { Context, Operation } from "./context.ts"
import { frontOfLanes, rangeOfDeliveries } from "./deliveries.ts"
import { expungeMany, rangeOfMessages } from "./messages.ts"
import { readPage } from "./page.ts"

const NEWEST = "coalesce(max(seq), 0)"
const CREATE_OVER_DELIVERIES = create("webhook_deliveries", NEWEST)
const CREATE_OVER_MESSAGES = create("messages", NEWEST)

export const createTask: Operation<"createTask"> = ({ connection }, task) => {
  const { id, orgId, action, type, filter, status, data, total, createdAt } = task
  const { text } = isOverMessages(action) ? CREATE_OVER_MESSAGES : CREATE_OVER_DELIVERIES
  const values = [id, orgId, action, type, toJson(filter), status, data, total, createdAt]
  return toTask(connection.sql(text).get(...values)!)
}

export const getTask: Operation<"getTask"> = ({ connection }, orgId, id) =>
  orNull(connection.sql(GET_TASK.text).get(orgId, id), toTask)

function findRunning({ connection }: Context, id: string): Task | null {
  return orNull(connection.sql(FIND_RUNNING_TASK.text).get(id), toTask)
}

export const listTasks: Operation<"listTasks"> = (context, orgId, page, filter) =>
  readPage(context, "SELECT * FROM tasks", ofTasks(SQLITE, orgId, filter), "seq", page).map(toTask)

export const listRunningTasks: Operation<"listRunningTasks"> = ({ connection }, limit) =>
  connection.sql(LIST_RUNNING_TASKS.text).all(limit).map(toTask)

export const cancelTask: Operation<"cancelTask"> = (context, orgId, id, now) => {
  context.connection.sql(CANCEL_TASK.text).run(orgId, id, now)
  const task = getTask(context, orgId, id)
  if (task === null) throw notFound("task", id)
  return task
}

export const readTask: Operation<"readTask"> = (context, id, limit) => {
  const task = findRunning(context, id)
  if (task === null) return []
  const { filter, cursor, upTo } = task
  return (task.action === "cancel" || task.action === "enable") && isOfWholeLanes(filter)
    ? frontOfLanes(context, filter, upTo, limit)
    : rangeOfDeliveries(context, filter, cursor, upTo, limit)
}

/** Whether the filter selects everything that waits for an endpoint or an application. */
function isOfWholeLanes({ live, appId, endpointId, ...narrower }: DeliveryFilter): boolean {
  return live === true && (endpointId ?? appId) !== undefined && Object.keys(narrower).length === 0
}

export const readTaskMessages: Operation<"readTaskMessages"> = (context, id, limit) => {
  const task = findRunning(context, id)
  if (task === null) return []
  const filter = { ...task.filter, appId: task.filter.appId! }
  return rangeOfMessages(context, filter, task.cursor, task.upTo, limit)
}

export const stepTaskIfCurrent: Operation<"stepTaskIfCurrent"> = (context, step) => {
  const { taskId, expectedCursor, looked, cursor, at } = step
  const task = findRunning(context, taskId)
  if (task === null || task.cursor !== expectedCursor) return null
  const amended = amendIfUnchanged(context, step.amendments)
  const added = addIfMissing(context, step.additions, at)
  const expunged = expungeMany(context, step.expunged)
  const changed = [...amended, ...added, ...expunged].filter(Boolean).length
  const status = cursor === null ? "finished" : "running"
  context.connection.sql(STEP_TASK.text).run(taskId, status, looked, changed, cursor, at.now)
  return { amended, added }
}
