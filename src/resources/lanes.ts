/** Lanes: how many deliveries wait for each endpoint, why, and since when. */
import { type Moment, momentOf } from "../core/clock.ts"
import { ifGiven, requireBoolean } from "../core/input.ts"
import { HEALTHY } from "../core/protection.ts"
import { type AgentAbsent, type WaitReason, waitOf } from "../core/wait.ts"
import { readAbsences } from "../relay/endpoint-agents.ts"
import type { Endpoint, LaneStatus } from "../store/store.ts"
import { endpointFilter } from "./delivery-query.ts"
import { byId, type Listing, listing, MOST_SEARCHED, type PageInput } from "./paging.ts"
import { date, type ResourceContext } from "./resource-context.ts"
import { agentAbsent } from "./wait-reasons.ts"

export interface Lane extends Omit<LaneStatus, "oldestAt" | "first"> {
  /** Null for an endpoint that was deleted. */
  readonly endpointUid: string | null
  readonly endpointUrl: string | null
  readonly reason: WaitReason
  readonly oldestAt: Date
  /** The earliest start of the next attempt; null while the endpoint is paused or disabled. Without its agent: when the oldest delivery is given up. */
  readonly nextDueAt: Date | null
  readonly heldUntil: Date | null
}

export interface LaneQuery extends PageInput {
  /** An application, by id or uid. */
  app?: string
  /** An endpoint, by id; or by uid together with `app`. */
  endpoint?: string
  /** True: in each queue of a lane at most 10 000 deliveries are counted, and `isLowerBound` says whether there may be more. */
  bounded?: boolean
}

export class Lanes {
  readonly #context: ResourceContext

  constructor(context: ResourceContext) {
    this.#context = context
  }

  /** The lanes in which deliveries wait, by endpoint id. */
  list(query: LaneQuery = {}): Listing<Lane> {
    const { store, clock, sending } = this.#context
    return listing(query, {
      fields: ["app", "endpoint", "bounded"],
      by: { ...byId("ep"), key: ({ endpointId }: Lane) => endpointId },
      read: async ({ app, endpoint, bounded }) => {
        const most = ifGiven(bounded, "bounded", requireBoolean) ? MOST_SEARCHED : undefined
        const filter = await endpointFilter(this.#context, { app, endpoint })
        const at = momentOf(clock)
        return async (page) => {
          const rows = await store.listLanes(filter, page, most)
          const endpoints = await Promise.all(rows.map((row) => store.getEndpoint(row.appId, row.endpointId)))
          const absences = await readAbsences(
            this.#context,
            endpoints.filter((one) => one !== null),
          )
          return rows.map((row, i) => {
            const endpoint = endpoints[i]!
            const inFlight = sending(row.endpointId)?.size ?? row.sending
            const isAbsent = endpoint !== null && absences.has(endpoint.id)
            const absent = isAbsent ? agentAbsent(this.#context, endpoint, row.oldestAt) : null
            return show({ ...row, sending: inFlight }, endpoint, absent, at)
          })
        }
      },
      show: (lane) => lane,
    })
  }
}

function show(
  { first, ...row }: LaneStatus,
  endpoint: Endpoint | null,
  absent: AgentAbsent | null,
  at: Moment,
): Lane {
  const holdUntil = endpoint?.holdUntil ?? null
  const { disabled = false, paused = false } = endpoint ?? {}
  const { protection = HEALTHY } = endpoint ?? {}
  const gate = { deleted: endpoint === null, disabled, paused, holdUntil, protection, head: null }
  const waits = first.map((one) => waitOf(one, gate, false, at, absent))
  const byAgent = waits.find(({ reason }) => reason === "agent")
  // A delivery that is scheduled comes sooner than the end of the others' age, and tells less.
  const next =
    byAgent ?? waits.reduce((earliest, one) => ((one.at ?? 0) < (earliest.at ?? 0) ? one : earliest))
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
