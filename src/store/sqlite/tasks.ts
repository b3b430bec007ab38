/** Durable work on many deliveries, step by step; every step commits its changes and its progress together. */
import { notFound } from "../../core/errors.ts"
import { toTask } from "../rows.ts"
import type { Delivery, Page, Task, TaskStatus, TaskStep } from "../store.ts"
import type { Context } from "./context.ts"
import { amend, rangeOfDeliveries } from "./deliveries.ts"

export function createTask(context: Context, task: Task): Task {
  const { connection } = context
  const newest = connection.sql("SELECT coalesce(max(seq), 0) AS seq FROM webhook_deliveries").get()!
    .seq as number
  connection
    .sql(`
      INSERT INTO tasks (id, action, filter, status, total, done, changed, cursor, up_to, created_at, updated_at)
      VALUES (?, ?, ?, 'running', ?, 0, 0, 0, ?, ?, ?)`)
    .run(
      task.id,
      task.action,
      JSON.stringify(task.filter),
      task.total,
      newest,
      task.createdAt,
      task.createdAt,
    )
  return getTask(context, task.id)!
}

export function getTask({ connection }: Context, id: string): Task | null {
  const row = connection.sql("SELECT * FROM tasks WHERE id = ?").get(id)
  return row === undefined ? null : toTask(row)
}

export function listTasks({ connection }: Context, status: TaskStatus | null, page: Page): Task[] {
  return connection
    .sql("SELECT * FROM tasks WHERE seq < ?1 AND (?2 IS NULL OR status = ?2) ORDER BY seq DESC LIMIT ?3")
    .all(page.before ?? Number.MAX_SAFE_INTEGER, status, page.limit)
    .map(toTask)
}

export function cancelTask(context: Context, id: string, now: number): Task {
  context.connection
    .sql("UPDATE tasks SET status = 'cancelled', updated_at = ? WHERE id = ? AND status = 'running'")
    .run(now, id)
  const task = getTask(context, id)
  if (task === null) throw notFound("task", id)
  return task
}

export function readTask(context: Context, id: string, limit: number): Delivery[] {
  const task = getTask(context, id)
  if (task === null || task.status !== "running") return []
  return rangeOfDeliveries(context, task.filter, task.cursor, task.upTo, limit)
}

export function stepTask(
  context: Context,
  { taskId, expectedCursor, amendments, looked, cursor, now }: TaskStep,
): boolean[] | null {
  const task = getTask(context, taskId)
  if (task === null || task.status !== "running" || task.cursor !== expectedCursor) return null
  const applied = amend(context, amendments)
  context.connection
    .sql(
      "UPDATE tasks SET status = ?, done = done + ?, changed = changed + ?, cursor = ?, updated_at = ? WHERE id = ?",
    )
    .run(
      cursor === null ? "finished" : "running",
      looked,
      applied.filter(Boolean).length,
      cursor ?? task.cursor,
      now,
      taskId,
    )
  return applied
}
