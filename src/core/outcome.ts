/** The outcomes of an attempt, and how a policy judges them. */
import { invalid } from "./errors.ts"
import { FAILURE_CAUSES, type FailureCause } from "./failure-causes.ts"
import { wholeNumber } from "./input.ts"
import type { Policy } from "./policy.ts"
import { asPolicy, type PresetName } from "./presets.ts"

export type Outcome =
  /** `excerpt` is the start of the body, for error_detail; empty for a 2xx. */
  | {
      readonly kind: "response"
      readonly status: number
      readonly excerpt: string
      readonly retryAfter: string | null
    }
  /** No complete response. */
  | { readonly kind: "failure"; readonly cause: FailureCause }
  /** A relay agent acknowledged. */
  | {
      readonly kind: "ack"
      readonly result: "success" | "permanent" | "transient"
      readonly detail: string
      /** The agent asks for this delay after a transient failure. */
      readonly retryAfterSeconds?: number | null
    }
  /** Cut off by our shutdown: not an attempt. */
  | { readonly kind: "interrupted" }
  /** A fault of our own code or store: not an attempt. */
  | { readonly kind: "fault"; readonly detail: string }
  /** Its worker stopped during an attempt too many times. */
  | { readonly kind: "stalled" }
  /** Too old for another attempt. */
  | { readonly kind: "overdue" }
  /** By an operator, or because its endpoint was deleted. */
  | { readonly kind: "cancelled" }
  /** The payload was removed. */
  | { readonly kind: "expunged" }

export type Verdict = "delivered" | "retry" | "rejected" | "gone"

/** Outcomes of a request that was sent. */
export type AttemptOutcome = Extract<Outcome, { kind: "response" | "failure" | "ack" }>

export function isAttempt(outcome: Outcome): outcome is AttemptOutcome {
  return outcome.kind === "response" || outcome.kind === "failure" || outcome.kind === "ack"
}

export function isSuccess(outcome: Outcome): boolean {
  if (outcome.kind === "ack") return outcome.result === "success"
  return outcome.kind === "response" && outcome.status >= 200 && outcome.status < 300
}

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

/** Whether another attempt follows an HTTP status, or a cause of a missing response. */
export function isRetryable(given: Policy | PresetName, outcome: number | FailureCause): boolean {
  const policy = asPolicy(given)
  if (typeof outcome === "number")
    return judgeStatus(wholeNumber(outcome, "outcome", 100, 599), policy) === "retry"
  if (!FAILURE_CAUSES.includes(outcome))
    throw invalid("outcome", `must be an HTTP status or one of ${FAILURE_CAUSES.join(", ")}`)
  return judge({ kind: "failure", cause: outcome }, policy) === "retry"
}

/** The error in a few words, without text of the receiver's; null for a success. */
export function briefError(outcome: AttemptOutcome): string | null {
  if (isSuccess(outcome)) return null
  switch (outcome.kind) {
    case "response":
      return `HTTP ${outcome.status}`
    case "failure":
      return outcome.cause
    case "ack":
      return `${outcome.result} failure at the relay`
    default:
      return outcome satisfies never
  }
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
