/** Durable work on many deliveries or messages, step by step; every step commits its changes and its progress together. */
import { notFound } from "../../core/errors.ts"
import { toJson, toTask } from "../rows.ts"
import type {
  Delivery,
  Message,
  Page,
  Task,
  TaskChanges,
  TaskFilter,
  TaskStatus,
  TaskStep,
} from "../store.ts"
import { addWithin } from "./add.ts"
import { amendWithin, withTheirDays } from "./amend.ts"
import { Conditions } from "./conditions.ts"
import type { Runner } from "./connection.ts"
import type { Context } from "./context.ts"
import { rangeOfDeliveries } from "./deliveries.ts"
import { expungeWithin, rangeOfMessages } from "./messages.ts"
import { readPage } from "./page.ts"
import type { Statement } from "./statement.ts"

const create = (sequence: string): Statement => ({
  name: `tasks.create-${sequence}`,
  text: `
    INSERT INTO tasks (id, org_id, action, type, filter, status, data, total, done, changed, cursor, up_to, created_at, updated_at)
    SELECT $1, $2, $3, $4, $5, $6, $7, $8, 0, 0, 0, CASE WHEN is_called THEN last_value ELSE 0 END, $9, $9 FROM ${sequence}
    RETURNING *`,
})
const CREATE_OVER_DELIVERIES = create("delivery_seq")
const CREATE_OVER_MESSAGES = create("message_seq")

export function createTask({ database }: Context, task: Task): Promise<Task> {
  return insertTask(database, task)
}

/** Also within the transaction that the task follows from. */
export async function insertTask(runner: Runner, task: Task): Promise<Task> {
  const { id, orgId, action, type, filter, status, data, total, createdAt } = task
  const statement = isOverMessages(task) ? CREATE_OVER_MESSAGES : CREATE_OVER_DELIVERIES
  const values = [id, orgId, action, type, toJson(filter), status, data, total, createdAt]
  return toTask((await runner.run(statement, values))[0]!)
}

function isOverMessages({ action }: Task): boolean {
  return action === "replay" || action === "expunge"
}

const GET: Statement = { name: "tasks.get", text: "SELECT * FROM tasks WHERE org_id = $1 AND id = $2" }

export async function getTask({ database }: Context, orgId: string, id: string): Promise<Task | null> {
  const [row] = await database.run(GET, [orgId, id])
  return row === undefined ? null : toTask(row)
}

export async function listTasks(
  context: Context,
  orgId: string,
  page: Page,
  { status, types }: TaskFilter = {},
): Promise<Task[]> {
  const where = new Conditions()
    .narrow("org_id = ?", orgId)
    .narrow("status = ?", status)
    .narrow("type = ANY (?)", types)
  return (await readPage(context, "SELECT * FROM tasks", where, "seq", page)).map(toTask)
}

const RUNNING: Statement = {
  name: "tasks.running",
  text: "SELECT * FROM tasks WHERE status = 'running' ORDER BY seq LIMIT $1",
}

export async function listRunningTasks({ database }: Context, limit: number): Promise<Task[]> {
  return (await database.runCalmly(RUNNING, [limit])).map(toTask)
}

const CANCEL: Statement = {
  name: "tasks.cancel",
  text: `
    UPDATE tasks SET status = 'cancelled', updated_at = $3 WHERE org_id = $1 AND id = $2 AND status = 'running'`,
}

export async function cancelTask(context: Context, orgId: string, id: string, now: number): Promise<Task> {
  await context.database.run(CANCEL, [orgId, id, now])
  const task = await getTask(context, orgId, id)
  if (task === null) throw notFound("task", id)
  return task
}

const FIND_RUNNING: Statement = {
  name: "tasks.find-running",
  text: "SELECT * FROM tasks WHERE id = $1 AND status = 'running'",
}

async function findRunning({ database }: Context, id: string): Promise<Task | null> {
  const [row] = await database.run(FIND_RUNNING, [id])
  return row === undefined ? null : toTask(row)
}

export async function readTask(context: Context, id: string, limit: number): Promise<Delivery[]> {
  const task = await findRunning(context, id)
  if (task === null || isOverMessages(task)) return []
  return rangeOfDeliveries(context, task.filter, task.cursor, task.upTo, limit)
}

export async function readTaskMessages(context: Context, id: string, limit: number): Promise<Message[]> {
  const task = await findRunning(context, id)
  if (task === null || !isOverMessages(task)) return []
  const filter = { ...task.filter, appId: task.filter.appId! }
  return rangeOfMessages(context, filter, task.cursor, task.upTo, limit)
}

const LOCK: Statement = {
  name: "tasks.lock",
  text: "SELECT id FROM tasks WHERE id = $1 AND status = 'running' AND cursor = $2 FOR NO KEY UPDATE",
}
const STEP: Statement = {
  name: "tasks.step",
  text: `
    UPDATE tasks
       SET status = $2, done = done + $3, changed = changed + $4, cursor = coalesce($5, cursor), updated_at = $6
     WHERE id = $1`,
}

export function stepTask(context: Context, step: TaskStep): Promise<TaskChanges | null> {
  const { taskId, expectedCursor, amendments, additions, looked, cursor, at } = step
  return withTheirDays(context, amendments, () =>
    context.database.transactionCalmly(async (runner) => {
      const locked = await runner.run(LOCK, [taskId, expectedCursor])
      if (locked.length === 0) return null
      const amended = await amendWithin(runner, amendments)
      const added = await addWithin(context, runner, additions, at)
      const expunged = await expungeWithin(runner, step.expunged)
      const changed = [...amended, ...added].filter(Boolean).length + expunged
      const status: TaskStatus = cursor === null ? "finished" : "running"
      await runner.run(STEP, [taskId, status, looked, changed, cursor, at.now])
      return { amended, added }
    }),
  )
}
