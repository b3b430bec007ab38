/** One attempt, from a claimed delivery to the settlement that writes it down. */
import { describe } from "../core/errors.ts"
import type { Outcome } from "../core/outcome.ts"
import { isOverdue, MOST_STALLS, settle } from "../core/settle.ts"
import type { LaneClaim } from "../schedule/schedule.ts"
import type { AttemptStatus, ClaimedDelivery, GivenBack, NewAttempt, Settlement } from "../store/store.ts"
import type { TransportResult } from "../transport/transport.ts"
import type { Crew } from "./crew.ts"
import type { LaneState } from "./lane-state.ts"
import type { Target } from "./target.ts"

export interface Tried {
  readonly outcome: Outcome
  /** Null when no request was made. */
  readonly result: TransportResult | null
  readonly target: Target | null
  readonly startedAt: number
}

/** Never rejects: whatever fails on our side is an outcome too. */
export async function attempt(crew: Crew, lane: LaneState, delivery: ClaimedDelivery): Promise<Tried> {
  const startedAt = crew.clock.now()
  const { target } = lane
  const unsent = (outcome: Outcome): Tried => ({ outcome, result: null, target, startedAt })
  try {
    if (delivery.stalls >= MOST_STALLS) return unsent({ kind: "stalled" })
    if (lane.deleted) return unsent({ kind: "cancelled" })
    if (target === null) return unsent({ kind: "fault", detail: lane.targetError })
    if (isOverdue(delivery, target.policy, startedAt)) return unsent({ kind: "overdue" })
    const result = await crew.transport.send(target.request(delivery, crew.clock))
    return { outcome: result.outcome, result, target, startedAt }
  } catch (error) {
    crew.logger.error(
      { err: error, delivery_id: delivery.id },
      "Posthorn failed on a delivery; it is set back",
    )
    return unsent({ kind: "fault", detail: describe(error) })
  }
}

export function toSettlement(
  crew: Crew,
  claim: LaneClaim,
  delivery: ClaimedDelivery,
  tried: Tried,
): Settlement {
  const now = crew.clock.now()
  const change = settle(delivery, tried.outcome, tried.target?.policy ?? crew.defaultPolicy, now, crew.random)
  return {
    seq: delivery.seq,
    endpointId: claim.endpointId,
    token: claim.token,
    expectedAttemptCount: delivery.attemptCount,
    change,
    attempt: toRecord(
      crew,
      delivery,
      tried,
      change.status === "delivered" ? "succeeded" : "failed",
      change.errorDetail,
    ),
  }
}

/** A request that our shutdown cut off may have reached the receiver: the log says so, the delivery's count does not. */
export function toGivenBack(
  crew: Crew,
  claim: LaneClaim,
  delivery: ClaimedDelivery,
  tried: Tried | null,
): GivenBack {
  const attempt = tried && toRecord(crew, delivery, tried, "unknown", "interrupted by shutdown")
  return { seq: delivery.seq, token: claim.token, attempt }
}

function toRecord(
  crew: Crew,
  delivery: ClaimedDelivery,
  { target, startedAt, result }: Tried,
  status: AttemptStatus,
  error: string | null,
): NewAttempt | null {
  if (result === null) return null
  const now = crew.clock.now()
  return {
    id: crew.ids.make("atmpt", now),
    status,
    attemptNumber: delivery.attemptCount + 1,
    url: target!.endpoint.url,
    responseStatus: result.responseStatus,
    responseBody: result.responseBody,
    responseTruncated: result.responseTruncated,
    error,
    startedAt,
    durationMs: now - startedAt,
  }
}
