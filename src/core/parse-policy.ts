/** Checks a policy that a user wrote and fills in the defaults. Every error names the field. */
import { invalid } from "./errors.ts"
import { refuseUnknown, requireBoolean, requireNumber, requireOneOf, wholeNumber } from "./input.ts"
import { parseAdaptive, parseAutoDisable, parseBreaker, parseBudget } from "./parse-protection.ts"
import {
  DAY,
  DEAD_REASONS,
  type Delays,
  type Jitter,
  type Policy,
  type PolicyInput,
  type Retention,
  type RetentionInput,
  type RetentionRule,
  STANDARD_RETENTION,
  type Strategy,
} from "./policy.ts"

/** Second names of fields. */
const SPELLINGS = {
  max_attempts: "maxAttempts",
  backoff_schedule: "delays",
  connect_timeout: "connectTimeout",
} as const satisfies { readonly [spelling in keyof PolicyInput]: keyof PolicyInput }

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
  breaker: true,
  budget: true,
  adaptive: true,
  autoDisable: true,
  max_attempts: true,
  backoff_schedule: true,
  connect_timeout: true,
  max_retries: true,
  base_delay: true,
  max_delay: true,
  strategy: true,
}

/** A policy with one of these fields comes from a system that rejects every 4xx and has no breaker: these are its defaults. */
const CLASSIFYING = ["max_retries", "base_delay", "max_delay", "strategy"] as const

/** `at` begins the field names of errors. */
export function parsePolicy(given: PolicyInput, at = "retry"): Policy {
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    const example = "{ delays: [30, 120], maxAttempts: 3 }"
    throw invalid(at, `must be the name of a policy or an object such as ${example}`)
  }
  refuseUnknown(given, Object.keys(FIELDS), at)
  const input = respelled(given, at)
  const isClassifying = CLASSIFYING.some((field) => input[field] !== undefined)
  const retryable = isClassifying ? "5xx" : "non-2xx"
  const maxAttempts = parseMaxAttempts(input, at)
  const maxAge = input.maxAge == null ? null : requireNumber(input.maxAge, `${at}.maxAge`, 1, LONGEST_AGE)
  if (maxAttempts === null && maxAge === null)
    throw invalid(`${at}.maxAttempts`, "or maxAge must be set: a policy with neither would retry for ever")
  return {
    delays: parseDelays(input, at),
    maxAttempts,
    maxAge,
    jitter: parseJitter(input.jitter ?? "none", `${at}.jitter`),
    retryable: requireOneOf(input.retryable ?? retryable, `${at}.retryable`, ["non-2xx", "transient", "5xx"]),
    retryAfter: parseRetryAfter(input.retryAfter ?? true, `${at}.retryAfter`),
    gone: requireBoolean(input.gone ?? true, `${at}.gone`),
    timeout: requireNumber(input.timeout ?? 30, `${at}.timeout`, 0.001, 600),
    connectTimeout: requireNumber(
      input.connectTimeout ?? 10,
      fieldOf(input, at, "connect_timeout"),
      0.001,
      600,
    ),
    ordered: requireBoolean(input.ordered ?? false, `${at}.ordered`),
    retention: parseRetention(input.retention, `${at}.retention`),
    breaker: parseBreaker(input.breaker ?? !isClassifying, `${at}.breaker`, maxAge),
    budget: parseBudget(input.budget ?? !isClassifying, `${at}.budget`),
    adaptive: parseAdaptive(input.adaptive, `${at}.adaptive`),
    autoDisable: parseAutoDisable(input.autoDisable ?? !isClassifying, `${at}.autoDisable`),
  }
}

/** Replaces the second names of fields. */
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

/** The name that the user wrote. */
function fieldOf(input: PolicyInput, at: string, spelling: keyof typeof SPELLINGS): string {
  return `${at}.${input[spelling] === undefined ? SPELLINGS[spelling] : spelling}`
}

function parseMaxAttempts({ max_retries, ...input }: PolicyInput, at: string): number | null {
  const field = fieldOf(input, at, "max_attempts")
  const maxAttempts = input.maxAttempts == null ? null : wholeNumber(input.maxAttempts, field, 1, 100_000)
  if (max_retries == null) return maxAttempts
  const maxRetries = wholeNumber(max_retries, `${at}.max_retries`, 0, 99_999)
  if (maxAttempts !== null)
    throw invalid(`${at}.max_retries`, "and maxAttempts say the same thing; give one of them")
  return maxRetries + 1
}

function parseDelays(input: PolicyInput, at: string): Delays {
  const { delays, strategy, base_delay, max_delay } = input
  const field = fieldOf(input, at, "backoff_schedule")
  const isFormula = [strategy, base_delay, max_delay].some((value) => value !== undefined)
  if (delays !== undefined && isFormula)
    throw invalid(field, "cannot be combined with strategy, base_delay or max_delay")
  if (delays === undefined && (isFormula || input.max_retries !== undefined)) {
    const cap = max_delay === undefined ? {} : { cap: max_delay }
    const formula = { strategy: strategy ?? "exponential", base: base_delay ?? 1, ...cap } as const
    return parseFormula(formula, at, "base_delay", "max_delay")
  }
  if (delays === undefined)
    throw invalid(`${at}.delays`, "is required: a list of seconds or { strategy, base, factor, cap }")
  if (!Array.isArray(delays)) {
    if (input.backoff_schedule !== undefined) throw invalid(field, "must be a list of seconds")
    if (input.then !== undefined)
      throw invalid(`${at}.then`, "follows a list of delays; a formula has no end")
    return parseFormula(delays as Formula, `${at}.delays`, "base", "cap")
  }
  if (delays.length === 0) throw invalid(field, "must not be an empty list")
  const list = delays.map((delay, i) => requireNumber(delay, `${field}[${i}]`, 0, LONGEST_DELAY))
  return { list, then: requireNumber(input.then ?? list.at(-1), `${at}.then`, 0, LONGEST_DELAY) }
}

interface Formula {
  readonly strategy: Strategy
  readonly base: number
  readonly factor?: number
  readonly cap?: number
}

function parseFormula(input: Formula, at: string, baseField: string, capField: string): Delays {
  if (typeof input !== "object" || input === null)
    throw invalid(at, "must be a list of seconds or { strategy, base, factor, cap }")
  refuseUnknown(input, ["strategy", "base", "factor", "cap"], at)
  const strategy = requireOneOf(input.strategy, `${at}.strategy`, ["exponential", "linear", "fixed"])
  if (input.factor !== undefined && strategy !== "exponential")
    throw invalid(`${at}.factor`, `has no meaning for ${strategy}`)
  const base = requireNumber(input.base, `${at}.${baseField}`, 0, LONGEST_DELAY)
  const cap = requireNumber(input.cap ?? Math.max(base, DEFAULT_CAP), `${at}.${capField}`, 0, LONGEST_DELAY)
  if (cap < base) throw invalid(`${at}.${capField}`, `must be at least ${baseField}`)
  return { strategy, base, factor: requireNumber(input.factor ?? 2, `${at}.factor`, 1, 100), cap }
}

function parseJitter(value: unknown, field: string): Jitter {
  if (value === "none" || value === "full") return value
  if (Array.isArray(value) && value.length === 2) {
    const min = requireNumber(value[0], `${field}[0]`, 0, 10)
    const max = requireNumber(value[1], `${field}[1]`, 0, 10)
    if (min <= max) return [min, max]
  }
  throw invalid(field, 'must be "none", "full" or a pair [min, max] such as [0.5, 1.5]')
}

function parseRetryAfter(value: unknown, field: string): number {
  if (typeof value === "boolean") return value ? RETRY_AFTER_CAP : 0
  return requireNumber(value, field, 0, LONGEST_DELAY)
}

/** `dead` is the rule of all reasons that have none of their own. */
function parseRetention(input: PolicyInput["retention"], at: string): Retention {
  if (input === undefined) return STANDARD_RETENTION
  if (typeof input !== "object" || input === null)
    throw invalid(at, 'must be an object such as { delivered: { after: 2592000 }, dead: "never" }')
  const rules: { [outcome: string]: RetentionRule } = {}
  const outcomes = ["dead", "delivered", ...DEAD_REASONS] as const
  for (const outcome of outcomes) {
    const rule = input[outcome]
    if (rule === undefined) continue
    for (const target of outcome === "dead" ? DEAD_REASONS : [outcome]) {
      if (rule === "never") delete rules[target]
      else rules[target] = parseRetentionRule(rule, target, `${at}.${outcome}`)
    }
  }
  for (const outcome of Object.keys(input))
    if (!(outcomes as readonly string[]).includes(outcome))
      throw invalid(`${at}.${outcome}`, "is not an outcome")
  return rules
}

function parseRetentionRule(
  rule: Exclude<RetentionInput, "never">,
  outcome: string,
  at: string,
): RetentionRule {
  if (typeof rule !== "object" || rule === null)
    throw invalid(at, 'must be "never" or { after: seconds, from: "received_at" }')
  const from = rule.from ?? (outcome === "delivered" ? "delivered_at" : "last_attempted_at")
  return {
    after: requireNumber(rule.after, `${at}.after`, 0, LONGEST_AGE),
    from: requireOneOf(from, `${at}.from`, ["delivered_at", "last_attempted_at", "received_at"]),
  }
}
