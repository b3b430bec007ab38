/** Retry policies: data that says when a failed delivery is tried again and when it is given up. `parse-policy.ts` checks them. */

/** Why a delivery was given up. */
export const DEAD_REASONS = [
  "exhausted",
  "expired",
  "rejected",
  "gone",
  "cancelled",
  "expunged",
  "error",
] as const
export type DeadReason = (typeof DEAD_REASONS)[number]

export type Strategy = "exponential" | "linear" | "fixed"
export type Retryable = "non-2xx" | "transient" | "5xx"
export type RetentionFrom = "delivered_at" | "last_attempted_at" | "received_at"

/** Seconds after the n-th failure: a list and then a constant, or a formula. */
export type Delays =
  | { readonly list: readonly number[]; readonly then: number }
  | { readonly strategy: Strategy; readonly base: number; readonly factor: number; readonly cap: number }

/** `none`, `full` (uniform between 0 and the delay), or a uniform factor. */
export type Jitter = "none" | "full" | readonly [min: number, max: number]

export interface RetentionRule {
  readonly after: number
  readonly from: RetentionFrom
}

/** How long finished deliveries are kept, by outcome. Without a rule they are kept for ever. */
export type Retention = { readonly [outcome in "delivered" | DeadReason]?: RetentionRule }

/** The circuit breaker of an endpoint; times in seconds. See docs/protection.md. */
export interface BreakerPolicy {
  /** Only tells when the breaker would open. */
  readonly report: boolean
  /** It opens after this many failures in a row … */
  readonly failures: number
  /** … or when this part of at least `attempts` attempts within `window` failed. */
  readonly ratio: number
  readonly attempts: number
  readonly window: number
  /** How long it is open: doubled each time, up to `maxOpen`. */
  readonly open: number
  readonly maxOpen: number
  /** Requests a second while the backlog goes out, unless the endpoint took more before the outage. */
  readonly ramp: number
}

/** The retry budget of an endpoint: a bucket of `tokens`. Retries that fail take tokens, successes and time give them back. */
export interface BudgetPolicy {
  readonly tokens: number
  /** The cost of a failed retry … */
  readonly retry: number
  /** … and of a retry that times out. */
  readonly timeout: number
  /** The tokens that a success gives back. */
  readonly success: number
  readonly perMinute: number
}

/** The least delay in seconds by failure cause or HTTP status. */
export interface AdaptivePolicy {
  readonly [cause: string]: number
}

/** An endpoint without a success for `after` seconds is disabled, after at least `failures` failures. */
export interface AutoDisablePolicy {
  readonly after: number
  readonly failures: number
}

export interface Policy {
  readonly delays: Delays
  readonly maxAttempts: number | null
  readonly maxAge: number | null
  readonly jitter: Jitter
  readonly retryable: Retryable
  /** The longest Retry-After that is honoured, in seconds; 0: the header is ignored. */
  readonly retryAfter: number
  /** Whether 410 ends the delivery and disables the endpoint. */
  readonly gone: boolean
  readonly timeout: number
  readonly connectTimeout: number
  /** The default of `ordered` for endpoints with this policy. */
  readonly ordered: boolean
  readonly retention: Retention
  readonly breaker: BreakerPolicy | false
  readonly budget: BudgetPolicy | false
  readonly adaptive: AdaptivePolicy | false
  readonly autoDisable: AutoDisablePolicy | false
}

/** Fields that policies stored by older versions do not have. */
const UNPROTECTED = {
  breaker: false,
  budget: false,
  adaptive: false,
  autoDisable: false,
} as const satisfies Partial<Policy>

/** Stored policies were validated when they were written. */
export function readPolicy(stored: string): Policy {
  return { ...UNPROTECTED, ...JSON.parse(stored) }
}

/** Whole milliseconds: agents refuse fractions, and 16.1 * 1000 is one. */
export function timeoutMsOf({ timeout }: Pick<Policy, "timeout">): number {
  return Math.max(1, Math.round(timeout * 1000))
}

export type RetentionInput = "never" | { after: number; from?: RetentionFrom }

/** A policy as users write it, with times in seconds. Some fields have a second name, in snake case. */
export interface PolicyInput {
  delays?: readonly number[] | { strategy: Strategy; base: number; factor?: number; cap?: number }
  then?: number
  maxAttempts?: number
  maxAge?: number
  jitter?: "none" | "full" | readonly [number, number]
  retryable?: Retryable
  retryAfter?: boolean | number
  gone?: boolean
  timeout?: number
  connectTimeout?: number
  ordered?: boolean
  retention?: { [outcome in "delivered" | "dead" | DeadReason]?: RetentionInput }
  breaker?: boolean | "report" | Partial<BreakerPolicy>
  budget?: boolean | Partial<BudgetPolicy>
  adaptive?: boolean | AdaptivePolicy
  autoDisable?: boolean | Partial<AutoDisablePolicy>
  max_attempts?: number
  backoff_schedule?: readonly number[]
  connect_timeout?: number
  max_retries?: number
  base_delay?: number
  max_delay?: number
  strategy?: Strategy
}

export const DAY = 86_400

/** Delivered 30 days, dead 90. */
export const STANDARD_RETENTION: Retention = {
  delivered: { after: 30 * DAY, from: "delivered_at" },
  ...Object.fromEntries(
    DEAD_REASONS.map((reason) => [reason, { after: 90 * DAY, from: "last_attempted_at" }]),
  ),
}
