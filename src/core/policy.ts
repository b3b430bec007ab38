/** Retry policies: data that says when a failed delivery is tried again and when it is given up. */
import { invalid } from "./errors.ts"

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

/** Seconds after the n-th failure: a list, then a constant; or a formula. */
export type Delays =
  | { readonly list: readonly number[]; readonly then: number }
  | { readonly strategy: Strategy; readonly base: number; readonly factor: number; readonly cap: number }

/** `none`, `full` (anywhere between 0 and the delay), or a uniform factor. */
export type Jitter = "none" | "full" | readonly [min: number, max: number]

export interface RetentionRule {
  readonly after: number
  readonly from: RetentionFrom
}

/** How long finished deliveries are kept; an outcome without a rule is kept for ever. */
export type Retention = { readonly [outcome in "delivered" | DeadReason]?: RetentionRule }

export interface Policy {
  readonly delays: Delays
  readonly maxAttempts: number | null
  readonly maxAge: number | null
  readonly jitter: Jitter
  readonly retryable: Retryable
  /** The longest Retry-After that is honoured, in seconds; 0 ignores the header. */
  readonly retryAfter: number
  /** Whether 410 ends the delivery and disables the endpoint. */
  readonly gone: boolean
  readonly timeout: number
  readonly connectTimeout: number
  /** Whether an endpoint with this policy is ordered unless it says otherwise. */
  readonly ordered: boolean
  readonly retention: Retention
}

export type RetentionInput = "never" | { after: number; from?: RetentionFrom }

/** What a user writes; every time is in seconds. The spellings in snake case are accepted beside ours. */
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
  max_attempts?: number
  backoff_schedule?: readonly number[]
  connect_timeout?: number
  max_retries?: number
  base_delay?: number
  max_delay?: number
  strategy?: Strategy
}

/** Another spelling of a field, with the same meaning. */
const SPELLINGS = {
  max_attempts: "maxAttempts",
  backoff_schedule: "delays",
  connect_timeout: "connectTimeout",
} as const satisfies { readonly [spelling in keyof PolicyInput]: keyof PolicyInput }

export const DAY = 86_400
const LONGEST_DELAY = 365 * DAY
const LONGEST_AGE = 3650 * DAY
const DEFAULT_CAP = DAY
const RETRY_AFTER_CAP = DAY

const FIELDS: { readonly [field in keyof Required<PolicyInput>]: true } = {
  delays: true,
  then: true,
  maxAttempts: true,
  maxAge: true,
  jitter: true,
  retryable: true,
  retryAfter: true,
  gone: true,
  timeout: true,
  connectTimeout: true,
  ordered: true,
  retention: true,
  max_attempts: true,
  backoff_schedule: true,
  connect_timeout: true,
  max_retries: true,
  base_delay: true,
  max_delay: true,
  strategy: true,
}

/** Words that come with a classifier of their own: 5xx and no answer are retried, every 4xx is rejected. */
const CLASSIFYING = ["max_retries", "base_delay", "max_delay", "strategy"] as const

/** Checks what a user wrote and fills in the defaults; the error names the field, below `at`. */
export function parsePolicy(given: PolicyInput, at = "retry"): Policy {
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw invalid(
      at,
      "must be the name of a policy or an object such as { delays: [30, 120], maxAttempts: 3 }",
    )
  }
  for (const field of Object.keys(given)) {
    if (!Object.hasOwn(FIELDS, field))
      throw invalid(`${at}.${field}`, `is unknown; known are ${Object.keys(FIELDS).join(", ")}`)
  }
  const input = respelled(given, at)
  const retryable = CLASSIFYING.some((word) => input[word] !== undefined) ? "5xx" : "non-2xx"
  const maxAttempts = parseMaxAttempts(input, at)
  const maxAge = optionalNumber(input.maxAge, `${at}.maxAge`, 1, LONGEST_AGE)
  if (maxAttempts === null && maxAge === null) {
    throw invalid(`${at}.maxAttempts`, "or maxAge must be set: a policy with neither would retry for ever")
  }
  return {
    delays: parseDelays(input, at),
    maxAttempts,
    maxAge,
    jitter: parseJitter(input.jitter ?? "none", `${at}.jitter`),
    retryable: oneOf(input.retryable ?? retryable, ["non-2xx", "transient", "5xx"], `${at}.retryable`),
    retryAfter: parseRetryAfter(input.retryAfter ?? true, `${at}.retryAfter`),
    gone: boolean(input.gone ?? true, `${at}.gone`),
    timeout: number(input.timeout ?? 30, `${at}.timeout`, 0.001, 600),
    connectTimeout: number(input.connectTimeout ?? 10, fieldOf(input, at, "connect_timeout"), 0.001, 600),
    ordered: boolean(input.ordered ?? false, `${at}.ordered`),
    retention: parseRetention(input.retention, `${at}.retention`),
  }
}

/** The same policy with our own names only. */
function respelled(given: PolicyInput, at: string): PolicyInput {
  const input: { [field: string]: unknown } = { ...given }
  for (const [spelling, field] of Object.entries(SPELLINGS)) {
    if (input[spelling] === undefined) continue
    if (input[field] !== undefined)
      throw invalid(`${at}.${spelling}`, `and ${field} say the same thing; give one of them`)
    input[field] = input[spelling]
  }
  return input
}

/** As the user spelled it: errors name what was written. */
function fieldOf(input: PolicyInput, at: string, spelling: keyof typeof SPELLINGS): string {
  return `${at}.${input[spelling] === undefined ? SPELLINGS[spelling] : spelling}`
}

function parseMaxAttempts(input: PolicyInput, at: string): number | null {
  const field = fieldOf(input, at, "max_attempts")
  const maxAttempts = optionalNumber(input.maxAttempts, field, 1, 100_000, true)
  const maxRetries = optionalNumber(input.max_retries, `${at}.max_retries`, 0, 99_999, true)
  if (maxRetries === null) return maxAttempts
  if (maxAttempts !== null)
    throw invalid(`${at}.max_retries`, "and maxAttempts say the same thing; give one of them")
  return maxRetries + 1
}

function parseDelays(input: PolicyInput, at: string): Delays {
  const field = fieldOf(input, at, "backoff_schedule")
  const words = { strategy: input.strategy, base_delay: input.base_delay, max_delay: input.max_delay }
  const usesWords = Object.values(words).some((value) => value !== undefined)
  if (input.delays !== undefined && usesWords) {
    throw invalid(field, "cannot be combined with strategy, base_delay or max_delay")
  }
  if (usesWords || input.max_retries !== undefined) {
    if (input.delays === undefined) {
      const formula = { strategy: input.strategy ?? "exponential", base: input.base_delay ?? 1 } as const
      return parseFormula(
        { ...formula, ...(input.max_delay === undefined ? {} : { cap: input.max_delay }) },
        at,
        "base_delay",
        "max_delay",
      )
    }
  }
  if (input.delays === undefined)
    throw invalid(`${at}.delays`, "is required: a list of seconds or { strategy, base, factor, cap }")
  if (!Array.isArray(input.delays)) {
    if (input.backoff_schedule !== undefined) throw invalid(field, "must be a list of seconds")
    if (input.then !== undefined)
      throw invalid(`${at}.then`, "follows a list of delays; a formula has no end")
    return parseFormula(
      input.delays as Exclude<PolicyInput["delays"], readonly number[] | undefined>,
      `${at}.delays`,
      "base",
      "cap",
    )
  }
  if (input.delays.length === 0) throw invalid(field, "must not be an empty list")
  const list = input.delays.map((delay, i) => number(delay, `${field}[${i}]`, 0, LONGEST_DELAY))
  return { list, then: number(input.then ?? list.at(-1), `${at}.then`, 0, LONGEST_DELAY) }
}

function parseFormula(
  input: { strategy: Strategy; base: number; factor?: number; cap?: number },
  at: string,
  baseField: string,
  capField: string,
): Delays {
  if (typeof input !== "object" || input === null)
    throw invalid(at, "must be a list of seconds or { strategy, base, factor, cap }")
  for (const field of Object.keys(input)) {
    if (!["strategy", "base", "factor", "cap"].includes(field))
      throw invalid(`${at}.${field}`, "is unknown; known are strategy, base, factor, cap")
  }
  const strategy = oneOf(input.strategy, ["exponential", "linear", "fixed"], `${at}.strategy`)
  if (input.factor !== undefined && strategy !== "exponential")
    throw invalid(`${at}.factor`, `has no meaning for ${strategy}`)
  const base = number(input.base, `${at}.${baseField}`, 0, LONGEST_DELAY)
  const cap = number(input.cap ?? Math.max(base, DEFAULT_CAP), `${at}.${capField}`, 0, LONGEST_DELAY)
  if (cap < base) throw invalid(`${at}.${capField}`, `must be at least ${baseField}`)
  return { strategy, base, factor: number(input.factor ?? 2, `${at}.factor`, 1, 100), cap }
}

function parseJitter(value: unknown, field: string): Jitter {
  if (value === "none" || value === "full") return value
  if (Array.isArray(value) && value.length === 2) {
    const min = number(value[0], `${field}[0]`, 0, 10)
    const max = number(value[1], `${field}[1]`, 0, 10)
    if (min <= max) return [min, max]
  }
  throw invalid(field, 'must be "none", "full" or a pair [min, max] such as [0.5, 1.5]')
}

function parseRetryAfter(value: unknown, field: string): number {
  if (typeof value === "boolean") return value ? RETRY_AFTER_CAP : 0
  return number(value, field, 0, LONGEST_DELAY)
}

/** An outcome keeps for ever unless a rule names it; `dead` stands for every reason without a rule of its own. */
function parseRetention(input: PolicyInput["retention"], at: string): Retention {
  if (input === undefined) return STANDARD_RETENTION
  if (typeof input !== "object" || input === null)
    throw invalid(at, 'must be an object such as { delivered: { after: 2592000 }, dead: "never" }')
  const rules: { [outcome: string]: RetentionRule } = {}
  for (const outcome of ["dead", "delivered", ...DEAD_REASONS] as const) {
    const rule = input[outcome]
    if (rule === undefined) continue
    for (const target of outcome === "dead" ? DEAD_REASONS : [outcome]) {
      if (rule === "never") delete rules[target]
      else rules[target] = parseRetentionRule(rule, target, `${at}.${outcome}`)
    }
  }
  for (const outcome of Object.keys(input)) {
    if (!["dead", "delivered", ...DEAD_REASONS].includes(outcome))
      throw invalid(`${at}.${outcome}`, "is not an outcome")
  }
  return rules
}

function parseRetentionRule(
  rule: Exclude<RetentionInput, "never">,
  outcome: string,
  at: string,
): RetentionRule {
  if (typeof rule !== "object" || rule === null)
    throw invalid(at, 'must be "never" or { after: seconds, from: "received_at" }')
  return {
    after: number(rule.after, `${at}.after`, 0, LONGEST_AGE),
    from: oneOf(
      rule.from ?? defaultFrom(outcome),
      ["delivered_at", "last_attempted_at", "received_at"],
      `${at}.from`,
    ),
  }
}

function defaultFrom(outcome: string): RetentionFrom {
  return outcome === "delivered" ? "delivered_at" : "last_attempted_at"
}

/** Delivered 30 days, dead 90. */
export const STANDARD_RETENTION: Retention = {
  delivered: { after: 30 * DAY, from: "delivered_at" },
  ...Object.fromEntries(
    DEAD_REASONS.map((reason) => [reason, { after: 90 * DAY, from: "last_attempted_at" }]),
  ),
}

function number(value: unknown, field: string, least: number, most: number, whole = false): number {
  if (
    typeof value !== "number" ||
    !Number.isFinite(value) ||
    value < least ||
    value > most ||
    (whole && !Number.isInteger(value))
  ) {
    throw invalid(field, `must be a ${whole ? "whole " : ""}number between ${least} and ${most}`)
  }
  return value
}

function optionalNumber(
  value: unknown,
  field: string,
  least: number,
  most: number,
  whole = false,
): number | null {
  return value === undefined || value === null ? null : number(value, field, least, most, whole)
}

function boolean(value: unknown, field: string): boolean {
  if (typeof value !== "boolean") throw invalid(field, "must be true or false")
  return value
}

function oneOf<T extends string>(value: unknown, choices: readonly T[], field: string): T {
  if (!choices.includes(value as T)) throw invalid(field, `must be one of ${choices.join(", ")}`)
  return value as T
}
