/** Workers: which processes deliver, which of them are alive, and what each has in hand. */
import type { WorkerStatus } from "../store/store.ts"
import { type Core, date } from "./core.ts"
import { type WholeListing, wholeListing } from "./paging.ts"

export interface Worker extends Omit<WorkerStatus, "aliveUntil"> {
  readonly aliveUntil: Date | null
}

export class Workers {
  readonly #core: Core

  constructor(core: Core) {
    this.#core = core
  }

  list(): WholeListing<Worker> {
    return wholeListing(this.#all())
  }

  async #all(): Promise<Worker[]> {
    const rows = await this.#core.store.listWorkers(this.#core.orgId)
    return rows.map((row) => ({ ...row, aliveUntil: date(row.aliveUntil) }))
  }
}
