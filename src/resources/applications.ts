/** Applications: the customers of the program that sends. */
import { invalid } from "../core/errors.ts"
import { optionalName, refuseUnknown, requireMetadata, requireObject, requireText } from "../core/input.ts"
import type { Application as Row } from "../store/store.ts"
import {
  type Core,
  date,
  type List,
  listById,
  newTask,
  onlyPage,
  type PageInput,
  pageLimit,
  requireApplication,
} from "./core.ts"

export interface Application extends Omit<Row, "createdAt" | "updatedAt"> {
  readonly createdAt: Date
  readonly updatedAt: Date
}

export interface ApplicationInput {
  name: string
  /** Your own id for it; accepted wherever an application is named. */
  uid?: string | null
  metadata?: { readonly [key: string]: string }
}

const FIELDS = ["name", "uid", "metadata"] as const

export class Applications {
  readonly #core: Core

  constructor(core: Core) {
    this.#core = core
  }

  async create(input: ApplicationInput): Promise<Application> {
    const { store, ids, clock } = this.#core
    const fields = parse(input)
    if (fields.name === undefined) throw invalid("name", "is required")
    const now = clock.now()
    const application = {
      id: ids.make("app", now),
      uid: null,
      metadata: {},
      ...fields,
      name: fields.name,
      createdAt: now,
      updatedAt: now,
    }
    await store.createApplication(application)
    return show(application)
  }

  /** By id or uid; rejects with `not_found`. */
  async get(app: string): Promise<Application> {
    return show(await requireApplication(this.#core, app))
  }

  async list(page: PageInput = {}): Promise<List<Application>> {
    const limit = pageLimit(onlyPage(page))
    return listById(await this.#core.store.listApplications(limit, page.cursor ?? null), limit, show)
  }

  async update(app: string, input: Partial<ApplicationInput>): Promise<Application> {
    const { store, clock } = this.#core
    const { id } = await requireApplication(this.#core, app)
    return show(await store.updateApplication(id, parse(input), clock.now()))
  }

  /** Its endpoints go with it; what waits for them ends as dead with the reason `cancelled`. */
  async delete(app: string): Promise<void> {
    const { id } = await requireApplication(this.#core, app)
    await this.#core.store.deleteApplication(
      id,
      await newTask(this.#core, "cancel", { appId: id, live: true }),
    )
    this.#core.recall({ appId: id })
    this.#core.wakeTasks()
  }
}

function parse(input: Partial<ApplicationInput>): Partial<Pick<Row, "name" | "uid" | "metadata">> {
  requireObject(input, "application")
  refuseUnknown(input, FIELDS, "")
  if (input.uid?.startsWith?.("app_")) throw invalid("uid", "must not start with app_")
  if (input.name === "") throw invalid("name", "must not be empty")
  return {
    ...(input.name === undefined ? {} : { name: requireText(input.name, "name", 256) }),
    ...(input.uid === undefined ? {} : { uid: optionalName(input.uid, "uid") }),
    ...(input.metadata === undefined ? {} : { metadata: requireMetadata(input.metadata, "metadata") }),
  }
}

function show(row: Row): Application {
  return { ...row, createdAt: date(row.createdAt), updatedAt: date(row.updatedAt) }
}
