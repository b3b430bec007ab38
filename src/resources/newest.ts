/** Counts and groups that read a bounded number of rows. */
import type { DeliveryFilter, Store } from "../store/store.ts"
import { MOST_SEARCHED } from "./paging.ts"

export interface SearchEnd {
  /** The time of the last delivery that was read; null: all were. */
  readonly searchedTo: Date | null
}

const NEWEST = { limit: 1, order: "descending", from: null, back: false } as const

/** Runs a count or a grouping over the newest 10 000 deliveries that an index finds for the filter. */
export async function ofNewest<R>(
  store: Pick<Store, "boundDeliveries">,
  filter: DeliveryFilter,
  run: (filter: DeliveryFilter) => Promise<R>,
): Promise<SearchEnd & { readonly found: R }> {
  const bound = await store.boundDeliveries(filter, NEWEST, MOST_SEARCHED)
  return { found: await run(bound.filter), searchedTo: bound.end === null ? null : new Date(bound.end.at) }
}
