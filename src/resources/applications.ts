/** Applications: the customers of the program that sends. */
import { invalid } from "../core/errors.ts"
import {
  optionalName,
  optionalWholeNumber,
  refuseUnknown,
  requireBoolean,
  requireMetadata,
  requireObject,
  requireText,
} from "../core/input.ts"
import type { ApplicationFilter, ApplicationPatch, Application as Row } from "../store/store.ts"
import { forgetKeys } from "./key-ring.ts"
import { type List, type Listing, listing, listPage, onlyPage, type PageInput, pageById } from "./paging.ts"
import { date, madeOnce, newTask, type ResourceContext, requireApplication } from "./resource-context.ts"

export interface Application extends Omit<Row, "orgId" | "createdAt" | "updatedAt"> {
  readonly createdAt: Date
  readonly updatedAt: Date
}

export interface ApplicationInput {
  name: string
  /** Your own id for it; accepted wherever an application is named. */
  uid?: string | null
  metadata?: { readonly [key: string]: string }
  /** The most requests in any second, over all its endpoints. */
  rateLimit?: number | null
}

/** A page of those that are not left out by their endpoints. */
export interface ApplicationQuery extends PageInput {
  excludeWithoutEndpoints?: boolean
  /** Leaves out those that have endpoints, all of them disabled. */
  excludeAllDisabled?: boolean
  /** Leaves out those that have endpoints, all of them with a URL that begins so. */
  excludeAllTo?: string
}

const FIELDS = ["name", "uid", "metadata", "rateLimit"] as const

export class Applications {
  readonly #context: ResourceContext

  constructor(context: ResourceContext) {
    this.#context = context
  }

  async create(input: ApplicationInput): Promise<Application> {
    const { store, ids, clock, orgId } = this.#context
    const fields = parse(input)
    if (fields.name === undefined) throw invalid("name", "is required")
    const now = clock.now()
    const application = {
      id: ids.make("app", now),
      orgId,
      uid: null,
      metadata: {},
      rateLimit: null,
      ...fields,
      name: fields.name,
      createdAt: now,
      updatedAt: now,
    }
    const made = await madeOnce(
      () => store.createApplication(application).then(() => application),
      () => store.getApplication(orgId, application.id),
    )
    return show(made)
  }

  /** By id or uid; rejects with `not_found`. */
  async get(app: string): Promise<Application> {
    return show(await requireApplication(this.#context, app))
  }

  list(query: ApplicationQuery = {}): Listing<Application> {
    return listing(query, (asked) => this.#page(asked))
  }

  async #page(query: ApplicationQuery): Promise<List<Application>> {
    const { store, orgId } = this.#context
    requireObject(query, "query")
    const { excludeWithoutEndpoints, excludeAllDisabled, excludeAllTo, ...page } = query
    const filter: ApplicationFilter = {
      excludeWithoutEndpoints: requireBoolean(excludeWithoutEndpoints ?? false, "excludeWithoutEndpoints"),
      excludeAllDisabled: requireBoolean(excludeAllDisabled ?? false, "excludeAllDisabled"),
      excludeAllTo: excludeAllTo === undefined ? undefined : requireText(excludeAllTo, "excludeAllTo", 4096),
    }
    return listPage(
      pageById("app", onlyPage(page)),
      (read) => store.listApplications(orgId, read, filter),
      ({ id }) => id,
      show,
    )
  }

  async update(app: string, input: Partial<ApplicationInput>): Promise<Application> {
    const { store, clock } = this.#context
    const { id } = await requireApplication(this.#context, app)
    return show(await store.updateApplication(id, parse(input), clock.now()))
  }

  /** Its endpoints go with it, and its keys open nothing more; what waits ends as dead with the reason `cancelled`. */
  async delete(app: string): Promise<void> {
    const { id } = await requireApplication(this.#context, app)
    await this.#context.store.deleteApplication(
      id,
      await newTask(this.#context, "cancel", "application.delete", { appId: id, live: true }),
    )
    forgetKeys(this.#context.store)
    this.#context.recall({ appId: id })
    this.#context.wakeTasks()
  }
}

function parse(input: Partial<ApplicationInput>): ApplicationPatch {
  requireObject(input, "application")
  refuseUnknown(input, FIELDS, "")
  if (input.uid?.startsWith?.("app_")) throw invalid("uid", "must not start with app_")
  if (input.name === "") throw invalid("name", "must not be empty")
  return {
    ...(input.name === undefined ? {} : { name: requireText(input.name, "name", 256) }),
    ...(input.uid === undefined ? {} : { uid: optionalName(input.uid, "uid") }),
    ...(input.metadata === undefined ? {} : { metadata: requireMetadata(input.metadata, "metadata") }),
    ...(input.rateLimit === undefined
      ? {}
      : { rateLimit: optionalWholeNumber(input.rateLimit, "rateLimit", 1, 65_535) }),
  }
}

function show({ orgId: _org, ...row }: Row): Application {
  return { ...row, createdAt: date(row.createdAt), updatedAt: date(row.updatedAt) }
}
