/** State that operations share. */
import type { BoundedCache } from "../../core/bounded-cache.ts"
import type { Ids } from "../../core/ids.ts"
import type { Store } from "../store.ts"
import type { Database } from "./connection.ts"
import type { Partitions } from "./partitions.ts"

export interface Context {
  readonly database: Database
  readonly ids: Ids
  readonly partitions: Partitions
  /** Applications for which this process accepts messages: only their lanes are opened. */
  readonly accepting: BoundedCache<string, true>
}

/** A method of the contract, with the context before its arguments. */
export type Operation<N extends keyof Store> = (
  context: Context,
  ...args: Parameters<Store[N]>
) => ReturnType<Store[N]>
