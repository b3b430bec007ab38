/** The five policies with names of their own; docs/policies.md has them as a table. */
import { invalid } from "./errors.ts"
import { parsePolicy } from "./parse-policy.ts"
import { DAY, type Policy, STANDARD_RETENTION } from "./policy.ts"

const KEEP_DEAD = { delivered: { after: 30 * DAY }, dead: "never" } as const
const EXACT = {
  retryAfter: false,
  gone: false,
  breaker: false,
  budget: false,
  adaptive: false,
  autoDisable: false,
} as const

export const PRESETS = {
  standard: parsePolicy({
    delays: [5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400],
    maxAttempts: 10,
    jitter: [0.8, 1.2],
    adaptive: true,
  }),
  gateway: parsePolicy({
    ...EXACT,
    delays: [30, 120, 600, 3600, 21_600],
    maxAttempts: 5,
    retention: KEEP_DEAD,
  }),
  relay: parsePolicy({
    ...EXACT,
    delays: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048],
    then: 3600,
    maxAge: 7 * DAY,
    retryable: "5xx",
    ordered: true,
    retention: {
      dead: { after: 14 * DAY, from: "received_at" },
      delivered: { after: 7 * DAY, from: "delivered_at" },
      rejected: { after: 7 * DAY, from: "last_attempted_at" },
    },
  }),
  enterprise: {
    ...parsePolicy({
      ...EXACT,
      max_retries: 5,
      base_delay: 1,
      max_delay: 3600,
      jitter: [0.5, 1.5],
    }),
    retention: STANDARD_RETENTION,
  },
  jobs: parsePolicy({
    ...EXACT,
    delays: [1, 5, 30, 120, 600, 1800],
    then: 3600,
    maxAttempts: 6,
    retention: KEEP_DEAD,
  }),
} as const satisfies { [name: string]: Policy }

export type PresetName = keyof typeof PRESETS

export function isPreset(name: string): name is PresetName {
  return Object.hasOwn(PRESETS, name)
}

export function preset(name: string, field = "retry"): Policy {
  if (!isPreset(name)) throw invalid(field, `names no policy; presets are ${Object.keys(PRESETS).join(", ")}`)
  return PRESETS[name]
}

/** Takes the name of a preset or a parsed policy. `parsePolicy` takes what a user wrote. */
export function asPolicy(given: Policy | PresetName): Policy {
  if (typeof given === "string") return preset(given, "policy")
  if (typeof given?.delays !== "object" || Array.isArray(given.delays) || given.retryable === undefined)
    throw invalid("policy", "must be the name of a preset, or a policy as parsePolicy makes it")
  return given
}
