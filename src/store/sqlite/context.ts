/** State of the store's thread that operations share, within a transaction and between transactions. */
import { BoundedCache } from "../../core/bounded-cache.ts"
import type { Ids } from "../../core/ids.ts"
import { NEW_ATTEMPT, NEW_DELIVERY, NEW_MESSAGE } from "../columns.ts"
import type { Recipients } from "../recipients.ts"
import type { Store } from "../store.ts"
import type { Connection } from "./connection.ts"
import { Inserts } from "./inserts.ts"
import { OpenLanes } from "./open-lanes.ts"
import { RollupSums } from "./rollups.ts"

/** Endpoints kept in memory, over all applications. */
export const MOST_RECIPIENTS = 100_000

/** A method of the contract as it runs on the store's thread: synchronous, with the context before its arguments. */
export type Operation<N extends keyof Store> = Store[N] extends (...args: infer A) => Promise<infer R>
  ? (context: Context, ...args: A) => R
  : never

export class Context {
  readonly connection: Connection
  readonly ids: Ids
  /** Rows of accepting, fetching and settling, until `flush`. */
  readonly messages: Inserts
  readonly deliveries: Inserts
  readonly claims: Inserts
  readonly attempts: Inserts
  readonly rollups: RollupSums
  readonly #gathered: readonly Pick<Inserts, "isEmpty" | "flush" | "drop">[]
  /** The endpoints of applications that messages were sent to, by tenant and by the id or uid that was used. */
  readonly recipients = new BoundedCache<string, Recipients>(MOST_RECIPIENTS)
  readonly openLanes = new OpenLanes()
  /** The idempotency generations that have a table; null until looked up. */
  idempotencyGenerations: readonly number[] | null = null
  #nextDeliverySeq: number | null = null
  readonly #onOthers: () => void
  #dataVersion: number
  #changedByOthers = false
  /** `takeChangedByOthers` returned true in this transaction. */
  #told = false

  /** `onOthers` is called in a transaction that finds a commit of another connection. If it throws, the next transaction calls it again. */
  constructor(connection: Connection, ids: Ids, onOthers: () => void = () => {}) {
    this.connection = connection
    this.#onOthers = onOthers
    this.ids = ids
    // FAIL instead of the default ABORT, for which SQLite copies each page that a statement changes, to undo that statement alone. Here a
    // failure rolls back the call or the transaction.
    this.messages = new Inserts(connection, "INSERT OR FAIL INTO messages", NEW_MESSAGE, "payload")
    const delivery = `seq, ${NEW_DELIVERY}, handed`
    this.deliveries = new Inserts(connection, "INSERT OR FAIL INTO webhook_deliveries", delivery)
    this.claims = new Inserts(connection, "INSERT OR REPLACE INTO in_flight", "seq, token, started_at")
    this.attempts = new Inserts(connection, "INSERT OR FAIL INTO attempts", NEW_ATTEMPT, "response_body")
    this.rollups = new RollupSums(connection)
    this.#gathered = [this.messages, this.deliveries, this.claims, this.attempts, this.rollups]
    this.#dataVersion = connection.dataVersion()
  }

  /**
   * Called in every transaction, before its operations. A commit of another connection changes the data version, so that an endpoint that
   * another process created is never missed.
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

  /** Whether another connection committed since the last call. */
  takeChangedByOthers(): boolean {
    const changed = this.#changedByOthers
    this.#told ||= changed
    this.#changedByOthers = false
    return changed
  }

  /** Number of a row that is written later. */
  takeDeliverySeq(): number {
    this.#nextDeliverySeq ??= this.#lastDeliverySeq() + 1
    return this.#nextDeliverySeq++
  }

  #lastDeliverySeq(): number {
    const row = this.connection.sql("SELECT coalesce(max(seq), 0) AS seq FROM webhook_deliveries").get()
    return row!.seq as number
  }

  /** Writes the batched rows: before an operation reads them, and before the commit. */
  flush(): void {
    for (const inserts of this.#gathered) inserts.flush()
    // Rows that are not batched take the next number.
    this.#nextDeliverySeq = null
  }

  /** Whether batched rows are not written yet. */
  get isGathering(): boolean {
    return this.#gathered.some(({ isEmpty }) => !isEmpty)
  }

  /** Undoes the state that came from a transaction which was rolled back. */
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
