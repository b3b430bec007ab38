/** States, reasons and causes of the API as sentences for the reader. */
import type { DeadReason } from "../../../src/core/policy.ts"
import type { WaitReason } from "../../../src/core/wait.ts"
import { words } from "../format.ts"
import type { Delivery } from "../types.ts"
import type { Tone } from "../ui/basics.tsx"

export const STATUSES: readonly (readonly [Delivery["status"], string, Tone])[] = [
  ["pending", "waiting", "idle"],
  ["failed", "retrying", "warn"],
  ["delivered", "delivered", "good"],
  ["dead", "dead", "bad"],
]

interface Why {
  /** Behind "because". */
  readonly because: string
  readonly change: string
}

/** Why a delivery waits, and how to change that. */
export const WAITS: { readonly [R in WaitReason]: Why } = {
  sending: {
    because: "its request is being sent now",
    change: "It ends with the receiver's answer, or at the timeout.",
  },
  due: { because: "it is due, and its turn comes next", change: "Nothing needs to be done." },
  scheduled: {
    because: "the sender asked for a later time",
    change: "“Retry now” or “Reschedule” on the delivery's page sends it earlier.",
  },
  retry: {
    because: "the retry policy sets a delay after a failure",
    change:
      "“Retry now” on the delivery's page sends it at once; the policy of the endpoint sets the delays.",
  },
  behind: {
    because: "the endpoint is ordered, and an earlier delivery goes first",
    change: "It follows when the earlier one is delivered, given up or cancelled.",
  },
  held: {
    because: "the receiver asked for a pause with Retry-After",
    change: "“Send all that waits now” on the endpoint's page ends the pause.",
  },
  breaker: {
    because: "the circuit breaker of the endpoint is open after too many failures",
    change: "A probe closes it when the receiver works again; “Reset” on the endpoint's page closes it now.",
  },
  budget: {
    because: "the retry budget of the endpoint is spent",
    change: "Successful requests fill it; “Reset” on the endpoint's page fills it now.",
  },
  agent: {
    because: "the agent of the endpoint is not connected",
    change: "It is sent as soon as the agent connects.",
  },
  paused: { because: "the endpoint is paused", change: "It is sent when somebody resumes the endpoint." },
  disabled: { because: "the endpoint is disabled", change: "It is sent when somebody enables the endpoint." },
  deleted: { because: "the endpoint was deleted", change: "It is about to be cancelled." },
}

export const DEAD: { readonly [R in DeadReason]: string } = {
  exhausted: "every attempt that its policy allows failed",
  expired: "it became older than its policy allows",
  rejected: "its policy does not retry this answer",
  gone: "the receiver answered 410 Gone, which also disabled the endpoint",
  cancelled: "it was cancelled, or its endpoint was deleted",
  expunged: "its payload was removed before it was delivered",
  error: "it ended its worker, or made Posthorn fail, again and again",
}

export const DEAD_TITLES: { readonly [R in DeadReason]: string } = {
  exhausted: "attempts exhausted",
  expired: "too old",
  rejected: "rejected",
  gone: "gone (410)",
  cancelled: "cancelled",
  expunged: "payload removed",
  error: "set aside",
}

const CAUSES: { readonly [cause: string]: string } = {
  dns_error: "The name of the receiver could not be resolved.",
  connection_refused: "The receiver refused the connection.",
  connection_reset: "The receiver closed the connection before it answered.",
  tls_error: "No secure connection was made: the certificate or the TLS settings of the receiver are wrong.",
  timeout: "No complete answer came in time.",
  target_forbidden: "The address is not allowed: it is private, or the operator's list forbids it.",
  response_too_large: "The answer was too large.",
  invalid_response: "The answer was not valid HTTP.",
  network_error: "The network failed.",
  auth_error: "No token for the request was obtained: the endpoint's authorization failed.",
}

export function causeTitle(cause: string): string {
  return cause === "" ? "no error" : cause.startsWith("HTTP") ? cause : words(cause)
}

/** A sentence. */
export function causeSentence(error: string): string {
  return CAUSES[error] ?? `${words(error)}.`
}
