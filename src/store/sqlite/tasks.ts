/** Durable work on many deliveries or messages, step by step; every step commits its changes and its progress together. */
import { notFound } from "../../core/errors.ts"
import { toTask } from "../rows.ts"
import type {
  Delivery,
  DeliveryFilter,
  Message,
  Page,
  Task,
  TaskAction,
  TaskChanges,
  TaskFilter,
  TaskStep,
} from "../store.ts"
import { add } from "./add.ts"
import { amend } from "./amend.ts"
import { asList, Conditions } from "./conditions.ts"
import type { Context } from "./context.ts"
import { frontOfLanes, rangeOfDeliveries } from "./deliveries.ts"
import { expungeMany, rangeOfMessages } from "./messages.ts"
import { readPage } from "./page.ts"

/** The table that a task goes over. */
const TABLES: { readonly [action in TaskAction]: string } = {
  retry: "webhook_deliveries",
  discard: "webhook_deliveries",
  cancel: "webhook_deliveries",
  "send-now": "webhook_deliveries",
  replay: "messages",
  expunge: "messages",
  report: "messages",
}

export function createTask(context: Context, task: Task): Task {
  context.connection
    .sql(`
      INSERT INTO tasks (id, org_id, action, type, filter, status, data, total, done, changed, cursor, up_to, created_at, updated_at)
      SELECT ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0, coalesce(max(seq), 0), ?, ? FROM ${TABLES[task.action]}`)
    .run(
      task.id,
      task.orgId,
      task.action,
      task.type,
      JSON.stringify(task.filter),
      task.status,
      task.data,
      task.total,
      task.createdAt,
      task.createdAt,
    )
  return findTask(context, task.id)!
}

export function getTask(context: Context, orgId: string, id: string): Task | null {
  const task = findTask(context, id)
  return task?.orgId === orgId ? task : null
}

/** Whosever it is. */
function findTask({ connection }: Context, id: string): Task | null {
  const row = connection.sql("SELECT * FROM tasks WHERE id = ?").get(id)
  return row === undefined ? null : toTask(row)
}

function findRunning(context: Context, id: string): Task | null {
  const task = findTask(context, id)
  return task?.status === "running" ? task : null
}

export function listTasks(
  context: Context,
  orgId: string,
  page: Page,
  { status, types }: TaskFilter = {},
): Task[] {
  const where = new Conditions()
    .narrow("org_id = ?", orgId)
    .narrow("status = ?", status)
    .narrow("type IN (SELECT value FROM json_each(?))", asList(types))
  return readPage(context, "SELECT * FROM tasks", where, "seq", page).map(toTask)
}

export function listRunningTasks({ connection }: Context, limit: number): Task[] {
  return connection
    .sql("SELECT * FROM tasks WHERE status = 'running' ORDER BY seq LIMIT ?")
    .all(limit)
    .map(toTask)
}

export function cancelTask(context: Context, orgId: string, id: string, now: number): Task {
  context.connection
    .sql(
      "UPDATE tasks SET status = 'cancelled', updated_at = ? WHERE id = ? AND org_id = ? AND status = 'running'",
    )
    .run(now, id, orgId)
  const task = getTask(context, orgId, id)
  if (task === null) throw notFound("task", id)
  return task
}

export function readTask(context: Context, id: string, limit: number): Delivery[] {
  const task = findRunning(context, id)
  if (task === null) return []
  const { filter, cursor, upTo } = task
  return task.action === "cancel" && isOfWholeLanes(filter)
    ? frontOfLanes(context, filter, upTo, limit)
    : rangeOfDeliveries(context, filter, cursor, upTo, limit)
}

/** All that waits for an endpoint or an application, and not some of it. */
function isOfWholeLanes({ live, appId, endpointId, ...narrower }: DeliveryFilter): boolean {
  return live === true && (endpointId ?? appId) !== undefined && Object.keys(narrower).length === 0
}

export function readTaskMessages(context: Context, id: string, limit: number): Message[] {
  const task = findRunning(context, id)
  if (task === null) return []
  const { appId = "", ...filter } = task.filter
  return rangeOfMessages(context, { ...filter, appId }, task.cursor, task.upTo, limit)
}

export function stepTask(context: Context, step: TaskStep): TaskChanges | null {
  const { taskId, expectedCursor, looked, cursor, at } = step
  const task = findRunning(context, taskId)
  if (task === null || task.cursor !== expectedCursor) return null
  const amended = amend(context, step.amendments)
  const added = add(context, step.additions, at)
  const expunged = expungeMany(context, step.expunged)
  context.connection
    .sql(
      "UPDATE tasks SET status = ?, done = done + ?, changed = changed + ?, cursor = ?, updated_at = ? WHERE id = ?",
    )
    .run(
      cursor === null ? "finished" : "running",
      looked,
      [...amended, ...added, ...expunged].filter(Boolean).length,
      cursor ?? task.cursor,
      at.now,
      taskId,
    )
  return { amended, added }
}
