/** What can come of an attempt, and what each outcome means for the policy. */
import { invalid } from "./errors.ts"
import { wholeNumber } from "./input.ts"
import type { Policy } from "./policy.ts"
import { asPolicy, type PresetName } from "./presets.ts"

/** Why no response came back: the closed list that a tenant sees. */
export const FAILURE_CAUSES = [
  "dns_error",
  "connection_refused",
  "connection_reset",
  "tls_error",
  "timeout",
  "target_forbidden",
  "response_too_large",
  "invalid_response",
  "network_error",
  "auth_error",
] as const
export type FailureCause = (typeof FAILURE_CAUSES)[number]

export type Outcome =
  /** The receiver answered. `excerpt` is the start of the body, for error_detail; nothing for a 2xx, which has none. */
  | {
      readonly kind: "response"
      readonly status: number
      readonly excerpt: string
      readonly retryAfter: string | null
    }
  /** No complete answer came. */
  | { readonly kind: "failure"; readonly cause: FailureCause }
  /** A relay agent acknowledged. */
  | { readonly kind: "ack"; readonly result: "success" | "permanent" | "transient"; readonly detail: string }
  /** Our shutdown cut the request off: not an attempt. */
  | { readonly kind: "interrupted" }
  /** Our own code or store failed: not an attempt. */
  | { readonly kind: "fault"; readonly detail: string }
  /** Its worker stopped in the middle of it once too often. */
  | { readonly kind: "stalled" }
  /** Found too old before it was tried again. */
  | { readonly kind: "overdue" }
  /** An operator, or the end of its endpoint, called it off. */
  | { readonly kind: "cancelled" }
  /** The payload was removed: there is nothing to send. */
  | { readonly kind: "expunged" }

export type Verdict = "delivered" | "retry" | "rejected" | "gone"

/** Outcomes of a request that was really made. */
export type AttemptOutcome = Extract<Outcome, { kind: "response" | "failure" | "ack" }>

export function judge(outcome: AttemptOutcome, policy: Policy): Verdict {
  switch (outcome.kind) {
    case "failure":
      return "retry"
    case "ack":
      return ({ success: "delivered", permanent: "rejected", transient: "retry" } as const)[outcome.result]
    case "response":
      return judgeStatus(outcome.status, policy)
    default:
      return outcome satisfies never
  }
}

const TRANSIENT_4XX = new Set([408, 425, 429])

function judgeStatus(status: number, policy: Policy): Verdict {
  if (status >= 200 && status < 300) return "delivered"
  if (status === 410 && policy.gone) return "gone"
  const is4xx = status >= 400 && status < 500
  switch (policy.retryable) {
    case "non-2xx":
      return "retry"
    case "transient":
      return !is4xx || TRANSIENT_4XX.has(status) ? "retry" : "rejected"
    case "5xx":
      return is4xx ? "rejected" : "retry"
    default:
      return policy.retryable satisfies never
  }
}

/** Whether an attempt that ended so is followed by another: with an HTTP status, or without an answer, for a cause. */
export function isRetryable(given: Policy | PresetName, outcome: number | FailureCause): boolean {
  const policy = asPolicy(given)
  if (typeof outcome === "number")
    return judgeStatus(wholeNumber(outcome, "outcome", 100, 599), policy) === "retry"
  if (!FAILURE_CAUSES.includes(outcome))
    throw invalid("outcome", `must be an HTTP status or one of ${FAILURE_CAUSES.join(", ")}`)
  return judge({ kind: "failure", cause: outcome }, policy) === "retry"
}

export function errorDetail(outcome: Outcome): string | null {
  switch (outcome.kind) {
    case "response":
      return `HTTP ${outcome.status}${outcome.excerpt === "" ? "" : `: ${outcome.excerpt}`}`
    case "failure":
      return outcome.cause
    case "ack":
    case "fault":
      return outcome.detail
    case "stalled":
      return "the worker stopped during the attempt, again and again"
    case "overdue":
    case "cancelled":
    case "expunged":
    case "interrupted":
      return null
    default:
      return outcome satisfies never
  }
}
