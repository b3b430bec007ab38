/** The problems, the worst first, from the overview and the alerts that fire. */
import { duration, plural } from "../../format.ts"
import { toAlert, toDeadLetters, toEndpoint } from "../../links.ts"
import type { Alert, Overview } from "../../types.ts"
import type { Tone } from "../../ui/basics.tsx"
import { HEALTH_STATES, type HealthState } from "../health.tsx"

export interface Problem {
  readonly tone: Tone
  readonly text: string
  readonly href: string
}

/** The overview is made every 15 seconds, of a large store every minute. */
const STALE_MS = 120_000
/** Deliveries that are due are sent at once: more than this is late. */
const LATE_MS = 30_000

const TONES: readonly Tone[] = ["bad", "warn", "idle"]

export function problemsOf(overview: Overview, alerts: readonly Alert[], now: number): readonly Problem[] {
  const problems = [
    ...workers(overview, now),
    ...firing(alerts),
    ...late(overview, now),
    ...HEALTH_STATES.flatMap((health) => unhealthy(overview, health)),
    ...given(overview),
  ]
  return problems.toSorted((a, b) => TONES.indexOf(a.tone) - TONES.indexOf(b.tone))
}

/** Alerts about endpoints and agents say the same as their health, one by one. */
function firing(alerts: readonly Alert[]): readonly Problem[] {
  const problems = alerts
    .filter(({ subject }) => subject === null)
    .map(
      ({ id, name, detail, severity }): Problem => ({
        tone: severity === "critical" ? "bad" : "warn",
        text: `The alert “${name}” fires: ${detail}.`,
        href: toAlert(id),
      }),
    )
  const others = alerts.length - problems.length
  if (others === 0) return problems
  const text = `${plural(others, "alert")} about endpoints or agents ${others === 1 ? "fires" : "fire"}.`
  return [...problems, { tone: "warn", text, href: "/alerts?state=firing" }]
}

function workers({ surveyedAt }: Overview, now: number): readonly Problem[] {
  if (surveyedAt === null)
    return [
      {
        tone: "warn",
        text: "No worker has reported yet. The figures come within a minute.",
        href: "/workers",
      },
    ]
  const age = now - Date.parse(surveyedAt)
  if (age < STALE_MS) return []
  const text = `No worker has reported for ${duration(age / 1000)}: nothing may be delivered, and these figures are old.`
  return [{ tone: "bad", text, href: "/workers" }]
}

function late({ oldestDue }: Overview, now: number): readonly Problem[] {
  if (oldestDue === null) return []
  const lateMs = now - Date.parse(oldestDue.at)
  if (lateMs < LATE_MS) return []
  return [
    {
      tone: "bad",
      text: `Deliveries are late: one has been due for ${duration(lateMs / 1000)}.`,
      href: oldestDue.appId === null ? "/workers" : toEndpoint(oldestDue.appId, oldestDue.endpointId),
    },
  ]
}

const VERBS: { readonly [H in HealthState]?: readonly [Tone, string, string] } = {
  offline: ["bad", "has no agent connected", "have no agent connected"],
  open: [
    "bad",
    "is not reached: its circuit breaker is open",
    "are not reached: their circuit breakers are open",
  ],
  failing: ["bad", "fails", "fail"],
  disabled: ["warn", "is disabled", "are disabled"],
  degraded: ["warn", "answers some requests with errors", "answer some requests with errors"],
  paused: ["idle", "is paused", "are paused"],
}

function unhealthy({ endpoints, troubled }: Overview, health: HealthState): readonly Problem[] {
  const verbs = VERBS[health]
  const count = endpoints[health] ?? 0
  if (verbs === undefined || count === 0) return []
  const [tone, one, many] = verbs
  const only = count === 1 ? troubled.find((endpoint) => endpoint.health === health) : undefined
  return [
    {
      tone,
      text: `${plural(count, "endpoint")} ${count === 1 ? one : many}.`,
      href: only === undefined ? `/endpoints?health=${health}` : toEndpoint(only.appId, only.endpointId),
    },
  ]
}

/** In this hour and the one before. */
function given({ hours }: Overview): readonly Problem[] {
  const dead = hours.slice(-2).reduce((sum, hour) => sum + hour.dead, 0)
  if (dead === 0) return []
  const text = `${plural(dead, "delivery was", "deliveries were")} given up since ${clock(hours.at(-2)?.hour)}.`
  return [{ tone: "warn", text, href: toDeadLetters() }]
}

const HOUR_AND_MINUTE = new Intl.DateTimeFormat(undefined, { timeStyle: "short" })
const clock = (at: string | undefined) =>
  at === undefined ? "an hour ago" : HOUR_AND_MINUTE.format(Date.parse(at))
