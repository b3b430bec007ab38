/** Checks the fields of a policy that protect a receiver in an outage. Each is `false` (off), `true` (the defaults), or an object. */
import { invalid } from "./errors.ts"
import { FAILURE_CAUSES } from "./failure-causes.ts"
import { refuseUnknown, requireBoolean, requireNumber, requireObject, wholeNumber } from "./input.ts"
import type { AdaptivePolicy, AutoDisablePolicy, BreakerPolicy, BudgetPolicy, PolicyInput } from "./policy.ts"
import { DAY } from "./policy.ts"

const DEFAULT_OPEN = 30
const DEFAULT_LONGEST_OPEN = 600
const LONGEST_FLOOR = 365 * DAY

/** DNS and timeouts end by themselves; for TLS and credentials a person must act. */
const FLOORS: AdaptivePolicy = {
  timeout: 60,
  dns_error: 60,
  tls_error: 600,
  401: 600,
  403: 600,
  404: 600,
}

/** `maxAge`: a breaker that is open for longer would only be seen by deliveries that have expired. */
export function parseBreaker(
  value: PolicyInput["breaker"],
  at: string,
  maxAge: number | null,
): BreakerPolicy | false {
  if (value === false) return false
  const given = value === true ? {} : value === "report" ? { report: true } : (value ?? {})
  if (typeof given !== "object") throw invalid(at, 'must be true, false, "report" or an object')
  requireObject(given, at)
  refuseUnknown(given, ["report", "failures", "ratio", "attempts", "window", "open", "maxOpen", "ramp"], at)
  const longest = Math.max(1, Math.min(DAY, maxAge ?? DAY))
  const open = requireNumber(given.open ?? Math.min(DEFAULT_OPEN, longest), `${at}.open`, 1, longest)
  const maxOpen = given.maxOpen ?? Math.max(open, Math.min(DEFAULT_LONGEST_OPEN, longest))
  return {
    report: requireBoolean(given.report ?? false, `${at}.report`),
    failures: wholeNumber(given.failures ?? 5, `${at}.failures`, 1, 1000),
    ratio: requireNumber(given.ratio ?? 0.5, `${at}.ratio`, 0.01, 1),
    attempts: wholeNumber(given.attempts ?? 20, `${at}.attempts`, 1, 100_000),
    window: requireNumber(given.window ?? 60, `${at}.window`, 1, 3600),
    open,
    maxOpen: requireNumber(maxOpen, `${at}.maxOpen`, open, longest),
    ramp: wholeNumber(given.ramp ?? 10, `${at}.ramp`, 1, 10_000),
  }
}

/** `perMinute` has a minimum: without it, an endpoint without successes would never get its retries. */
export function parseBudget(value: PolicyInput["budget"], at: string): BudgetPolicy | false {
  if (value === false) return false
  const given = value === true ? {} : (value ?? {})
  if (typeof given !== "object") throw invalid(at, "must be true, false or an object")
  requireObject(given, at)
  refuseUnknown(given, ["tokens", "retry", "timeout", "success", "perMinute"], at)
  const tokens = wholeNumber(given.tokens ?? 100, `${at}.tokens`, 1, 100_000)
  const retry = requireNumber(given.retry ?? Math.min(5, tokens), `${at}.retry`, 0.01, tokens)
  const timeout = given.timeout ?? Math.min(Math.max(10, retry), tokens)
  return {
    tokens,
    retry,
    timeout: requireNumber(timeout, `${at}.timeout`, retry, tokens),
    success: requireNumber(given.success ?? 1, `${at}.success`, 0, tokens),
    perMinute: requireNumber(given.perMinute ?? 5, `${at}.perMinute`, 0.1, 100_000),
  }
}

export function parseAdaptive(value: PolicyInput["adaptive"], at: string): AdaptivePolicy | false {
  if (value === undefined || value === false) return false
  if (value === true) return FLOORS
  if (typeof value !== "object") throw invalid(at, "must be true, false or an object of seconds by cause")
  requireObject(value, at)
  const floors: { [cause: string]: number } = {}
  for (const [cause, seconds] of Object.entries(value)) {
    if (!(FAILURE_CAUSES as readonly string[]).includes(cause) && !/^[3-5]\d\d$/.test(cause)) {
      const known = `an HTTP status from 300 to 599 or one of ${FAILURE_CAUSES.join(", ")}`
      throw invalid(`${at}.${cause}`, `is unknown; a cause is ${known}`)
    }
    floors[cause] = requireNumber(seconds, `${at}.${cause}`, 0, LONGEST_FLOOR)
  }
  return floors
}

/** `after` has a minimum of 12 hours: an outage of an afternoon is no reason to disable. */
export function parseAutoDisable(value: PolicyInput["autoDisable"], at: string): AutoDisablePolicy | false {
  if (value === false) return false
  const given = value === true ? {} : (value ?? {})
  if (typeof given !== "object") throw invalid(at, "must be true, false or an object")
  requireObject(given, at)
  refuseUnknown(given, ["after", "failures"], at)
  return {
    after: requireNumber(given.after ?? 5 * DAY, `${at}.after`, DAY / 2, 365 * DAY),
    failures: wholeNumber(given.failures ?? 20, `${at}.failures`, 1, 100_000),
  }
}
