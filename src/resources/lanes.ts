/** Lanes: what waits for each endpoint, why, and since when. */
import { refuseUnknown, requireObject } from "../core/input.ts"
import type { Endpoint, LaneStatus } from "../store/store.ts"
import { type Core, date, requireApplication } from "./core.ts"
import {
  type List,
  type Listing,
  listing,
  listPage,
  PAGE_FIELDS,
  type PageInput,
  pageById,
} from "./paging.ts"

/** `sending`: requests are under way. `due`: next in turn. `retry`: until `nextDueAt`. `held`: a Retry-After, until `heldUntil`. */
export type LaneReason = "sending" | "due" | "retry" | "held" | "paused" | "disabled" | "deleted"

export interface Lane extends Omit<LaneStatus, "oldestAt" | "nextDueAt"> {
  /** Null for an endpoint that was deleted. */
  readonly endpointUid: string | null
  readonly endpointUrl: string | null
  readonly reason: LaneReason
  readonly oldestAt: Date
  readonly nextDueAt: Date | null
  readonly heldUntil: Date | null
}

export interface LaneQuery extends PageInput {
  app?: string
}

export class Lanes {
  readonly #core: Core

  constructor(core: Core) {
    this.#core = core
  }

  /** Those where something waits, by endpoint id. */
  list(query: LaneQuery = {}): Listing<Lane> {
    return listing(query, (asked) => this.#page(asked))
  }

  async #page(query: LaneQuery): Promise<List<Lane>> {
    requireObject(query, "query")
    refuseUnknown(query, [...PAGE_FIELDS, "app"], "")
    const { store, orgId, clock } = this.#core
    const page = pageById("ep", query)
    const filter =
      query.app === undefined ? { orgId } : { appId: (await requireApplication(this.#core, query.app)).id }
    const now = clock.now()
    return listPage(
      page,
      async (read) => {
        const rows = await store.listLanes(filter, read)
        return Promise.all(
          rows.map(async (row) => show(row, await store.getEndpoint(row.appId, row.endpointId), now)),
        )
      },
      ({ endpointId }) => endpointId,
      (lane) => lane,
    )
  }
}

function show(row: LaneStatus, endpoint: Endpoint | null, now: number): Lane {
  const heldUntil = endpoint?.holdUntil != null && endpoint.holdUntil > now ? endpoint.holdUntil : null
  return {
    ...row,
    endpointUid: endpoint?.uid ?? null,
    endpointUrl: endpoint?.url ?? null,
    reason: reasonOf(row, endpoint, heldUntil, now),
    oldestAt: date(row.oldestAt),
    nextDueAt: date(row.nextDueAt),
    heldUntil: date(heldUntil),
  }
}

function reasonOf(
  row: LaneStatus,
  endpoint: Endpoint | null,
  heldUntil: number | null,
  now: number,
): LaneReason {
  if (endpoint === null) return "deleted"
  if (endpoint.disabled) return "disabled"
  if (endpoint.paused) return "paused"
  if (row.sending > 0) return "sending"
  if (heldUntil !== null) return "held"
  return row.nextDueAt !== null && row.nextDueAt > now ? "retry" : "due"
}
