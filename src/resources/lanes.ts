/** Lanes: what waits for each endpoint, why, and since when. */
import { type Moment, momentOf } from "../core/clock.ts"
import { refuseUnknown, requireObject } from "../core/input.ts"
import { type WaitReason, waitOf } from "../core/wait.ts"
import type { Endpoint, LaneStatus } from "../store/store.ts"
import {
  type List,
  type Listing,
  listing,
  listPage,
  PAGE_FIELDS,
  type PageInput,
  pageById,
} from "./paging.ts"
import { date, type ResourceContext, requireApplication } from "./resource-context.ts"

export interface Lane extends Omit<LaneStatus, "oldestAt" | "first"> {
  /** Null for an endpoint that was deleted. */
  readonly endpointUid: string | null
  readonly endpointUrl: string | null
  readonly reason: WaitReason
  readonly oldestAt: Date
  /** When the next attempt can start at the earliest; null while the endpoint is paused or disabled. */
  readonly nextDueAt: Date | null
  readonly heldUntil: Date | null
}

export interface LaneQuery extends PageInput {
  app?: string
}

export class Lanes {
  readonly #context: ResourceContext

  constructor(context: ResourceContext) {
    this.#context = context
  }

  /** Those where something waits, by endpoint id. */
  list(query: LaneQuery = {}): Listing<Lane> {
    return listing(query, (asked) => this.#page(asked))
  }

  async #page(query: LaneQuery): Promise<List<Lane>> {
    requireObject(query, "query")
    refuseUnknown(query, [...PAGE_FIELDS, "app"], "")
    const { store, orgId, clock, sending } = this.#context
    const page = pageById("ep", query)
    const filter =
      query.app === undefined ? { orgId } : { appId: (await requireApplication(this.#context, query.app)).id }
    const at = momentOf(clock)
    return listPage(
      page,
      async (read) => {
        const rows = await store.listLanes(filter, read)
        return Promise.all(
          rows.map(async (row) => {
            const inFlight = sending(row.endpointId)?.size ?? row.sending
            return show({ ...row, sending: inFlight }, await store.getEndpoint(row.appId, row.endpointId), at)
          }),
        )
      },
      ({ endpointId }) => endpointId,
      (lane) => lane,
    )
  }
}

function show({ first, ...row }: LaneStatus, endpoint: Endpoint | null, at: Moment): Lane {
  const holdUntil = endpoint?.holdUntil ?? null
  const { disabled = false, paused = false } = endpoint ?? {}
  const gate = { deleted: endpoint === null, disabled, paused, holdUntil, head: null }
  const waits = first.map((one) => waitOf(one, gate, false, at))
  const next = waits.reduce((earliest, one) => ((one.at ?? 0) < (earliest.at ?? 0) ? one : earliest))
  return {
    ...row,
    endpointUid: endpoint?.uid ?? null,
    endpointUrl: endpoint?.url ?? null,
    reason: row.sending > 0 && next.at !== null ? "sending" : next.reason,
    oldestAt: date(row.oldestAt),
    nextDueAt: date(next.at),
    heldUntil: date(holdUntil !== null && holdUntil > at.now ? holdUntil : null),
  }
}
