/** Applications: the customers of the program that sends. */
import { invalid } from "../core/errors.ts"
import {
  ifGiven,
  optionalUid,
  optionalWholeNumber,
  parseFields,
  requireBoolean,
  requireMetadata,
  requireObject,
  requireText,
} from "../core/input.ts"
import { deleteSources } from "../sources/sources.ts"
import type { ApplicationPatch, Application as Row } from "../store/store.ts"
import { forgetKeys } from "./key-ring.ts"
import { byId, type Listing, listing, type PageInput } from "./paging.ts"
import { createOrFind, date, type ResourceContext, requireApplication } from "./resource-context.ts"
import { newTask } from "./tasks.ts"

export interface Application extends Omit<Row, "orgId" | "createdAt" | "updatedAt"> {
  readonly createdAt: Date
  readonly updatedAt: Date
}

export interface ApplicationInput {
  name: string
  /** Your own id for the application; accepted in place of its id. */
  uid?: string | null
  metadata?: { readonly [key: string]: string }
  /** Requests per second, over all its endpoints. */
  rateLimit?: number | null
}

export interface ApplicationQuery extends PageInput {
  excludeWithoutEndpoints?: boolean
  /** Leaves out applications whose endpoints are all disabled. */
  excludeAllDisabled?: boolean
  /** Leaves out applications whose endpoints all have a URL that begins with this text. */
  excludeAllTo?: string
}

const FILTERS = ["excludeWithoutEndpoints", "excludeAllDisabled", "excludeAllTo"] as const

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
    const made = await createOrFind(
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
    const { store, orgId } = this.#context
    return listing(query, {
      fields: FILTERS,
      by: byId("app"),
      read: async ({ excludeWithoutEndpoints = false, excludeAllDisabled = false, excludeAllTo }) => {
        const filter = {
          excludeWithoutEndpoints: requireBoolean(excludeWithoutEndpoints, "excludeWithoutEndpoints"),
          excludeAllDisabled: requireBoolean(excludeAllDisabled, "excludeAllDisabled"),
          excludeAllTo: ifGiven(excludeAllTo, "excludeAllTo", (value, field) =>
            requireText(value, field, 4096),
          ),
        }
        return (page) => store.listApplications(orgId, page, filter)
      },
      show,
    })
  }

  async update(app: string, input: Partial<ApplicationInput>): Promise<Application> {
    const { store, clock } = this.#context
    const { id } = await requireApplication(this.#context, app)
    return show(await store.updateApplication(id, parse(input), clock.now()))
  }

  /** Deletes its endpoints and sources, and revokes its keys. Deliveries that wait end as dead with the reason `cancelled`. */
  async delete(app: string): Promise<void> {
    const { id } = await requireApplication(this.#context, app)
    await this.#context.store.deleteApplication(
      id,
      await newTask(this.#context, "cancel", "application.delete", { appId: id, live: true }),
    )
    forgetKeys(this.#context.store)
    this.#context.recall({ appId: id })
    this.#context.wakeTasks()
    await deleteSources(this.#context, id)
    await this.#context.presence.forget({ orgId: this.#context.orgId, appId: id })
  }
}

function parse(input: Partial<ApplicationInput>): ApplicationPatch {
  requireObject(input, "application")
  return parseFields(input, {
    name: requireApplicationName,
    uid: (value, field) => optionalUid(value, field, "app"),
    metadata: requireMetadata,
    rateLimit: (value, field) => optionalWholeNumber(value, field, 1, 65_535),
  })
}

function requireApplicationName(value: unknown, field: string): string {
  if (value === "") throw invalid(field, "must not be empty")
  return requireText(value, field, 256)
}

function show({ orgId: _org, ...row }: Row): Application {
  return { ...row, createdAt: date(row.createdAt), updatedAt: date(row.updatedAt) }
}
