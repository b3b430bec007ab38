/** The alerts of a deployment, for operators: list, acknowledge, silence, and the settings of rules. */
import { notFound } from "../core/errors.ts"
import { optionalOneOf } from "../core/input.ts"
import { MonitorLease } from "../monitor/lease.ts"
import { readAndSave } from "../resources/optimistic.ts"
import { byId, type Listing, listing, type PageInput } from "../resources/paging.ts"
import { date } from "../resources/resource-context.ts"
import { AlertRules, type AlertRulesParts } from "./alert-rules.ts"
import { acknowledge, type Alert as StoredAlert } from "./alert-state.ts"
import type { StoredSilence } from "./alert-store.ts"
import { cutPage } from "./cut-page.ts"
import { isStoreError, type LocalAlerts } from "./local-alerts.ts"
import type { Severity } from "./notification.ts"
import { type AlertRuleInput, type RuleId, type RuleSettings, requireRule } from "./rules.ts"
import { type AlertSettings, parseSettings } from "./settings.ts"
import { silenceOf } from "./silence.ts"
import { Silences, type SilencesParts } from "./silences.ts"

/** `pending`: seen once. `acknowledged` and `silenced`: firing without repeats, and without notifications. */
export const ALERT_STATES = ["pending", "firing", "acknowledged", "silenced", "resolved"] as const
export type AlertState = (typeof ALERT_STATES)[number]

export interface Alert {
  readonly id: string
  readonly rule: RuleId
  readonly severity: Severity
  readonly state: AlertState
  /** An endpoint's id, or an agent as `APP_ID.NAME`; null for a rule about the whole store. */
  readonly subject: string | null
  readonly name: string
  readonly detail: string
  /** Since when the condition holds. */
  readonly since: Date
  /** When it began to fire; of a pending alert, when the condition was first seen. */
  readonly startedAt: Date
  readonly endedAt: Date | null
  readonly acknowledgedAt: Date | null
  /** The id of the key; null for the library and for tokens. */
  readonly acknowledgedBy: string | null
  readonly silenceId: string | null
  /** The channels that know of the alert and not yet of its end. */
  readonly channels: readonly string[]
}

export interface AlertQuery extends PageInput {
  state?: AlertState
  rule?: string
}

export interface AlertEvaluation {
  /** Null: no process has evaluated the rules of this store yet. */
  readonly evaluatedAt: Date | null
  readonly ageSeconds: number | null
}

export interface AlertsParts extends AlertRulesParts, SilencesParts {
  readonly local: LocalAlerts
}

export interface AlertsConfiguration {
  readonly rules?: { readonly [id: string]: AlertRuleInput }
  readonly repeatHours?: number
  readonly notificationsPerHour?: number
}

export class Alerts {
  readonly rules: AlertRules
  readonly silences: Silences
  readonly #parts: AlertsParts

  constructor(parts: AlertsParts) {
    this.#parts = parts
    this.rules = new AlertRules(parts)
    this.silences = new Silences(parts)
  }

  /** The newest first. Resolved alerts are kept for 7 days. While the store cannot be read and an alert says so: without those in the store. */
  list(query: AlertQuery = {}): Listing<Alert> {
    return listing(query, {
      fields: ["state", "rule"],
      by: { ...byId("alert"), order: "descending" },
      read: async ({ state, rule }) => {
        const wanted = optionalOneOf(state, "state", ALERT_STATES)
        const id = rule === undefined ? undefined : requireRule(rule)
        const all = await this.#all().catch((error) => this.#localAlerts(error))
        const alerts = all.filter(
          (alert) => (wanted ?? alert.state) === alert.state && (id ?? alert.rule) === alert.rule,
        )
        return async (page) => cutPage(alerts, page)
      },
      show: (alert: Alert) => alert,
    })
  }

  async get(id: string): Promise<Alert> {
    const isIt = (one: Alert) => one.id === id
    const alert = await this.#all().then(
      (all) => all.find(isIt),
      (error) => {
        const own = this.#localAlerts(error).find(isIt)
        // It may be in the store.
        if (own === undefined) throw error
        return own
      },
    )
    if (alert === undefined) throw notFound("alert", String(id))
    return alert
  }

  /** It is not repeated any more; its end is still notified. `by` is the id of a key. */
  async acknowledge(id: string, { by = null }: { readonly by?: string | null } = {}): Promise<Alert> {
    const { alertStore, local, clock } = this.#parts
    const known = (alert: StoredAlert) => acknowledge(alert, by, clock.now())
    if (!local.change(id, known)) {
      await readAndSave(async () => {
        const read = await alertStore.readBoard()
        const { alerts, local: saved } = read.value
        const before = [...alerts, ...saved.book.alerts].find((alert) => alert.id === id)
        if (before === undefined) throw notFound("alert", String(id))
        const after = known(before)
        if (after === before) return
        const changed = (all: readonly StoredAlert[]) =>
          all.map((alert) => (alert === before ? after : alert))
        const book = { ...saved.book, alerts: changed(saved.book.alerts) }
        await alertStore.saveBoard(
          { ...read.value, alerts: changed(alerts), local: { ...saved, book } },
          read,
        )
      })
    }
    return this.get(id)
  }

  async settings(): Promise<AlertSettings> {
    return (await this.#parts.alertStore.readSettings()).value
  }

  /** Fields that are left out stay as they are. `at` begins the field names of errors. */
  async putSettings(input: Partial<AlertSettings>, at = ""): Promise<AlertSettings> {
    const { alertStore } = this.#parts
    return readAndSave(async () => {
      const before = await alertStore.readSettings()
      const after = parseSettings(input, before.value, at)
      if (JSON.stringify(after) !== JSON.stringify(before.value)) await alertStore.saveSettings(after, before)
      return after
    })
  }

  /** @internal Validates rules and settings. The result writes them. */
  async prepare({ rules = {}, ...settings }: AlertsConfiguration, at: string): Promise<() => Promise<void>> {
    const writeRules = this.rules.prepare(rules, `${at}.rules`)
    parseSettings(settings, await this.settings(), at)
    return async () => {
      await writeRules()
      if (Object.keys(settings).length > 0) await this.putSettings(settings, at)
    }
  }

  /** When the rules were last evaluated. Far more than 15 s ago: no process that delivers runs. */
  async evaluation(): Promise<AlertEvaluation> {
    const { store, clock } = this.#parts
    const now = clock.now()
    const { history } = await new MonitorLease(store, "").read(now)
    const at = history.samples.at(-1)?.at ?? null
    return {
      evaluatedAt: date(at),
      ageSeconds: at === null ? null : Math.max(0, Math.round((now - at) / 1000)),
    }
  }

  async #all(): Promise<Alert[]> {
    const { alertStore, local } = this.#parts
    const [board, rules, silences] = await Promise.all([
      alertStore.readBoard(),
      alertStore.readRules(),
      alertStore.readSilences(),
    ])
    const { alerts, local: saved } = board.value
    // The leader's memory is ahead of the copy that it saved.
    const all = new Map([...alerts, ...saved.book.alerts, ...local.alerts].map((alert) => [alert.id, alert]))
    return this.#show([...all.values()], (rule) => rules[rule].value, silences)
  }

  /** The alerts of this process, if one of them says why the store cannot be read. Rejects with the error otherwise. */
  #localAlerts(error: unknown): Alert[] {
    const { alerts, surroundings } = this.#parts.local
    if (!isStoreError(error) || surroundings === null || !alerts.some(({ phase }) => phase === "firing"))
      throw error
    return this.#show(alerts, (rule) => surroundings.rules[rule], surroundings.silences)
  }

  #show(
    alerts: readonly StoredAlert[],
    ruleOf: (rule: RuleId) => RuleSettings,
    silences: readonly StoredSilence[],
  ): Alert[] {
    const now = this.#parts.clock.now()
    return alerts.map((alert) => show(alert, ruleOf(alert.rule).severity, silenceOf(silences, alert, now)))
  }
}

function show(alert: StoredAlert, severity: Severity, silence: StoredSilence | undefined): Alert {
  const { id, rule, subject, name, detail, since, startedAt, endedAt, acknowledged, told } = alert
  return {
    id,
    rule,
    severity,
    state: stateOf(alert, silence),
    subject: subject === "" ? null : subject,
    name,
    detail,
    since: date(since),
    startedAt: date(startedAt),
    endedAt: date(endedAt),
    acknowledgedAt: date(acknowledged?.at ?? null),
    acknowledgedBy: acknowledged?.by ?? null,
    silenceId: silence?.id ?? null,
    channels: Object.keys(told),
  }
}

function stateOf({ phase, acknowledged }: StoredAlert, silence: StoredSilence | undefined): AlertState {
  if (phase !== "firing") return phase
  if (acknowledged !== null) return "acknowledged"
  return silence === undefined ? "firing" : "silenced"
}
