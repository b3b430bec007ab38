/** Which subjects a rule holds for, as a pure function of a snapshot of the store and of the attempts of the last 10 minutes. */
import type { HealthState } from "../core/health.ts"
import { countText, durationText, percentText, timeText } from "../core/wording.ts"
import type { WindowSums } from "../monitor/history.ts"
import type { Snapshot, TroubledEndpoint } from "../monitor/snapshot.ts"
import { entryNameOf } from "../relay/agent-record.ts"
import type { RuleId, RuleSettings } from "./rules.ts"

/** A subject that a rule holds for. */
export interface Subject {
  /** An endpoint's id, or an agent as `APP_ID.NAME`; empty for a rule about the whole store. */
  readonly key: string
  readonly name: string
  readonly since: number
  readonly detail: string
}

export interface Facts {
  readonly snapshot: Snapshot
  /** Sums of the last 10 minutes. */
  readonly recent: Omit<WindowSums, "overMs">
  readonly now: number
  /** The endpoints with an alert of the rule that fires. */
  firing(rule: RuleId): ReadonlySet<string>
}

/** The rules about the store's content. */
export type StoredRuleId = Exclude<RuleId, "dead-letter" | "store-unavailable" | "disk-space">

export function evaluate(
  rule: StoredRuleId,
  { thresholds }: Pick<RuleSettings, "thresholds">,
  facts: Facts,
): Subject[] {
  const limit = (name: string) => thresholds[name]!
  switch (rule) {
    case "dead-letters-count":
      return deadLettersCount(facts, limit("count"))
    case "dead-letters-growth":
      return deadLettersGrowth(facts, limit("count"))
    case "dead-letters-age":
      return deadLettersAge(facts, limit("days"))
    case "retry-share":
      return retryShare(facts, limit("share"), limit("attempts"))
    case "oldest-due":
      return oldestDue(facts, limit("seconds"))
    case "endpoint-failing":
      return inTrouble(facts, "endpoint-failing", limit("seconds"))
    case "endpoint-open":
      return inTrouble(facts, "endpoint-open", limit("seconds"))
    case "endpoint-disabling":
      return disabling(facts, limit("hours"))
    case "agent-absent":
      return absentAgents(facts, limit("seconds"))
    default:
      return rule satisfies never
  }
}

const ofStore = (name: string, since: number, detail: string): Subject[] => [{ key: "", name, since, detail }]

function deadLettersCount({ snapshot: { deadLetters, at } }: Facts, limit: number): Subject[] {
  const total = deadLetters.reduce((sum, { count }) => sum + count, 0)
  if (total < limit) return []
  const reasons = deadLetters.filter(({ count }) => count > 0).toSorted((a, b) => b.count - a.count)
  const detail = reasons.map(({ reason, count }) => `${count} ${reason}`).join(", ")
  return ofStore(countText(total, "dead letter"), at, `${detail}; the limit is ${limit}`)
}

function deadLettersGrowth({ recent: { dead }, now }: Facts, limit: number): Subject[] {
  if (dead < limit) return []
  return ofStore(
    countText(dead, "new dead letter"),
    now,
    `${countText(dead, "delivery", "deliveries")} died in the last 10 minutes; the limit is ${limit}`,
  )
}

const DAY_MS = 86_400_000

function deadLettersAge({ snapshot: { deadLetters }, now }: Facts, days: number): Subject[] {
  const present = deadLetters.filter(({ count }) => count > 0)
  const oldestAt = Math.min(...present.map((one) => one.oldestAt))
  if (now - oldestAt < days * DAY_MS || present.length === 0) return []
  return ofStore(
    `a dead letter from ${timeText(oldestAt)}`,
    oldestAt + days * DAY_MS,
    `the oldest one died ${durationText(now - oldestAt)} ago; the limit is ${days} days`,
  )
}

function retryShare({ recent, now }: Facts, limit: number, least: number): Subject[] {
  const { attempts, retries } = recent
  if (attempts < least || retries <= limit * attempts) return []
  return ofStore(
    `${percentText(retries / attempts)} retries`,
    now,
    `${retries} of ${attempts} attempts in the last 10 minutes were retries; the limit is ${percentText(limit)}`,
  )
}

function oldestDue({ snapshot: { oldestDue: oldest }, now }: Facts, seconds: number): Subject[] {
  if (oldest === null || now - oldest.at < seconds * 1000) return []
  return ofStore(
    `a delivery that is due since ${timeText(oldest.at)}`,
    oldest.at,
    `the oldest due delivery waits for ${durationText(now - oldest.at)}, for endpoint ${oldest.endpointId}; the limit is ${seconds} s`,
  )
}

/** The state of health with which an alert of the rule begins. */
const BEGINS = { "endpoint-failing": "failing", "endpoint-open": "open" } as const
const OTHER = { "endpoint-failing": "endpoint-open", "endpoint-open": "endpoint-failing" } as const

/**
 * An endpoint has one of the two alerts at a time. It goes on while the endpoint is failing or open: a breaker that opens
 * is no end of the failure.
 */
function inTrouble({ snapshot, firing, now }: Facts, rule: keyof typeof BEGINS, seconds: number): Subject[] {
  const [own, other] = [firing(rule), firing(OTHER[rule])]
  return snapshot.troubled
    .filter(({ endpointId, health, since }) => {
      if (health !== "failing" && health !== "open") return false
      if (own.has(endpointId)) return true
      return health === BEGINS[rule] && !other.has(endpointId) && now - (since ?? now) >= seconds * 1000
    })
    .map((endpoint) => ofEndpoint(endpoint, endpoint.since ?? now, `${endpoint.health}: ${endpoint.why}`))
}

const HOUR_MS = 3_600_000

function disabling({ snapshot, now }: Facts, hours: number): Subject[] {
  return snapshot.troubled.flatMap((endpoint) => {
    const { health, disablesAt, since, why } = endpoint
    const isTrouble = health === "failing" || health === "open"
    if (!isTrouble || disablesAt === null || disablesAt - now > hours * HOUR_MS) return []
    const when = `without a success it is disabled at ${timeText(disablesAt)}`
    return [ofEndpoint(endpoint, since ?? now, why.includes("it is disabled at") ? why : `${when}; ${why}`)]
  })
}

/** One subject for each agent, however many endpoints name it. */
function absentAgents({ snapshot, now }: Facts, seconds: number): Subject[] {
  const offline = snapshot.troubled.filter(
    ({ health, since }) => health === "offline" && now - (since ?? now) >= seconds * 1000,
  )
  return [...Map.groupBy(offline, agentOf)].map(([key, endpoints]) => {
    const [first] = endpoints.toSorted((a, b) => a.since! - b.since!) as [TroubledEndpoint]
    const others = endpoints.length - 1
    const more = others === 0 ? "" : `; ${countText(others, "more endpoint")} with this agent`
    return {
      key,
      name: `${first.agent} of ${first.appId}`,
      since: first.since!,
      detail: `${first.why}${more}`,
    }
  })
}

const agentOf = ({ appId, agent }: TroubledEndpoint) => entryNameOf(appId, agent ?? "")

/** Only the host: paths and queries of webhook URLs often hold secrets. */
const ofEndpoint = ({ endpointId, url }: TroubledEndpoint, since: number, detail: string): Subject => ({
  key: endpointId,
  name: `${endpointId} (${URL.parse(url)?.host ?? "no URL"})`,
  since,
  detail,
})

/** Why an alert ended, for its last notification. */
export function endingOf(rule: StoredRuleId, subject: string, { troubled }: Snapshot): string {
  if (subject === "") return "the value is below its limit again"
  if (rule === "agent-absent") return "the agent is connected, or no endpoint needs it"
  const endpoint = troubled.find(({ endpointId }) => endpointId === subject)
  return endpoint === undefined
    ? "the endpoint is healthy or deleted"
    : `now ${endpoint.health}: ${endpoint.why}`
}

/** The states of which a snapshot lists all endpoints, unless they are too many; empty for rules about the whole store. */
function statesOf(rule: StoredRuleId): readonly HealthState[] {
  if (rule === "agent-absent") return ["offline"]
  return rule.startsWith("endpoint-") ? ["open", "failing"] : []
}

/**
 * Whether every endpoint that may be a subject of the rule is listed. A snapshot lists at most 1000 endpoints, those that are open, failing
 * or offline first. An endpoint that is missing from a shortened list may still be in trouble.
 */
export function isComplete(rule: StoredRuleId, { troubled, endpoints }: Snapshot): boolean {
  const states = statesOf(rule)
  const listed = troubled.filter(({ health }) => states.includes(health)).length
  return listed >= states.reduce((sum, state) => sum + endpoints[state], 0)
}
