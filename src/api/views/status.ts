/** Svix's numbers for what became of a message at an endpoint. */
import type { DeadReason } from "../../core/policy.ts"
import type { DeliveryStatus } from "../../core/settle.ts"
import type { DeliveryFilter } from "../../store/store.ts"
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

/** Who does not know that messages can be called off sees them as sent, as Svix has it. */
export function statusOf(
  { status, deadReason }: { readonly status: DeliveryStatus; readonly deadReason: DeadReason | null },
  expanded: boolean,
): StatusOut {
  const calledOff = deadReason === "cancelled" || deadReason === "expunged"
  const number = {
    pending: SENDING,
    failed: PENDING,
    delivered: SUCCESS,
    dead: calledOff ? (expanded ? CANCELED : SUCCESS) : FAIL,
  }[status]
  return numbered(number)
}

export function numbered(status: number): StatusOut {
  return { status, statusText: MESSAGE_STATUSES[status]! }
}

/** The deliveries that are shown with this number. */
export function filterOf(status: number | undefined): Pick<DeliveryFilter, "status" | "calledOff"> {
  switch (status) {
    case SUCCESS:
      return { status: "delivered" }
    case PENDING:
      return { status: "failed" }
    case FAIL:
      return { status: "dead", calledOff: false }
    case SENDING:
      return { status: "pending" }
    case CANCELED:
      return { status: "dead", calledOff: true }
    default:
      return {}
  }
}
