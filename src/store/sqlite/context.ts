/** What the operations share on the store's thread, and what they keep between transactions. */
import type { Ids } from "../../core/ids.ts"
import type { Subscription } from "../../core/match.ts"
import type { Connection } from "./connection.ts"
import { OpenLanes } from "./open-lanes.ts"

/** What accepting a message must know of an endpoint. */
export interface Subscriber extends Subscription {
  readonly id: string
  readonly url: string
  readonly ordered: boolean
}

export interface Recipients {
  readonly appId: string
  readonly subscribers: readonly Subscriber[]
}

export class Context {
  readonly connection: Connection
  readonly ids: Ids
  /** The endpoints of each application that messages were sent to, by tenant and then by the key that was used. */
  readonly recipients = new Map<string, Map<string, Recipients | null>>()
  readonly openLanes = new OpenLanes()
  /** The idempotency generations that have a table; null until looked up. */
  idempotencyGenerations: readonly number[] | null = null
  #dataVersion: number
  #changedByOthers = false
  /** It was told in this transaction that they did. */
  #told = false

  constructor(connection: Connection, ids: Ids) {
    this.connection = connection
    this.ids = ids
    this.#dataVersion = connection.dataVersion()
  }

  /**
   * Called inside every transaction, before its operations: a commit by any other connection shows in the data version,
   * so an endpoint that another process created is never missed.
   */
  noticeOthers(): void {
    this.#told = false
    const version = this.connection.dataVersion()
    if (version === this.#dataVersion) return
    this.#dataVersion = version
    this.#changedByOthers = true
    this.forget()
  }

  /** Whether others committed anything since the last call. */
  takeChangedByOthers(): boolean {
    const changed = this.#changedByOthers
    this.#told ||= changed
    this.#changedByOthers = false
    return changed
  }

  /** Whatever was learned in a transaction that was taken back is not so; what was told in it was not told. */
  rolledBack(): void {
    if (this.#told) this.#changedByOthers = true
    this.forget()
  }

  /** After a change to endpoints or applications. */
  forget(): void {
    this.openLanes.closeAll()
    this.recipients.clear()
    this.idempotencyGenerations = null
  }
}
