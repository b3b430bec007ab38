/** Svix's numbers for the status of a message at an endpoint. */
import type { DeadReason } from "../../core/policy.ts"
import type { DeliveryStatus } from "../../core/settle.ts"
import type { AttemptCounts, AttemptStatus, DeliveryFilter, StatusCounts } from "../../store/store.ts"
import { MESSAGE_STATUSES } from "../schemas/endpoint.ts"

export const SUCCESS = 0
export const PENDING = 1
export const FAIL = 2
export const SENDING = 3
export const CANCELED = 4

export interface StatusOut {
  readonly status: number
  readonly statusText: (typeof MESSAGE_STATUSES)[number]
}

/** As in Svix: `sending` until the last attempt, never `pending`. Without `expanded`, `canceled` is shown as `success`. */
export function statusOf(
  { status, deadReason }: { readonly status: DeliveryStatus; readonly deadReason: DeadReason | null },
  expanded: boolean,
): StatusOut {
  const calledOff = deadReason === "cancelled" || deadReason === "expunged"
  const number = {
    pending: SENDING,
    failed: SENDING,
    delivered: SUCCESS,
    dead: calledOff ? (expanded ? CANCELED : SUCCESS) : FAIL,
  }[status]
  return numbered(number)
}

export function numbered(status: number): StatusOut {
  return { status, statusText: MESSAGE_STATUSES[status]! }
}

/** Counts of deliveries under Svix's names. */
export function countsOut({ delivered, pending, failed, dead, calledOff }: StatusCounts) {
  return {
    success: delivered,
    pending: 0,
    sending: pending + failed,
    fail: dead - calledOff,
    canceled: calledOff,
  }
}

/** An attempt of unknown outcome counts as failed. */
export function attemptCountsOut({ succeeded, failed, unknown }: AttemptCounts) {
  return { success: succeeded, fail: failed + unknown, canceled: 0 }
}

/** The attempts that are shown with this number. Of Svix's five numbers an attempt has one of two. */
export function attemptStatuses(status: number): readonly AttemptStatus[] {
  return (["succeeded", "failed", "unknown"] as const).filter((one) => attemptNumber(one) === status)
}

/** An attempt of unknown outcome is shown as failed. */
export function attemptNumber(status: AttemptStatus): number {
  return status === "succeeded" ? SUCCESS : FAIL
}

/** The filter for deliveries that are shown with this number. */
export function filterOf(status: number | undefined): Pick<DeliveryFilter, "status" | "calledOff" | "live"> {
  switch (status) {
    case SUCCESS:
      return { status: "delivered" }
    case PENDING:
      // No delivery is shown as pending: this filter matches none.
      return { status: "delivered", live: true }
    case FAIL:
      return { status: "dead", calledOff: false }
    case SENDING:
      return { live: true }
    case CANCELED:
      return { status: "dead", calledOff: true }
    default:
      return {}
  }
}
