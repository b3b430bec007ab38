/** Tasks: durable work on many deliveries, with progress. */
import { notFound } from "../core/errors.ts"
import { requireText } from "../core/input.ts"
import type { Task as Row } from "../store/store.ts"
import { type Core, date, type List, listOf, onlyPage, type PageInput, pageOf } from "./core.ts"

export interface Task extends Omit<Row, "seq" | "cursor" | "upTo" | "createdAt" | "updatedAt"> {
  readonly createdAt: Date
  readonly updatedAt: Date
}

export class Tasks {
  readonly #core: Core

  constructor(core: Core) {
    this.#core = core
  }

  async get(id: string): Promise<Task> {
    requireText(id, "task", 256)
    const row = await this.#core.store.getTask(id)
    if (row === null) throw notFound("task", id)
    return show(row)
  }

  async list(page: PageInput = {}): Promise<List<Task>> {
    const parsed = pageOf(onlyPage(page))
    return listOf(await this.#core.store.listTasks(null, parsed), parsed.limit, show)
  }

  /** What it has done stays done. */
  async cancel(id: string): Promise<Task> {
    requireText(id, "task", 256)
    return show(await this.#core.store.cancelTask(id, this.#core.clock.now()))
  }
}

export function show({ seq: _seq, cursor: _cursor, upTo: _upTo, ...row }: Row): Task {
  return { ...row, createdAt: date(row.createdAt), updatedAt: date(row.updatedAt) }
}
