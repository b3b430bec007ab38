/** The protection of a policy in words, for its preview. */

import { longestDelay } from "./backoff.ts"
import { openMsOf } from "./breaker.ts"
import { WARNINGS_MS } from "./failing.ts"
import { DAY, type Policy } from "./policy.ts"
import { countText } from "./wording.ts"

const HOUR = 3600

export interface ProtectionField<F extends keyof Policy> {
  /** The field of the policy, with its defaults; false: off. */
  readonly settings: Policy[F]
  readonly text: string
}

export type ProtectionPreview = { readonly [F in keyof typeof DESCRIBED]: ProtectionField<F> }

/** A sentence for each field, also when it is off. */
const DESCRIBED = {
  breaker: describeBreaker,
  budget: describeBudget,
  adaptive: describeAdaptive,
  autoDisable: describeAutoDisable,
} as const satisfies { readonly [field in keyof Policy]?: (policy: Policy) => string }

export const PROTECTION_FIELDS = Object.keys(DESCRIBED) as readonly (keyof typeof DESCRIBED)[]

export function previewProtection(policy: Policy): ProtectionPreview {
  const described = PROTECTION_FIELDS.map((field) => [
    field,
    { settings: policy[field], text: DESCRIBED[field](policy) },
  ])
  return Object.fromEntries(described)
}

function describeBreaker({ breaker }: Policy): string {
  if (breaker === false) return "off: an endpoint that is down gets every request of the schedule"
  const { report, failures, ratio, attempts, window, ramp } = breaker
  const part = ratio === 0.5 ? "half" : `${round(ratio * 100)} %`
  const when = `after ${countText(failures, "failure")} in a row, or when ${part} of ${countText(attempts, "attempt")} within ${seconds(window)} fail`
  if (report) return `only reports that it would open ${when}`
  return `opens ${when}; open ${openTimes(breaker)}; then one probe, then ${countText(ramp, "request")} a second, or 1.5 times the rate before`
}

function openTimes(breaker: Exclude<Policy["breaker"], false>): string {
  const [first, second] = [0, 1].map((step) => openMsOf(step, breaker) / 1000)
  const longest = breaker.maxOpen
  if (first === longest) return seconds(longest)
  if (second === longest) return `${seconds(first!)}, then ${seconds(longest)}`
  return `${seconds(first!)}, ${seconds(second!)} … at most ${seconds(longest)}`
}

function describeBudget({ budget }: Policy): string {
  if (budget === false) return "off: retries are limited by the schedule alone"
  const { tokens, retry, timeout, success, perMinute } = budget
  const costs = `a failed retry takes ${round(retry)}, a timeout ${round(timeout)}`
  return `${countText(tokens, "token")}: ${costs}; a success gives ${round(success)} back, a minute ${round(perMinute)}; without tokens retries wait`
}

function describeAdaptive({ adaptive, delays }: Policy): string {
  if (adaptive === false) return "off: the schedule alone sets the delays"
  const causes = Map.groupBy(Object.entries(adaptive), ([, floor]) => floor)
  const floors = [...causes]
    .toSorted(([a], [b]) => a - b)
    .map(([floor, same]) => `${seconds(floor)} after ${same.map(([cause]) => cause).join(", ")}`)
  const least = floors.length === 0 ? "" : `at least ${floors.join("; ")}; `
  const longest = seconds(longestDelay(delays))
  return `${least}twice the delay after 429 and 503 without Retry-After; never above the longest delay, ${longest}`
}

function describeAutoDisable({ autoDisable }: Policy): string {
  const after = autoDisable === false ? Number.POSITIVE_INFINITY : autoDisable.after
  const warnings = WARNINGS_MS.map((ms) => ms / 1000).filter((warning) => warning < after)
  const warned = warnings.map((warning) => `${warning / HOUR} h`).join(" and ")
  if (autoDisable === false) return `off: without a success, warned after ${warned}, and never disabled`
  const disabled = `disabled after ${days(after)} and ${countText(autoDisable.failures, "failure")}`
  return `without a success, ${warned === "" ? "" : `warned after ${warned}, `}${disabled}`
}

const round = (number: number) => Math.round(number * 10) / 10
const seconds = (number: number) => `${round(number)} s`
const days = (number: number) =>
  number % DAY === 0 ? countText(number / DAY, "day") : `${round(number / HOUR)} h`
