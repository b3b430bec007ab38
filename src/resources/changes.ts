/** The record of changes: each change that a caller of the API made, for 90 days. */
import { hasCode, invalid } from "../core/errors.ts"
import { isId } from "../core/ids.ts"
import type { Entry, EntryKind } from "../store/store.ts"
import { byName, type Listing, listing, type PageInput } from "./paging.ts"
import { date, type ResourceContext, requireApplication, requireEndpoint } from "./resource-context.ts"

/** `login`: a session of the dashboard. `portal`: a session of an application's portal. `local`: the command line, on the store itself. */
export const CHANGER_KINDS = ["key", "login", "portal", "jwt", "local"] as const

export interface Changer {
  readonly kind: (typeof CHANGER_KINDS)[number]
  /** Of the key or the session; null for the others. */
  readonly id: string | null
  /** Of the key or the login link; of a JWT its subject. */
  readonly name: string
  /** The only application that the caller can access; null for the whole tenant. */
  readonly appId: string | null
}

interface ChangeRecord {
  /** The operation of the API, such as `endpoint.pause`. */
  readonly action: string
  readonly by: Changer
  readonly appId: string | null
  readonly endpointId: string | null
  /** The id or name of the resource that was made or changed, or of the task that changes it. Null: the change has no single one. */
  readonly subject: string | null
  /** The fields that the caller gave, without values that could be secret: `url, paused=true`. */
  readonly detail: string | null
}

export interface Change extends ChangeRecord {
  readonly id: string
  readonly at: Date
}

/** @internal */
export interface NewChange extends ChangeRecord {
  readonly id: string
  readonly atMs: number
}

export interface ChangeQuery extends PageInput {
  /** By id or uid; a deleted application's by its id. */
  app?: string
  /** By id; with `app` also by uid. */
  endpoint?: string
}

const CHANGE_KIND = "change"
/** A copy for the list of one endpoint: entries have one owner, and the entry of kind `change` belongs to the application. */
const ENDPOINT_CHANGE_KIND = "endpoint-change"
const KEPT_MS = 90 * 86_400_000

export class Changes {
  readonly #context: ResourceContext

  constructor(context: ResourceContext) {
    this.#context = context
  }

  /** The newest first. */
  list(query: ChangeQuery = {}): Listing<Change> {
    const { store, orgId, clock } = this.#context
    return listing(query, {
      fields: ["app", "endpoint"],
      by: { ...byName, order: "descending" as const },
      read: async ({ app, endpoint }) => {
        const appId = app === undefined ? undefined : await this.#appId(app)
        if (endpoint === undefined)
          return (page) => store.listEntries(CHANGE_KIND, orgId, page, clock.now(), appId)
        const endpointId = await this.#endpointId(endpoint, appId)
        return async (page) => {
          const entries = await store.listEntries(ENDPOINT_CHANGE_KIND, orgId, page, clock.now(), endpointId)
          // All of them, or none: an endpoint belongs to one application.
          return entries.filter(({ body }) => appId === undefined || JSON.parse(body).appId === appId)
        }
      },
      show: showChange,
    })
  }

  /** @internal A second change with the same id is ignored. */
  async record({ id, atMs, ...record }: NewChange): Promise<void> {
    const { appId, endpointId } = record
    const save = async (kind: EntryKind, owner: string | null) => {
      try {
        await this.#save(kind, owner, id, record, atMs)
      } catch (error) {
        if (!hasCode(error, "conflict")) throw error
      }
    }
    const kept = [save(CHANGE_KIND, appId)]
    if (endpointId !== null) kept.push(save(ENDPOINT_CHANGE_KIND, endpointId))
    await Promise.all(kept)
  }

  #save(kind: EntryKind, owner: string | null, name: string, record: ChangeRecord, atMs: number) {
    return this.#context.store.saveEntryIfUnchanged({
      ...{ kind, name, owner, orgId: this.#context.orgId, version: 1 },
      ...{ createdAt: atMs, updatedAt: atMs, expiresAt: atMs + KEPT_MS },
      body: JSON.stringify(record),
    })
  }

  async #appId(app: string): Promise<string> {
    return isId("app", app) ? app : (await requireApplication(this.#context, app)).id
  }

  async #endpointId(endpoint: string, appId: string | undefined): Promise<string> {
    if (isId("ep", endpoint)) return endpoint
    if (appId === undefined) throw invalid("endpoint", "must be an id: a uid needs app beside it")
    return (await requireEndpoint(this.#context, appId, endpoint)).id
  }
}

function showChange({ name, createdAt, body }: Entry): Change {
  return { id: name, at: date(createdAt), ...(JSON.parse(body) as ChangeRecord) }
}
