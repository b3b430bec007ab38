/** The alert rules: a closed list with default thresholds, and the check of an operator's settings for them. */
import { invalid } from "../core/errors.ts"
import {
  ifGiven,
  nameList,
  refuseUnknown,
  requireBoolean,
  requireNumber,
  requireObject,
  requireOneOf,
  wholeNumber,
} from "../core/input.ts"
import { nearest } from "../core/nearest.ts"
import { SEVERITIES, type Severity } from "./notification.ts"

export interface Threshold {
  readonly fallback: number
  readonly least: number
  readonly most: number
  /** False: fractions are allowed. */
  readonly whole: boolean
}

export interface RuleDefinition {
  /** Begins the summary of its notifications. */
  readonly title: string
  /** For an operator: what the alert means, and what to do. */
  readonly about: string
  readonly severity: Severity
  readonly thresholds: { readonly [name: string]: Threshold }
  /** `stored`: evaluated from the store. `local`: without the store, in the memory of one process. `notice`: has no alerts, only notifications. */
  readonly kind: "stored" | "local" | "notice"
}

const whole = (fallback: number, least: number, most: number): Threshold => ({
  fallback,
  least,
  most,
  whole: true,
})
const share = (fallback: number): Threshold => ({ fallback, least: 0.001, most: 1, whole: false })
/** An evaluation runs every 15 s. */
const seconds = (fallback: number) => whole(fallback, 15, 30 * 86_400)

export const RULES = {
  "dead-letter": {
    title: "Dead letters",
    about: "Deliveries were given up. See posthorn dead groups, then retry or discard them.",
    severity: "warning",
    thresholds: { minutes: whole(5, 1, 1440) },
    kind: "notice",
  },
  "dead-letters-count": {
    title: "Many dead letters",
    about: "Deliveries were given up and nobody has retried or discarded them. See posthorn dead groups.",
    severity: "warning",
    thresholds: { count: whole(1000, 1, 1e9) },
    kind: "stored",
  },
  "dead-letters-growth": {
    title: "Deliveries are dying",
    about: "Many deliveries were given up in the last 10 minutes. See posthorn dead groups.",
    severity: "warning",
    thresholds: { count: whole(10, 1, 1e9) },
    kind: "stored",
  },
  "dead-letters-age": {
    title: "Old dead letters",
    about: "A dead letter waits for a decision: retry it or discard it. See posthorn dead list.",
    severity: "warning",
    thresholds: { days: whole(7, 1, 365) },
    kind: "stored",
  },
  "retry-share": {
    title: "Many retries",
    about:
      "A large share of the attempts of the last 10 minutes were retries. See posthorn endpoints --health.",
    severity: "warning",
    thresholds: { share: share(0.3), attempts: whole(100, 1, 1e9) },
    kind: "stored",
  },
  "oldest-due": {
    title: "Deliveries are late",
    about:
      "A delivery is due, its endpoint may be sent to, and no worker has sent it. Check that workers run and keep up: posthorn workers.",
    severity: "critical",
    thresholds: { seconds: seconds(300) },
    kind: "stored",
  },
  "endpoint-failing": {
    title: "Endpoints are failing",
    about: "No delivery to these endpoints has succeeded for a while. See posthorn endpoints --health.",
    severity: "warning",
    thresholds: { seconds: seconds(900) },
    kind: "stored",
  },
  "endpoint-open": {
    title: "Circuit breakers are open",
    about: "These endpoints get only probes, and their deliveries wait. See posthorn endpoints --health.",
    severity: "warning",
    thresholds: { seconds: seconds(900) },
    kind: "stored",
  },
  "endpoint-disabling": {
    title: "Endpoints will be disabled",
    about: "Without a success, Posthorn disables these endpoints and holds their deliveries.",
    severity: "warning",
    thresholds: { hours: whole(24, 1, 24 * 365) },
    kind: "stored",
  },
  "agent-absent": {
    title: "Agents are not connected",
    about:
      "Deliveries to these agents wait, and are given up when their age ends. Check that posthorn agent runs there, and reaches the server: posthorn agents list.",
    severity: "warning",
    thresholds: { seconds: seconds(300) },
    kind: "stored",
  },
  "store-unavailable": {
    title: "The store is unavailable",
    about:
      "Posthorn cannot read or write its store, or cannot survey it. Other alerts are not evaluated meanwhile. Check the database and its connection.",
    severity: "critical",
    thresholds: { seconds: seconds(60) },
    kind: "local",
  },
  "disk-space": {
    title: "The disk is nearly full",
    about: "SQLite's volume is nearly full. When it is full, messages are refused. Free some space.",
    severity: "critical",
    thresholds: { share: share(0.05), bytes: whole(1_073_741_824, 0, Number.MAX_SAFE_INTEGER) },
    kind: "local",
  },
} as const satisfies { readonly [id: string]: RuleDefinition }

export type RuleId = keyof typeof RULES
export const RULE_IDS = Object.keys(RULES) as RuleId[]

export const definitionOf = (id: RuleId): RuleDefinition => RULES[id]

/** Fields that are left out have their default. */
export interface AlertRuleInput {
  readonly enabled?: boolean
  readonly severity?: Severity
  /** The names of channels; null: all channels. */
  readonly channels?: readonly string[] | null
  /** Its thresholds, by name. */
  readonly [threshold: string]: unknown
}

export interface RuleSettings {
  readonly enabled: boolean
  readonly severity: Severity
  /** Null: all channels. */
  readonly channels: readonly string[] | null
  readonly thresholds: { readonly [name: string]: number }
}

const COMMON_FIELDS = ["enabled", "severity", "channels"]
const MOST_CHANNELS = 50

export function requireRule(value: unknown, field = "rule"): RuleId {
  if (typeof value === "string" && Object.hasOwn(RULES, value)) return value as RuleId
  const meant = typeof value === "string" ? nearest(value, RULE_IDS) : null
  const hint = meant === null ? "" : `; did you mean ${meant}?`
  throw invalid(field, `must be one of ${RULE_IDS.join(", ")}${hint}`)
}

/** `at` begins the field names of errors. */
export function parseRule(id: RuleId, input: unknown, at: string): RuleSettings {
  requireObject(input, at === "" ? "rule" : at)
  const field = (name: string) => (at === "" ? name : `${at}.${name}`)
  const given = input as { readonly [field: string]: unknown }
  const { severity, thresholds } = definitionOf(id)
  refuseUnknown(given, [...COMMON_FIELDS, ...Object.keys(thresholds)], at)
  const parsed = Object.entries(thresholds).map(([name, threshold]) => [
    name,
    parseThreshold(given[name], field(name), threshold),
  ])
  return {
    enabled: ifGiven(given.enabled, field("enabled"), requireBoolean) ?? true,
    severity:
      given.severity === undefined ? severity : requireOneOf(given.severity, field("severity"), SEVERITIES),
    channels: nameList(given.channels, field("channels"), MOST_CHANNELS),
    thresholds: Object.fromEntries(parsed),
  }
}

function parseThreshold(value: unknown, field: string, { fallback, least, most, whole }: Threshold): number {
  if (value === undefined) return fallback
  return whole ? wholeNumber(value, field, least, most) : requireNumber(value, field, least, most)
}

export function defaultsOf(id: RuleId): RuleSettings {
  return parseRule(id, {}, id)
}
