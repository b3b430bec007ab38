/** Durable work on many deliveries, step by step; every step commits its changes and its progress together. */
import { notFound } from "../../core/errors.ts"
import { toJson, toTask } from "../rows.ts"
import type { Delivery, Page, Task, TaskStatus, TaskStep } from "../store.ts"
import { amendWithin, withTheirDays } from "./amend.ts"
import { Conditions, unprepared } from "./conditions.ts"
import type { Runner } from "./connection.ts"
import type { Context } from "./context.ts"
import { rangeOfDeliveries } from "./deliveries.ts"
import type { Statement } from "./statement.ts"

const CREATE: Statement = {
  name: "tasks.create",
  text: `
    INSERT INTO tasks (id, action, filter, status, total, done, changed, cursor, up_to, created_at, updated_at)
    SELECT $1, $2, $3, 'running', $4, 0, 0, 0, last_value, $5, $5 FROM delivery_seq
    RETURNING *`,
}

export function createTask({ database }: Context, task: Task): Promise<Task> {
  return insertTask(database, task)
}

/** Also within the transaction that the task follows from. */
export async function insertTask(runner: Runner, task: Task): Promise<Task> {
  const { id, action, filter, total, createdAt } = task
  const [row] = await runner.run(CREATE, [id, action, toJson(filter), total, createdAt])
  return toTask(row!)
}

const GET: Statement = { name: "tasks.get", text: "SELECT * FROM tasks WHERE id = $1" }

export async function getTask({ database }: Context, id: string): Promise<Task | null> {
  const [row] = await database.run(GET, [id])
  return row === undefined ? null : toTask(row)
}

export async function listTasks(
  { database }: Context,
  status: TaskStatus | null,
  page: Page,
): Promise<Task[]> {
  const where = new Conditions()
  where.narrow("status = ?", status ?? undefined)
  where.narrow("seq < ?", page.before ?? undefined)
  const text = `SELECT * FROM tasks WHERE ${where} ORDER BY seq DESC LIMIT ${where.parameter(page.limit)}`
  return (await database.runCalmly(unprepared(text), where.values)).map(toTask)
}

const CANCEL: Statement = {
  name: "tasks.cancel",
  text: "UPDATE tasks SET status = 'cancelled', updated_at = $2 WHERE id = $1 AND status = 'running'",
}

export async function cancelTask(context: Context, id: string, now: number): Promise<Task> {
  await context.database.run(CANCEL, [id, now])
  const task = await getTask(context, id)
  if (task === null) throw notFound("task", id)
  return task
}

export async function readTask(context: Context, id: string, limit: number): Promise<Delivery[]> {
  const task = await getTask(context, id)
  if (task === null || task.status !== "running") return []
  return rangeOfDeliveries(context, task.filter, task.cursor, task.upTo, limit)
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

export function stepTask(context: Context, step: TaskStep): Promise<boolean[] | null> {
  const { taskId, expectedCursor, amendments, looked, cursor, now } = step
  return withTheirDays(context, amendments, () =>
    context.database.transactionCalmly(async (runner) => {
      const locked = await runner.run(LOCK, [taskId, expectedCursor])
      if (locked.length === 0) return null
      const applied = await amendWithin(runner, amendments)
      const changed = applied.filter(Boolean).length
      const status: TaskStatus = cursor === null ? "finished" : "running"
      await runner.run(STEP, [taskId, status, looked, changed, cursor, now])
      return applied
    }),
  )
}
