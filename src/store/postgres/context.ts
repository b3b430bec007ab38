/** What the operations share, and what they remember of the database. */
import type { Ids } from "../../core/ids.ts"
import type { Database } from "./connection.ts"
import type { Hands } from "./hands.ts"
import type { Partitions } from "./partitions.ts"
import type { RouteBook } from "./routes.ts"

export interface Context {
  readonly database: Database
  readonly ids: Ids
  readonly partitions: Partitions
  readonly hands: Hands
  readonly routes: RouteBook
}
