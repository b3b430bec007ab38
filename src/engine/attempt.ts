/** One attempt, from a claimed delivery to the settlement that writes it down. */
import { describe } from "../core/errors.ts"
import type { Outcome } from "../core/outcome.ts"
import { isOverdue, MOST_STALLS, settle } from "../core/settle.ts"
import type { LaneClaim } from "../schedule/schedule.ts"
import type { ClaimedDelivery, NewAttempt, Settlement } from "../store/store.ts"
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
    attempt:
      tried.result === null ? null : record(crew, delivery, tried, tried.result, change.errorDetail, now),
  }
}

function record(
  crew: Crew,
  delivery: ClaimedDelivery,
  { target, startedAt }: Tried,
  { responseStatus, responseBody, responseTruncated }: TransportResult,
  error: string | null,
  now: number,
): NewAttempt {
  return {
    id: crew.ids.make("atmpt", now),
    status: error === null ? "succeeded" : "failed",
    attemptNumber: delivery.attemptCount + 1,
    url: target!.endpoint.url,
    responseStatus,
    responseBody,
    responseTruncated,
    error,
    startedAt,
    durationMs: now - startedAt,
  }
}
