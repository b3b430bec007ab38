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
  statement,
} from "../statements.ts"
import type { Task } from "../store.ts"
import { addWithin } from "./add.ts"
import { amendWithin, withTheirDays } from "./amend.ts"
import { POSTGRES } from "./conditions.ts"
import type { Runner } from "./connection.ts"
import type { Context, Operation } from "./context.ts"
import { rangeOfDeliveries } from "./deliveries.ts"
import { expungeWithin, rangeOfMessages } from "./messages.ts"
import { readPage } from "./page.ts"

const NEWEST = "CASE WHEN is_called THEN last_value ELSE 0 END"
const CREATE_OVER_DELIVERIES = create("delivery_seq", NEWEST)
const CREATE_OVER_MESSAGES = create("message_seq", NEWEST)

export const createTask: Operation<"createTask"> = ({ database }, task) => insertTask(database, task)

/** Also within the transaction that the task follows from. */
export async function insertTask(runner: Runner, task: Task): Promise<Task> {
  const { id, orgId, action, type, filter, status, data, total, createdAt } = task
  const creating = isOverMessages(action) ? CREATE_OVER_MESSAGES : CREATE_OVER_DELIVERIES
  const values = [id, orgId, action, type, toJson(filter), status, data, total, createdAt]
  return toTask((await runner.run(creating, values))[0]!)
}

export const getTask: Operation<"getTask"> = async ({ database }, orgId, id) =>
  orNull((await database.run(GET_TASK, [orgId, id]))[0], toTask)

async function findRunning({ database }: Context, id: string): Promise<Task | null> {
  return orNull((await database.run(FIND_RUNNING_TASK, [id]))[0], toTask)
}

export const listTasks: Operation<"listTasks"> = async (context, orgId, page, filter) =>
  (await readPage(context, "SELECT * FROM tasks", ofTasks(POSTGRES, orgId, filter), "seq", page)).map(toTask)

export const listRunningTasks: Operation<"listRunningTasks"> = async ({ database }, limit) =>
  (await database.runCalmly(LIST_RUNNING_TASKS, [limit])).map(toTask)

export const cancelTask: Operation<"cancelTask"> = async (context, orgId, id, now) => {
  await context.database.run(CANCEL_TASK, [orgId, id, now])
  const task = await getTask(context, orgId, id)
  if (task === null) throw notFound("task", id)
  return task
}

export const readTask: Operation<"readTask"> = async (context, id, limit) => {
  const task = await findRunning(context, id)
  if (task === null || isOverMessages(task.action)) return []
  return rangeOfDeliveries(context, task.filter, task.cursor, task.upTo, limit)
}

export const readTaskMessages: Operation<"readTaskMessages"> = async (context, id, limit) => {
  const task = await findRunning(context, id)
  if (task === null || !isOverMessages(task.action)) return []
  const filter = { ...task.filter, appId: task.filter.appId! }
  return rangeOfMessages(context, filter, task.cursor, task.upTo, limit)
}

const LOCK = statement(
  "tasks.lock",
  "SELECT id FROM tasks WHERE id = $1 AND status = 'running' AND cursor = $2 FOR NO KEY UPDATE",
)

export const stepTaskIfCurrent: Operation<"stepTaskIfCurrent"> = (context, step) => {
  const { taskId, expectedCursor, amendments, additions, looked, cursor, at } = step
  return withTheirDays(context, amendments, () =>
    context.database.transactionCalmly(async (runner) => {
      const locked = await runner.run(LOCK, [taskId, expectedCursor])
      if (locked.length === 0) return null
      const amended = await amendWithin(runner, amendments)
      const added = await addWithin(context, runner, additions, at)
      const expunged = await expungeWithin(runner, step.expunged)
      const changed = [...amended, ...added].filter(Boolean).length + expunged
      const status = cursor === null ? "finished" : "running"
      await runner.run(STEP_TASK, [taskId, status, looked, changed, cursor, at.now])
      return { amended, added }
    }),
  )
}
