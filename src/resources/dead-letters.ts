/** Dead letters: what was given up and not discarded. */
import { invalid, PosthornError } from "../core/errors.ts"
import { requireObject, wholeNumber } from "../core/input.ts"
import type { DeliveryFilter, Endpoint, DeadGroup as GroupRow } from "../store/store.ts"
import {
  type Deliveries,
  type Delivery,
  type DeliveryQuery,
  listDeliveries,
  parseQuery,
  readDelivery,
} from "./deliveries.ts"
import { type List, type Listing, listing, type PageInput } from "./paging.ts"
import { date, newTask, type ResourceContext } from "./resource-context.ts"
import { startTask, type Task } from "./tasks.ts"

export type DeadQuery = Omit<DeliveryQuery, "status">

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

  list(query: DeadQuery & PageInput = {}): Listing<Delivery> {
    return listing(query, (asked) => this.#page(asked))
  }

  async #page(query: DeadQuery & PageInput): Promise<List<Delivery>> {
    return listDeliveries(this.#context, query, (filter) => this.#filter(filter))
  }

  /** How many `retryMany` or `discardMany` would take: the preview. */
  async count(query: DeadQuery = {}): Promise<number> {
    return this.#context.store.countDeliveries(await this.#filter(query))
  }

  /** By endpoint, reason and error, the largest group first. */
  async groups(query: DeadQuery = {}, limit = 100): Promise<DeadGroup[]> {
    const rows = await this.#context.store.groupDead(
      await this.#filter(query),
      wholeNumber(limit, "limit", 1, 1000),
    )
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
    const filter = await this.#filter(query)
    return startTask(this.#context, await newTask(this.#context, "retry", "dead.retry", filter))
  }

  /** No longer listed as a dead letter; its record stays until retention removes it. */
  async discard(id: string): Promise<Delivery> {
    const { seq, status, attemptCount } = await readDelivery(this.#context, id)
    if (status !== "dead") throw new PosthornError("conflict", `delivery "${id}" is ${status}, not dead`)
    const change = { discardedAt: this.#context.clock.now() }
    await this.#context.store.amend([
      { seq, expectedStatus: "dead", expectedAttemptCount: attemptCount, change },
    ])
    return this.#deliveries.get(id)
  }

  async discardMany(query: DeadQuery): Promise<Task> {
    const filter = await this.#filter(query)
    return startTask(this.#context, await newTask(this.#context, "discard", "dead.discard", filter))
  }

  async #filter(query: DeadQuery): Promise<DeliveryFilter> {
    requireObject(query, "query")
    if ("status" in query) throw invalid("status", "is always dead here")
    return { ...(await parseQuery(this.#context, query)), status: "dead", undiscarded: true }
  }
}
