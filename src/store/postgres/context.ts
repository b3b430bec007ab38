/** What the operations share, and what they remember of the database. */
import type { BoundedCache } from "../../core/bounded-cache.ts"
import type { Ids } from "../../core/ids.ts"
import type { Database } from "./connection.ts"
import type { Partitions } from "./partitions.ts"

export interface Context {
  readonly database: Database
  readonly ids: Ids
  readonly partitions: Partitions
  /** Applications for which this process accepts messages: only their lanes can be handed any. */
  readonly accepting: BoundedCache<string, true>
}
