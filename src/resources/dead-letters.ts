/** Dead letters: deliveries that were given up and not discarded. */
import { invalid, PosthornError } from "../core/errors.ts"
import { optionalOneOf, wholeNumber } from "../core/input.ts"
import type { DeliveryFilter, Endpoint, DeadGroup as GroupRow } from "../store/store.ts"
import {
  amendIfUnchanged,
  type Deliveries,
  type Delivery,
  listDeliveries,
  readDelivery,
} from "./deliveries.ts"
import { type DeliveryQuery, parseQuery, toFilter } from "./delivery-query.ts"
import { ofNewest, type SearchEnd } from "./newest.ts"
import type { BoundedInput, Listing, PageInput } from "./paging.ts"
import { date, type ResourceContext } from "./resource-context.ts"
import { startNewTask, type Task } from "./tasks.ts"

export type DeadQuery = Omit<DeliveryQuery, "status">

export interface DeadGrouping {
  readonly by?: "error" | "cause"
}

export interface DeadGroup extends Omit<GroupRow, "oldestAt" | "newestAt"> {
  /** Null for an endpoint that was deleted. */
  readonly endpointUid: string | null
  readonly endpointUrl: string | null
  readonly oldestAt: Date
  readonly newestAt: Date
}

export class DeadLetters {
  readonly #context: ResourceContext
  readonly #deliveries: Deliveries

  constructor(context: ResourceContext, deliveries: Deliveries) {
    this.#context = context
    this.#deliveries = deliveries
  }

  list(query: DeadQuery & BoundedInput & PageInput = {}): Listing<Delivery> {
    const context = this.#context
    return listDeliveries(context, query, async (asked) => deadOnly(asked, await toFilter(context, asked)))
  }

  /** The number of deliveries that `retryMany` or `discardMany` would take. */
  async count(query: DeadQuery = {}): Promise<number> {
    return this.#context.store.countDeliveries(await this.#filter(query))
  }

  /** As `count`, of the newest 10 000 dead letters that an index finds. */
  async countNewest(query: DeadQuery = {}): Promise<SearchEnd & { readonly count: number }> {
    const { store } = this.#context
    const filter = await this.#filter(query)
    const { found, searchedTo } = await ofNewest(store, filter, (bound) => store.countDeliveries(bound))
    return { count: found, searchedTo }
  }

  /** By endpoint, reason and error, the largest group first; with `by: "cause"` by the start of their errors, up to a colon. */
  async groups(query: DeadQuery = {}, limit = 100, options: DeadGrouping = {}): Promise<DeadGroup[]> {
    const { most, by } = parseGrouping(limit, options)
    return this.#named(await this.#context.store.groupDead(await this.#filter(query), most, by))
  }

  /** As `groups`, of the newest 10 000 dead letters that an index finds. */
  async groupsOfNewest(
    query: DeadQuery = {},
    limit = 100,
    options: DeadGrouping = {},
  ): Promise<SearchEnd & { readonly groups: readonly DeadGroup[] }> {
    const { store } = this.#context
    const { most, by } = parseGrouping(limit, options)
    const filter = await this.#filter(query)
    const { found, searchedTo } = await ofNewest(store, filter, (bound) => store.groupDead(bound, most, by))
    return { groups: await this.#named(found), searchedTo }
  }

  async #named(rows: readonly GroupRow[]): Promise<DeadGroup[]> {
    const { store } = this.#context
    const names = new Map<string, Endpoint | null>()
    for (const { appId, endpointId } of rows)
      if (!names.has(endpointId)) names.set(endpointId, await store.getEndpoint(appId, endpointId))
    return rows.map((row) => ({
      ...row,
      endpointUid: names.get(row.endpointId)?.uid ?? null,
      endpointUrl: names.get(row.endpointId)?.url ?? null,
      oldestAt: date(row.oldestAt),
      newestAt: date(row.newestAt),
    }))
  }

  retry(id: string): Promise<Delivery> {
    return this.#deliveries.retry(id)
  }

  /** Durable: goes on after a restart. Watch it with `tasks.get`, stop it with `tasks.cancel`. */
  async retryMany(query: DeadQuery): Promise<Task> {
    return startNewTask(this.#context, "retry", "dead.retry", await this.#filter(query))
  }

  /** Removes it from the dead letters. Its record stays until retention removes it. */
  async discard(id: string): Promise<Delivery> {
    const delivery = await readDelivery(this.#context, id)
    const { status } = delivery
    if (status !== "dead") throw new PosthornError("conflict", `delivery "${id}" is ${status}, not dead`)
    await amendIfUnchanged(this.#context, delivery, { discardedAt: this.#context.clock.now() })
    return this.#deliveries.get(id)
  }

  async discardMany(query: DeadQuery): Promise<Task> {
    return startNewTask(this.#context, "discard", "dead.discard", await this.#filter(query))
  }

  async #filter(query: DeadQuery): Promise<DeliveryFilter> {
    return deadOnly(query, await parseQuery(this.#context, query))
  }
}

function parseGrouping(limit: number, { by }: DeadGrouping) {
  return {
    most: wholeNumber(limit, "limit", 1, 1000),
    by: optionalOneOf(by, "by", ["error", "cause"]),
  }
}

function deadOnly(query: DeadQuery, filter: DeliveryFilter): DeliveryFilter {
  if ("status" in query) throw invalid("status", "is always dead here")
  return { ...filter, status: "dead", undiscarded: true }
}
