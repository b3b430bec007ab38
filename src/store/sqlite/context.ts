/** What the operations share on the store's thread, and what they keep between transactions. */
import { BoundedCache } from "../../core/bounded-cache.ts"
import type { Ids } from "../../core/ids.ts"
import { NEW_ATTEMPT, NEW_DELIVERY, NEW_MESSAGE } from "../columns.ts"
import type { Recipients } from "../recipients.ts"
import type { Store } from "../store.ts"
import type { Connection } from "./connection.ts"
import { Inserts } from "./inserts.ts"
import { OpenLanes } from "./open-lanes.ts"

/** Endpoints kept in memory, over all applications. */
export const MOST_RECIPIENTS = 100_000

/** A method of the contract as it runs on the store's thread: synchronous, with the context before its arguments. */
export type Operation<N extends keyof Store> = Store[N] extends (...args: infer A) => Promise<infer R>
  ? (context: Context, ...args: A) => R
  : never

export class Context {
  readonly connection: Connection
  readonly ids: Ids
  /** What accepting, fetching and settling add, until `flush`. */
  readonly messages: Inserts
  readonly deliveries: Inserts
  readonly claims: Inserts
  readonly attempts: Inserts
  readonly #gathered: readonly Inserts[]
  /** The endpoints of applications that messages were sent to, by tenant and by the id or uid that was used. */
  readonly recipients = new BoundedCache<string, Recipients>(MOST_RECIPIENTS)
  readonly openLanes = new OpenLanes()
  /** The idempotency generations that have a table; null until looked up. */
  idempotencyGenerations: readonly number[] | null = null
  #nextDeliverySeq: number | null = null
  readonly #onOthers: () => void
  #dataVersion: number
  #changedByOthers = false
  /** It was told in this transaction that they did. */
  #told = false

  /** `onOthers` is called in a transaction that finds a commit of another connection. If it throws, the next transaction calls it again. */
  constructor(connection: Connection, ids: Ids, onOthers: () => void = () => {}) {
    this.connection = connection
    this.#onOthers = onOthers
    this.ids = ids
    // Not the usual ABORT, for which SQLite keeps a copy of each page that the statement changes, to take back that statement alone.
    // Here whatever fails takes back the call, or the transaction.
    this.messages = new Inserts(connection, "INSERT OR FAIL INTO messages", NEW_MESSAGE, "payload")
    const delivery = `seq, ${NEW_DELIVERY}, handed`
    this.deliveries = new Inserts(connection, "INSERT OR FAIL INTO webhook_deliveries", delivery)
    this.claims = new Inserts(connection, "INSERT OR REPLACE INTO in_flight", "seq, token, started_at")
    this.attempts = new Inserts(connection, "INSERT OR FAIL INTO attempts", NEW_ATTEMPT, "response_body")
    this.#gathered = [this.messages, this.deliveries, this.claims, this.attempts]
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
    this.#onOthers()
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

  /** Given out before the row is written, to be told of with it. */
  takeDeliverySeq(): number {
    this.#nextDeliverySeq ??= this.#lastDeliverySeq() + 1
    return this.#nextDeliverySeq++
  }

  #lastDeliverySeq(): number {
    const row = this.connection.sql("SELECT coalesce(max(seq), 0) AS seq FROM webhook_deliveries").get()
    return row!.seq as number
  }

  /** Writes what was gathered: before anything reads it, and before it is committed. */
  flush(): void {
    for (const inserts of this.#gathered) inserts.flush()
    // Others than those that are gathered take the number that comes next.
    this.#nextDeliverySeq = null
  }

  /** Whether anything is left to be written. */
  get isGathering(): boolean {
    return this.#gathered.some(({ isEmpty }) => !isEmpty)
  }

  /** Whatever was learned in a transaction that was taken back is not so; what was told in it was not told, what was gathered goes. */
  rolledBack(): void {
    for (const inserts of this.#gathered) inserts.drop()
    this.#nextDeliverySeq = null
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
