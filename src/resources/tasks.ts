/** Tasks: durable work on many deliveries, with progress. */
import { notFound } from "../core/errors.ts"
import { refuseUnknown, requireObject, requireText } from "../core/input.ts"
import { TASK_TYPES, type TaskType } from "../core/task-types.ts"
import type { Task as Row, TaskStatus } from "../store/store.ts"
import {
  type List,
  type Listing,
  listing,
  listPage,
  PAGE_FIELDS,
  type PageInput,
  pageBySeq,
} from "./paging.ts"
import { oneOf } from "./query.ts"
import { date, madeOnce, type ResourceContext } from "./resource-context.ts"

export interface Task
  extends Omit<Row, "seq" | "orgId" | "type" | "data" | "cursor" | "upTo" | "createdAt" | "updatedAt"> {
  readonly type: TaskType
  /** What it found out, when that is what it was for. */
  readonly data: { readonly [key: string]: unknown } | null
  readonly createdAt: Date
  readonly updatedAt: Date
}

export interface TaskQuery extends PageInput {
  status?: TaskStatus
  /** Of one kind, or of any of several. */
  type?: TaskType | readonly TaskType[]
}

const STATUSES: readonly TaskStatus[] = ["running", "finished", "cancelled"]

export class Tasks {
  readonly #context: ResourceContext

  constructor(context: ResourceContext) {
    this.#context = context
  }

  async get(id: string): Promise<Task> {
    requireText(id, "task", 256)
    const row = await this.#context.store.getTask(this.#context.orgId, id)
    if (row === null) throw notFound("task", id)
    return show(row)
  }

  list(query: TaskQuery = {}): Listing<Task> {
    return listing(query, (asked) => this.#page(asked))
  }

  async #page(query: TaskQuery): Promise<List<Task>> {
    const { store, orgId } = this.#context
    requireObject(query, "query")
    refuseUnknown(query, [...PAGE_FIELDS, "status", "type"], "")
    const types = query.type === undefined ? undefined : [query.type].flat()
    for (const type of types ?? []) oneOf(type, "type", TASK_TYPES)
    const filter = { status: oneOf(query.status, "status", STATUSES), types }
    return listPage(
      pageBySeq(query),
      (read) => store.listTasks(orgId, read, filter),
      ({ seq }) => seq,
      show,
    )
  }

  /** What it has done stays done. */
  async cancel(id: string): Promise<Task> {
    requireText(id, "task", 256)
    return show(await this.#context.store.cancelTask(this.#context.orgId, id, this.#context.clock.now()))
  }
}

export async function startTask(context: ResourceContext, task: Row): Promise<Task> {
  const started = await madeOnce(
    () => context.store.createTask(task),
    () => context.store.getTask(context.orgId, task.id),
  )
  context.wakeTasks()
  return show(started)
}

export function show({ seq: _seq, orgId: _org, cursor: _cursor, upTo: _upTo, ...row }: Row): Task {
  return {
    ...row,
    type: row.type as TaskType,
    data: row.data === null ? null : JSON.parse(row.data),
    createdAt: date(row.createdAt),
    updatedAt: date(row.updatedAt),
  }
}
