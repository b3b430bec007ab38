/** Tasks: durable work on many deliveries, with progress. */
import { optionalOneOf, requireText } from "../core/input.ts"
import { type SvixTaskType, TASK_TYPES, type TaskType } from "../core/task-types.ts"
import type { DeliveryFilter, Task as Row, TaskAction, TaskStatus } from "../store/store.ts"
import { bySeq, type Listing, listing, type PageInput } from "./paging.ts"
import { createOrFind, date, type ResourceContext, requireFound } from "./resource-context.ts"

export interface Task
  extends Omit<Row, "seq" | "orgId" | "type" | "data" | "cursor" | "upTo" | "createdAt" | "updatedAt"> {
  readonly type: TaskType
  /** The result of a task that reports. */
  readonly data: { readonly [key: string]: unknown } | null
  readonly createdAt: Date
  readonly updatedAt: Date
}

export interface TaskQuery extends PageInput {
  status?: TaskStatus
  /** One type or several. */
  type?: TaskType | readonly TaskType[]
}

const STATUSES: readonly TaskStatus[] = ["running", "finished", "cancelled"]

export class Tasks {
  readonly #context: ResourceContext

  constructor(context: ResourceContext) {
    this.#context = context
  }

  async get(id: string): Promise<Task> {
    const { store, orgId } = this.#context
    requireText(id, "task", 256)
    return show(await requireFound("task", id, (key) => store.getTask(orgId, key)))
  }

  /** Newest first. */
  list(query: TaskQuery = {}): Listing<Task> {
    const { store, orgId } = this.#context
    return listing(query, {
      fields: ["status", "type"],
      by: bySeq,
      read: async ({ status, type }) => {
        const types = type === undefined ? undefined : [type].flat()
        for (const one of types ?? []) optionalOneOf(one, "type", TASK_TYPES)
        const filter = { status: optionalOneOf(status, "status", STATUSES), types }
        return (page) => store.listTasks(orgId, page, filter)
      },
      show,
    })
  }

  /** Stops it. Changes that it has made stay. */
  async cancel(id: string): Promise<Task> {
    requireText(id, "task", 256)
    return show(await this.#context.store.cancelTask(this.#context.orgId, id, this.#context.clock.now()))
  }
}

/** A task over the deliveries, or the messages, that match the filter now. */
export async function newTask(
  context: ResourceContext,
  action: TaskAction,
  type: TaskType,
  filter: DeliveryFilter,
): Promise<Row> {
  const { store } = context
  const total =
    action === "replay" || action === "expunge"
      ? await store.countMessages({ ...filter, appId: filter.appId! })
      : await store.countDeliveries(filter)
  return { ...blankTask(context), action, type, filter, total }
}

/** A finished task that keeps a result. */
export function newReport(context: ResourceContext, type: SvixTaskType, data: object): Row {
  return { ...blankTask(context), action: "report", type, status: "finished", data: JSON.stringify(data) }
}

function blankTask({ ids, orgId, clock }: ResourceContext): Omit<Row, "action" | "type"> {
  const now = clock.now()
  return {
    seq: 0,
    id: ids.make("qtask", now),
    orgId,
    filter: {},
    status: "running",
    data: null,
    total: 0,
    done: 0,
    changed: 0,
    cursor: 0,
    upTo: 0,
    createdAt: now,
    updatedAt: now,
  }
}

export async function startNewTask(...task: Parameters<typeof newTask>): Promise<Task> {
  return startTask(task[0], await newTask(...task))
}

export async function startTask(context: ResourceContext, task: Row): Promise<Task> {
  const { store, orgId } = context
  const started = await createOrFind(
    () => store.createTask(task),
    () => store.getTask(orgId, task.id),
  )
  context.wakeTasks()
  return show(started)
}

function show({ seq: _seq, orgId: _org, cursor: _cursor, upTo: _upTo, ...row }: Row): Task {
  return {
    ...row,
    type: row.type as TaskType,
    // The data of every other action is for the step that runs the task.
    data: row.action === "report" && row.data !== null ? JSON.parse(row.data) : null,
    createdAt: date(row.createdAt),
    updatedAt: date(row.updatedAt),
  }
}
