/** Workers: the processes that deliver, whether they are alive, and how many deliveries each has in hand. */
import type { WorkerStatus } from "../store/store.ts"
import { type WholeListing, wholeListing } from "./paging.ts"
import { date, type ResourceContext } from "./resource-context.ts"

export interface Worker extends Omit<WorkerStatus, "aliveUntil"> {
  readonly aliveUntil: Date | null
}

export class Workers {
  readonly #context: ResourceContext

  constructor(context: ResourceContext) {
    this.#context = context
  }

  list(): WholeListing<Worker> {
    return wholeListing(this.#all())
  }

  async #all(): Promise<Worker[]> {
    const rows = await this.#context.store.listWorkers(this.#context.orgId)
    return rows.map((row) => ({ ...row, aliveUntil: date(row.aliveUntil) }))
  }
}
