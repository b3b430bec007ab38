/**
 * Which notifications are due, as a pure function: beginnings, repeats and ends, grouped by rule, within each channel's
 * hourly limit. An alert that is not notified now stays due, and joins the next notification of its rule.
 */
import type { Alert } from "./alert-state.ts"
import { type AlertGroup, notificationOf } from "./grouping.ts"
import { type Notification, SEVERITIES } from "./notification.ts"
import type { NotifiedChannel } from "./notifier.ts"
import type { RuleId, RuleSettings } from "./rules.ts"
import { type SilenceBody, silenceOf } from "./silence.ts"

export interface ChannelUse {
  /** The notifications of the last hour. */
  readonly sentAt: readonly number[]
  /** Alerts that began and ended while the limit was reached; the next notification mentions them. */
  readonly folded: number
}

export interface Outgoing {
  /** Idempotency key: the notification is accepted once, however often it is handed over. */
  readonly key: string
  readonly channel: string
  readonly notification: Notification
}

export interface Book {
  readonly alerts: readonly Alert[]
  readonly groups: { readonly [rule: string]: AlertGroup }
  readonly channels: { readonly [name: string]: ChannelUse }
}

export interface PlanSettings {
  readonly rules: { readonly [id in RuleId]: RuleSettings }
  /** All channels. */
  readonly channels: readonly Pick<NotifiedChannel, "name" | "isReadable">[]
  readonly silences: readonly SilenceBody[]
  readonly repeatMs: number
  /** The most notifications of a channel in an hour. */
  readonly perHour: number
  readonly now: number
  newKey(): string
  /** For a group that begins with this alert. No other deployment may have the same: a service merges what has one key. */
  newGroupKey(first: Alert): string
}

const HOUR_MS = 3_600_000
/** Further alerts of a group that a channel knows of are notified together, at most this often. */
export const GROUP_INTERVAL_MS = 5 * 60_000

export interface Plan {
  readonly book: Book
  readonly outgoing: readonly Outgoing[]
}

export function plan(book: Book, settings: PlanSettings): Plan {
  const planning = new Planning(book, settings)
  // The worst first: they must not wait behind others for the channel's limit.
  const rules = [...new Set(book.alerts.map(({ rule }) => rule))].toSorted(
    (a, b) => severityOf(settings, a) - severityOf(settings, b) || a.localeCompare(b),
  )
  for (const { name, isReadable } of settings.channels) {
    if (!isReadable) continue
    planning.fold(name)
    for (const rule of rules) planning.planRule(name, rule)
  }
  return planning.finish()
}

const severityOf = ({ rules }: PlanSettings, rule: RuleId) => SEVERITIES.indexOf(rules[rule].severity)

class Planning {
  readonly #settings: PlanSettings
  readonly #alerts: Map<string, Alert>
  readonly #groups: Map<string, AlertGroup>
  readonly #channels: Map<string, ChannelUse>
  readonly #outgoing: Outgoing[] = []

  constructor({ alerts, groups, channels }: Book, settings: PlanSettings) {
    this.#settings = settings
    const known = new Set(settings.channels.map(({ name }) => name))
    this.#alerts = new Map(alerts.map((alert) => [alert.id, onlyKnown(alert, known)]))
    this.#groups = new Map(Object.entries(groups))
    this.#channels = new Map(
      Object.entries(channels)
        .filter(([name]) => known.has(name))
        .map(([name, use]) => [name, lastHour(use, settings.now)]),
    )
  }

  planRule(channel: string, rule: RuleId): void {
    const { now, repeatMs } = this.#settings
    const alerts = [...this.#alerts.values()].filter((alert) => alert.rule === rule)
    const known = alerts.filter(({ told }) => told[channel] !== undefined)
    const stillFiring = known.filter(({ phase }) => phase === "firing")
    const ended = known.filter(({ phase }) => phase === "resolved")

    const wanted = alerts.filter((alert) => this.#mayTell(alert, channel))
    const begun = wanted.filter(({ told }) => told[channel] === undefined)
    const repeated = wanted.filter(({ told }) => told[channel] !== undefined)
    const lastAt = Math.max(...known.map(({ told }) => told[channel]!))
    const isJoining = stillFiring.length > 0 && now - lastAt < GROUP_INTERVAL_MS

    // Beginnings before ends. If the hourly limit allows only one of them, the end waits: sent alone, it would end the group.
    if (begun.length > 0 && !isJoining) this.#tell(channel, rule, "firing", begun, false)
    const isOver = !this.#knowsOfFiring(channel, rule)
    if (ended.length > 0 && (isOver || !isJoining)) this.#tell(channel, rule, "resolved", ended, isOver)
    if (begun.length === 0 && repeated.some(({ told }) => now - told[channel]! >= repeatMs))
      this.#tell(channel, rule, "repeated", repeated, false)
    if (begun.length > 0 && this.#isFull(channel)) this.#withhold(channel, begun)
  }

  #mayTell(alert: Alert, channel: string): boolean {
    const { rules, silences, now } = this.#settings
    const { channels } = rules[alert.rule]
    if (alert.phase !== "firing" || alert.acknowledged !== null) return false
    return (channels === null || channels.includes(channel)) && silenceOf(silences, alert, now) === undefined
  }

  #knowsOfFiring(channel: string, rule: RuleId): boolean {
    return [...this.#alerts.values()].some(
      (alert) => alert.rule === rule && alert.phase === "firing" && alert.told[channel] !== undefined,
    )
  }

  #isFull(channel: string): boolean {
    return (this.#channels.get(channel)?.sentAt.length ?? 0) >= this.#settings.perHour
  }

  #tell(
    channel: string,
    rule: RuleId,
    kind: "firing" | "repeated" | "resolved",
    alerts: Alert[],
    isOver: boolean,
  ): void {
    if (this.#isFull(channel)) return
    const { now, rules } = this.#settings
    const use = this.#channels.get(channel) ?? { sentAt: [], folded: 0 }
    const group = this.#groups.get(rule) ?? {
      key: this.#settings.newGroupKey(alerts[0]!),
      startedAt: alerts[0]!.startedAt,
    }
    this.#groups.set(rule, group)
    const { severity } = rules[rule]
    const endedAt = isOver ? now : null
    const notification = notificationOf({ kind, rule, severity, group, alerts, endedAt, folded: use.folded })
    this.#outgoing.push({ key: this.#settings.newKey(), channel, notification })
    this.#channels.set(channel, { sentAt: [...use.sentAt, now], folded: 0 })
    for (const alert of alerts) {
      const { [channel]: _before, ...others } = alert.told
      const told = kind === "resolved" ? others : { ...others, [channel]: now }
      this.#alerts.set(alert.id, {
        ...alert,
        told,
        withheld: alert.withheld.filter((name) => name !== channel),
      })
    }
  }

  #withhold(channel: string, alerts: readonly Alert[]): void {
    for (const { id } of alerts) {
      const alert = this.#alerts.get(id)!
      if (alert.told[channel] !== undefined || alert.withheld.includes(channel)) continue
      this.#alerts.set(id, { ...alert, withheld: [...alert.withheld, channel] })
    }
  }

  /** Alerts that ended before the channel could be told of their beginning. */
  fold(channel: string): void {
    const missed = [...this.#alerts.values()].filter(
      ({ phase, withheld }) => phase === "resolved" && withheld.includes(channel),
    )
    if (missed.length === 0) return
    const use = this.#channels.get(channel) ?? { sentAt: [], folded: 0 }
    this.#channels.set(channel, { ...use, folded: use.folded + missed.length })
    for (const alert of missed)
      this.#alerts.set(alert.id, { ...alert, withheld: alert.withheld.filter((name) => name !== channel) })
  }

  finish(): Plan {
    const alerts = [...this.#alerts.values()]
    const open = new Set<string>(
      alerts.filter(({ told }) => Object.keys(told).length > 0).map(({ rule }) => rule),
    )
    const groups = Object.fromEntries([...this.#groups].filter(([rule]) => open.has(rule)))
    return {
      book: { alerts, groups, channels: Object.fromEntries(this.#channels) },
      outgoing: this.#outgoing,
    }
  }
}

/** A deleted channel is not told of ends. */
function onlyKnown(alert: Alert, known: ReadonlySet<string>): Alert {
  const told = Object.entries(alert.told)
  const isKnown =
    told.every(([channel]) => known.has(channel)) && alert.withheld.every((name) => known.has(name))
  if (isKnown) return alert
  return {
    ...alert,
    told: Object.fromEntries(told.filter(([channel]) => known.has(channel))),
    withheld: alert.withheld.filter((name) => known.has(name)),
  }
}

const lastHour = ({ sentAt, folded }: ChannelUse, now: number): ChannelUse => ({
  sentAt: sentAt.filter((at) => now - at < HOUR_MS),
  folded,
})
