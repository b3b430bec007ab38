import { expect, test } from "vitest"
import { alertOf, NOW } from "../../test/support/alert-samples.ts"
import type { Alert } from "./alert-state.ts"
import { type Book, type Outgoing, type PlanSettings, plan } from "./plan.ts"
import { defaultsOf, RULE_IDS, type RuleId, type RuleSettings } from "./rules.ts"

const MINUTE = 60_000
const HOUR = 60 * MINUTE

const channels = (...names: string[]) => names.map((name) => ({ name, isReadable: true }))

/** A book that notifications are planned for again and again, at given times. */
class Site {
  book: Book = { alerts: [], groups: {}, channels: {} }
  settings: Partial<PlanSettings> = {}
  rules = Object.fromEntries(RULE_IDS.map((id) => [id, defaultsOf(id)])) as { [id in RuleId]: RuleSettings }
  #keys = 0

  set(...alerts: Alert[]): this {
    this.book = { ...this.book, alerts }
    return this
  }

  change(change: (alert: Alert) => Partial<Alert>): this {
    return this.set(...this.book.alerts.map((alert) => ({ ...alert, ...change(alert) })))
  }

  at(afterMs: number): readonly Outgoing[] {
    const planned = plan(this.book, {
      rules: this.rules,
      channels: channels("ops"),
      silences: [],
      repeatMs: 4 * HOUR,
      perHour: 20,
      now: NOW + afterMs,
      newKey: () => `key_${this.#keys++}`,
      newGroupKey: ({ rule, id }) => `${rule}:${id}`,
      ...this.settings,
    })
    this.book = planned.book
    return planned.outgoing
  }

  /** In short. */
  told(afterMs: number): string[] {
    return this.at(afterMs).map(({ channel, notification: { kind, subjects, more, endedAt } }) =>
      [channel, kind, subjects.length + more, ...(endedAt === null ? [] : ["ended"])].join(" "),
    )
  }
}

const many = (count: number, more: Partial<Alert> = {}) =>
  Array.from({ length: count }, (_, i) =>
    alertOf({ id: `alert_${i}`, subject: `ep_${i}`, name: `ep_${i}`, ...more }),
  )
const end = (alert: Alert): Partial<Alert> => ({
  phase: "resolved",
  endedAt: NOW,
  ...(alert.phase === "resolved" ? alert : {}),
})

test("the alerts of a rule are one notification, with ten subjects and how many more there are", () => {
  const [{ notification }] = new Site().set(...many(147)).at(0) as [Outgoing]
  expect(notification).toMatchObject({ kind: "firing", more: 137, severity: "warning", endedAt: null })
  expect(notification.subjects).toHaveLength(10)
  expect(notification.summary).toBe("Endpoints are failing: ep_0 and 146 more")
})

test("a beginning is notified once, repeated after four hours, and its end is notified once", () => {
  const site = new Site().set(alertOf())
  expect(site.told(0)).toEqual(["ops firing 1"])
  expect(site.told(HOUR)).toEqual([])
  expect(site.told(4 * HOUR - 1)).toEqual([])
  expect(site.told(4 * HOUR)).toEqual(["ops repeated 1"])
  expect(site.told(8 * HOUR - 1)).toEqual([])
  site.change(end)
  expect(site.told(8 * HOUR)).toEqual(["ops resolved 1 ended"])
  expect(site.told(20 * HOUR)).toEqual([])
  expect(site.book.groups).toEqual({})
})

test("all notifications of a group have one key, and a later group has another", () => {
  const site = new Site().set(alertOf())
  const keys = [...site.at(0), ...site.at(4 * HOUR), ...site.change(end).at(5 * HOUR)].map(
    ({ notification }) => notification.groupKey,
  )
  expect([keys.length, new Set(keys).size]).toEqual([3, 1])
  expect(site.set(alertOf({ id: "alert_2" })).at(6 * HOUR)[0]!.notification.groupKey).not.toBe(keys[0])
})

test("an acknowledged alert is not repeated, and its end is notified", () => {
  const site = new Site().set(alertOf())
  site.at(0)
  site.change(() => ({ acknowledged: { at: NOW, by: "key_1" } }))
  expect(site.told(5 * HOUR)).toEqual([])
  expect(site.change(end).told(6 * HOUR)).toEqual(["ops resolved 1 ended"])
})

test("a silence suppresses the beginning until it ends", () => {
  const site = new Site().set(alertOf())
  const silence = { rule: "endpoint-failing", until: NOW + HOUR, reason: "", by: null } as const
  site.settings = { silences: [{ ...silence, subject: "ep_1" }] }
  expect(site.told(0)).toEqual([])
  expect(site.told(HOUR)).toEqual(["ops firing 1"])
  site.settings = { silences: [{ ...silence, subject: null, until: NOW + 9 * HOUR }] }
  expect(site.told(6 * HOUR)).toEqual([])
  // A channel that got the beginning gets the end: PagerDuty keeps an incident open until then.
  expect(site.change(end).told(7 * HOUR)).toEqual(["ops resolved 1 ended"])
})

test("a silence of another subject or rule suppresses nothing", () => {
  const other = { until: NOW + HOUR, reason: "", by: null }
  const site = new Site().set(alertOf())
  site.settings = {
    silences: [
      { ...other, rule: "endpoint-failing", subject: "ep_2" },
      { ...other, rule: "endpoint-open", subject: null },
    ],
  }
  expect(site.told(0)).toEqual(["ops firing 1"])
})

test("an alert that began and ended within a silence is not notified", () => {
  const site = new Site().set(alertOf())
  site.settings = {
    silences: [{ rule: "endpoint-failing", subject: null, until: NOW + HOUR, reason: "", by: null }],
  }
  expect([...site.told(0), ...site.change(end).told(1), ...site.told(2 * HOUR)]).toEqual([])
})

test("alerts that join a group are notified together after five minutes, and so are those that leave it", () => {
  const site = new Site().set(...many(1))
  expect(site.told(0)).toEqual(["ops firing 1"])
  site.set(...site.book.alerts, ...many(3).slice(1))
  expect(site.told(MINUTE)).toEqual([])
  expect(site.told(5 * MINUTE)).toEqual(["ops firing 2"])
  site.change((alert) => (alert.subject === "ep_0" ? end(alert) : {}))
  expect(site.told(6 * MINUTE)).toEqual([])
  // The group goes on: two alerts still fire.
  expect(site.told(10 * MINUTE)).toEqual(["ops resolved 1"])
  expect(site.change(end).told(10 * MINUTE + 1)).toEqual(["ops resolved 2 ended"])
})

test("the end goes to the channels that got the beginning, also if the rule has others now", () => {
  const site = new Site().set(alertOf())
  site.settings = { channels: channels("ops", "mail") }
  site.rules = { ...site.rules, "endpoint-failing": { ...site.rules["endpoint-failing"], channels: ["ops"] } }
  expect(site.told(0)).toEqual(["ops firing 1"])
  site.rules = {
    ...site.rules,
    "endpoint-failing": { ...site.rules["endpoint-failing"], channels: ["mail"] },
  }
  expect(site.change(end).told(1)).toEqual(["ops resolved 1 ended"])
})

test("a channel that is added later hears of alerts that fire, and one that is deleted of nothing", () => {
  const site = new Site().set(alertOf())
  site.at(0)
  site.settings = { channels: channels("mail") }
  expect(site.told(1)).toEqual(["mail firing 1"])
  expect(site.book.alerts[0]!.told).toEqual({ mail: NOW + 1 })
})

test("beyond its hourly limit a channel is told later, together and of the worst first", () => {
  const site = new Site()
  site.settings = { perHour: 2 }
  const fire = (rule: RuleId) => alertOf({ id: `alert_${rule}`, rule, subject: "" })
  site.set(fire("retry-share"), fire("dead-letters-age"), fire("dead-letters-count"), fire("oldest-due"))
  expect(site.at(0).map(({ notification }) => notification.rule)).toEqual(["oldest-due", "dead-letters-age"])
  expect(site.told(HOUR - 1)).toEqual([])
  // One of those that wait is over before an hour has passed.
  site.change((alert) => (alert.rule === "retry-share" ? end(alert) : {}))
  const [later] = site.at(HOUR)
  expect(later!.notification).toMatchObject({ rule: "dead-letters-count", more: 1 })
  expect(later!.notification.description).toContain("1 other alert began and ended")
  expect(site.told(HOUR + 1)).toEqual([])
})

test("an end that the limit withholds is notified when an hour has passed", () => {
  const site = new Site().set(alertOf())
  site.settings = { perHour: 1 }
  expect(site.told(0)).toEqual(["ops firing 1"])
  site.change(end)
  expect(site.told(1)).toEqual([])
  expect(site.told(HOUR)).toEqual(["ops resolved 1 ended"])
})

test("where the limit cuts between an end and a beginning, the group goes on and ends with its last alert", () => {
  const site = new Site().set(...many(1))
  site.settings = { perHour: 2 }
  const first = site.at(0)
  site.change(end).set(...site.book.alerts, ...many(2).slice(1))
  const second = site.at(6 * MINUTE)
  expect(second.map(({ notification: { kind } }) => kind)).toEqual(["firing"])
  expect(site.told(7 * MINUTE)).toEqual([])
  site.change(end)
  const last = site.at(2 * HOUR)
  expect(last.map(({ notification: { kind, endedAt } }) => [kind, endedAt])).toEqual([
    ["resolved", NOW + 2 * HOUR],
  ])
  const keys = [...first, ...second, ...last].map(({ notification: { groupKey } }) => groupKey)
  expect([keys.length, new Set(keys).size]).toEqual([3, 1])
  expect(site.book.groups).toEqual({})
})
