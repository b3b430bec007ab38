/** Usage of a tenant: the messages that its applications send, and the event types that their endpoints subscribe to. */
import { invalid } from "../core/errors.ts"
import { requireObject } from "../core/input.ts"
import type { SvixTaskType } from "../core/task-types.ts"
import type { Application, Endpoint, Page } from "../store/store.ts"
import { type ContentQuery, parseContent } from "./query.ts"
import type { ResourceContext } from "./resource-context.ts"
import { newReport, startTask, type Task } from "./tasks.ts"

export interface UsageQuery extends Required<Pick<ContentQuery, "since" | "until">> {
  /** By id or uid; by default all that sent a message. */
  appIds?: readonly string[]
}

const PAGE_ROWS = 500

export class Usage {
  readonly #context: ResourceContext

  constructor(context: ResourceContext) {
    this.#context = context
  }

  /** A finished task with the number of messages of each application; `unresolved` are unknown ids and uids. */
  async applications(query: UsageQuery): Promise<{ readonly task: Task; readonly unresolved: string[] }> {
    requireObject(query, "query")
    const { store, orgId } = this.#context
    const { since, until } = parseContent(query)
    if (since === undefined) throw invalid("since", "is required")
    if (until === undefined || until < since) throw invalid("until", "must not be before since")
    const { found, unresolved } = await this.#resolve(query.appIds ?? null)
    const ids = query.appIds === undefined ? null : found.map(({ id }) => id)
    const used = new Map((await store.usage(orgId, ids, { since, until })).map((one) => [one.appId, one]))
    const counted = query.appIds === undefined ? found.filter(({ id }) => used.has(id)) : found
    const appStats = counted.map(({ id, uid }) => ({
      appId: id,
      appUid: uid,
      messageDestinations: used.get(id)?.destinations ?? 0,
      messages: used.get(id)?.messages ?? 0,
    }))
    return { task: await this.#report("application.stats", { appStats }), unresolved }
  }

  /** A finished task with the event types that the endpoints of each application subscribe to. */
  async eventTypes(): Promise<Task> {
    const asked = new Map<string, { readonly types: Set<string>; all: boolean }>()
    for await (const { appId, eventTypes } of this.#endpoints()) {
      const ofApp = asked.get(appId) ?? { types: new Set<string>(), all: false }
      asked.set(appId, ofApp)
      if (eventTypes === null) ofApp.all = true
      for (const type of eventTypes ?? []) ofApp.types.add(type)
    }
    const rows = [...asked].map(([appId, { types, all }]) => ({
      appId,
      explicitlySubscribedEventTypes: [...types].sort(),
      hasCatchAllEndpoint: all,
    }))
    return this.#report("event-type.aggregate", { event_types: rows })
  }

  async endpoints(): Promise<{ readonly active: number; readonly disabled: number }> {
    const counts = { active: 0, disabled: 0 }
    for await (const { disabled } of this.#endpoints()) counts[disabled ? "disabled" : "active"]++
    return counts
  }

  /** The number of applications that have an enabled endpoint, or any endpoint. */
  async activeApplications({ withDisabled = false } = {}): Promise<number> {
    const active = new Set<string>()
    for await (const { appId, disabled } of this.#endpoints())
      if (withDisabled || !disabled) active.add(appId)
    return active.size
  }

  async #report(type: SvixTaskType, data: object): Promise<Task> {
    const task = await startTask(this.#context, newReport(this.#context, type, data))
    this.#context.events.emit({ type: "task.finished", task: { ...task, orgId: this.#context.orgId } })
    return task
  }

  async #resolve(names: readonly string[] | null) {
    const { store, orgId } = this.#context
    const found: Application[] = []
    const unresolved: string[] = []
    if (names === null) {
      for await (const one of all((page) => store.listApplications(orgId, page))) found.push(one)
      return { found, unresolved }
    }
    for (const name of new Set(names)) {
      const application = await store.getApplication(orgId, name)
      if (application === null) unresolved.push(name)
      else if (!found.some(({ id }) => id === application.id)) found.push(application)
    }
    if (found.length === 0) throw invalid("appIds", "name no application of yours")
    return { found, unresolved }
  }

  #endpoints(): AsyncGenerator<Endpoint> {
    const { store, orgId } = this.#context
    return all((page) => store.listEndpoints({ orgId }, page))
  }
}

async function* all<T extends { readonly id: string }>(
  read: (page: Page<string>) => Promise<T[]>,
): AsyncGenerator<T> {
  for (let from: string | null = null; ; ) {
    const rows: T[] = await read({ limit: PAGE_ROWS, order: "ascending", from, back: false })
    yield* rows
    if (rows.length < PAGE_ROWS) return
    from = rows.at(-1)!.id
  }
}
