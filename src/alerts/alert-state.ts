/**
 * The life of an alert, as pure functions.
 *
 *   (none) ── holds ──▶ pending ── holds again ──▶ firing ── twice not ──▶ resolved
 *     ▲                    │                          │
 *     └───── does not ─────┘                          └── acknowledge: still firing, without repeats
 */
import { PosthornError } from "../core/errors.ts"
import type { Subject } from "./evaluate.ts"
import type { RuleId } from "./rules.ts"

export const PHASES = ["pending", "firing", "resolved"] as const
export type AlertPhase = (typeof PHASES)[number]

export interface Alert {
  readonly id: string
  readonly rule: RuleId
  /** The `key` of its subject. A rule and a key have at most one alert that is not resolved. */
  readonly subject: string
  readonly name: string
  readonly detail: string
  /** Since when the condition holds. */
  readonly since: number
  readonly phase: AlertPhase
  /** Of a firing alert: evaluations in a row in which its condition did not hold. */
  readonly missed: number
  /** When it began to fire; of a pending alert, when the condition was first seen. */
  readonly startedAt: number
  readonly endedAt: number | null
  readonly acknowledged: Acknowledgement | null
  /** The channels that know of the alert, and when each was last notified. A channel is removed when it knows of the end. */
  readonly told: { readonly [channel: string]: number }
  /** Channels whose hourly limit withheld the beginning. */
  readonly withheld: readonly string[]
}

export interface Acknowledgement {
  readonly at: number
  /** The id of the key; null: the library. */
  readonly by: string | null
}

/** Evaluations in a row after which an alert fires, and after which it is resolved. */
export const EVALUATIONS = 2

export interface Evaluation {
  readonly rule: RuleId
  readonly subjects: readonly Subject[]
  /** False: alerts whose subjects are missing are left as they are. */
  readonly isComplete: boolean
  ending(subject: string): string
  readonly now: number
  newId(): string
}

/** The alerts after an evaluation of one rule; alerts of other rules and unchanged alerts are the same objects. */
export function advance(alerts: readonly Alert[], evaluation: Evaluation): Alert[] {
  const { rule, subjects, isComplete } = evaluation
  const missing = new Map(subjects.map((subject) => [subject.key, subject]))
  const after = alerts.flatMap((alert) => {
    if (alert.rule !== rule || alert.phase === "resolved") return [alert]
    const subject = missing.get(alert.subject)
    missing.delete(alert.subject)
    if (subject !== undefined) return [seenAgain(alert, subject, evaluation.now)]
    return isComplete ? notSeen(alert, evaluation) : [alert]
  })
  return [...after, ...[...missing.values()].map((subject) => first(subject, evaluation))]
}

function first({ key, name, detail, since }: Subject, { rule, now, newId }: Evaluation): Alert {
  return {
    id: newId(),
    rule,
    subject: key,
    name,
    detail,
    since,
    phase: "pending",
    missed: 0,
    startedAt: now,
    endedAt: null,
    acknowledged: null,
    told: {},
    withheld: [],
  }
}

function seenAgain(alert: Alert, { name, detail, since }: Subject, now: number): Alert {
  const fires = alert.phase === "pending"
  if (!fires && alert.missed === 0 && alert.name === name && alert.detail === detail) return alert
  return {
    ...alert,
    name,
    detail,
    // A condition without a time of its own began when it was first seen.
    since: Math.min(since, alert.since),
    phase: "firing",
    missed: 0,
    startedAt: fires ? now : alert.startedAt,
  }
}

function notSeen(alert: Alert, { now, ending }: Evaluation): Alert[] {
  if (alert.phase === "pending") return []
  const missed = alert.missed + 1
  if (missed < EVALUATIONS) return [{ ...alert, missed }]
  return [{ ...alert, phase: "resolved", missed: 0, endedAt: now, detail: ending(alert.subject) }]
}

/** Without waiting for a second evaluation. */
export function endAll(
  alerts: readonly Alert[],
  rule: RuleId,
  now: number,
  detail = "the rule was switched off",
): Alert[] {
  return alerts.flatMap((alert) => {
    if (alert.rule !== rule || alert.phase === "resolved") return [alert]
    if (alert.phase === "pending") return []
    return [{ ...alert, phase: "resolved", missed: 0, endedAt: now, detail }]
  })
}

/** The first acknowledgement stays. Rejects with `conflict` for an alert that does not fire. */
export function acknowledge(alert: Alert, by: string | null, at: number): Alert {
  if (alert.phase !== "firing")
    throw new PosthornError(
      "conflict",
      `alert ${alert.id} is ${alert.phase}; only a firing alert can be acknowledged`,
      {
        field: "alert",
      },
    )
  return alert.acknowledged === null ? { ...alert, acknowledged: { at, by } } : alert
}

const KEPT_MS = 7 * 86_400_000
const MOST_RESOLVED = 200

/** Without the resolved alerts that are too old or too many; an alert whose end some channel has not heard of stays. */
export function forget(alerts: readonly Alert[], now: number): Alert[] {
  const done = alerts.filter(
    ({ phase, told, withheld }) => phase === "resolved" && Object.keys(told).length + withheld.length === 0,
  )
  const newest = done.toSorted((a, b) => b.endedAt! - a.endedAt!).slice(0, MOST_RESOLVED)
  const kept = new Set(newest.filter(({ endedAt }) => now - endedAt! < KEPT_MS))
  const dropped = new Set(done.filter((alert) => !kept.has(alert)))
  return alerts.filter((alert) => !dropped.has(alert))
}
