import { expect, test } from "vitest"
import { factsOf, NOW, snapshotOf, troubled } from "../../test/support/alert-samples.ts"
import type { TroubledEndpoint } from "../monitor/snapshot.ts"
import { endingOf, evaluate, type Facts, isComplete, type StoredRuleId } from "./evaluate.ts"
import { defaultsOf } from "./rules.ts"

const MINUTE = 60_000
const DAY = 86_400_000

const dead = (count: number, ageMs = 0) =>
  factsOf({ snapshot: snapshotOf({ deadLetters: [{ reason: "exhausted", count, oldestAt: NOW - ageMs }] }) })
const recent = (attempts: number, retries: number, died = 0) =>
  factsOf({ recent: { attempts, retries, dead: died } })
const due = (agoMs: number) =>
  factsOf({ snapshot: snapshotOf({ oldestDue: { at: NOW - agoMs, endpointId: "ep_1" } }) })
const endpoint = (...args: Parameters<typeof troubled>) =>
  factsOf({ snapshot: snapshotOf({ troubled: [troubled(...args)] }) })
const absent = (agoMs: number, more: Partial<TroubledEndpoint> = {}) =>
  troubled("offline", agoMs, {
    url: "relay://hub",
    agent: "hub",
    why: "its agent hub was never connected",
    ...more,
  })
const absentFor = (...all: TroubledEndpoint[]) => factsOf({ snapshot: snapshotOf({ troubled: all }) })
const disabling = (inMs: number) => endpoint("failing", DAY, { disablesAt: NOW + inMs })

test.each<[StoredRuleId, Facts, Facts]>([
  ["dead-letters-count", dead(999), dead(1000)],
  ["dead-letters-growth", recent(0, 0, 9), recent(0, 0, 10)],
  ["dead-letters-age", dead(1, 7 * DAY - 1), dead(1, 7 * DAY)],
  ["retry-share", recent(100, 30), recent(100, 31)],
  ["retry-share", recent(99, 99), recent(100, 100)],
  ["oldest-due", due(5 * MINUTE - 1), due(5 * MINUTE)],
  ["endpoint-failing", endpoint("failing", 15 * MINUTE - 1), endpoint("failing", 15 * MINUTE)],
  ["endpoint-open", endpoint("open", 15 * MINUTE - 1), endpoint("open", 15 * MINUTE)],
  ["endpoint-disabling", disabling(DAY + 1), disabling(DAY)],
  ["agent-absent", absentFor(absent(5 * MINUTE - 1)), absentFor(absent(5 * MINUTE))],
])("%s holds from its threshold on", (rule, below, at) => {
  expect(evaluate(rule, defaultsOf(rule), below)).toEqual([])
  expect(evaluate(rule, defaultsOf(rule), at)).toHaveLength(1)
})

test("an empty store holds for no rule", () => {
  const rules = [
    "dead-letters-count",
    "dead-letters-growth",
    "dead-letters-age",
    "retry-share",
    "oldest-due",
    "agent-absent",
  ] as const
  for (const rule of rules) expect(evaluate(rule, defaultsOf(rule), factsOf())).toEqual([])
})

test("an alert names the host of an endpoint, and not its path and query, which may be secret", () => {
  const [subject] = evaluate("endpoint-failing", defaultsOf("endpoint-failing"), endpoint("failing", DAY))
  expect(subject).toMatchObject({ key: "ep_1", name: "ep_1 (hooks.example.com)" })
  expect(JSON.stringify(subject)).not.toContain("secret")
})

test.each([
  ["endpoint-failing", "open", "endpoint-open"],
  ["endpoint-open", "failing", "endpoint-failing"],
] as const)("%s goes on when the endpoint is %s, and %s does not begin", (rule, health, other) => {
  const facts = { ...endpoint(health, DAY), firing: (id: string) => new Set(id === rule ? ["ep_1"] : []) }
  expect(evaluate(rule, defaultsOf(rule), facts)).toHaveLength(1)
  expect(evaluate(other, defaultsOf(other), facts)).toEqual([])
})

test.each([
  "disabled",
  "paused",
  "degraded",
] as const)("an endpoint that is %s ends its alerts, with the reason", (health) => {
  const facts = { ...endpoint(health, DAY), firing: () => new Set(["ep_1"]) }
  for (const rule of ["endpoint-failing", "endpoint-open", "endpoint-disabling"] as const)
    expect(evaluate(rule, defaultsOf(rule), facts)).toEqual([])
  expect(endingOf("endpoint-failing", "ep_1", facts.snapshot)).toContain(
    `now ${health}: the last 7 attempts failed`,
  )
})

test("a snapshot that lists only some of the endpoints that are open or failing is not complete", () => {
  const snapshot = snapshotOf({ troubled: [troubled("failing", DAY)] })
  expect(isComplete("endpoint-failing", snapshot)).toBe(true)
  expect(
    isComplete("endpoint-failing", { ...snapshot, endpoints: { ...snapshot.endpoints, failing: 2 } }),
  ).toBe(false)
  expect(isComplete("endpoint-failing", { ...snapshot, endpoints: { ...snapshot.endpoints, open: 1 } })).toBe(
    false,
  )
})

test("a snapshot that leaves out only paused, disabled and degraded endpoints is complete", () => {
  const snapshot = snapshotOf({ troubled: [troubled("failing", DAY), troubled("disabled", DAY)] })
  const endpoints = { ...snapshot.endpoints, disabled: 5000, paused: 5000, degraded: 5000 }
  expect(isComplete("endpoint-failing", { ...snapshot, endpoints })).toBe(true)
})

test("the endpoints of one agent have one alert, and agents of other applications have their own", () => {
  const facts = absentFor(
    absent(10 * MINUTE, { endpointId: "ep_1" }),
    absent(DAY, { endpointId: "ep_2", why: "its agent hub has not been connected since yesterday" }),
    absent(DAY, { endpointId: "ep_3", appId: "app_2" }),
    absent(DAY, { endpointId: "ep_4", agent: "other", url: "relay://other" }),
    absent(MINUTE, { endpointId: "ep_5", appId: "app_3" }),
  )
  expect(evaluate("agent-absent", defaultsOf("agent-absent"), facts)).toEqual([
    {
      key: "app_1.hub",
      name: "hub of app_1",
      since: NOW - DAY,
      detail: "its agent hub has not been connected since yesterday; 1 more endpoint with this agent",
    },
    expect.objectContaining({ key: "app_2.hub", detail: "its agent hub was never connected" }),
    expect.objectContaining({ key: "app_1.other", name: "other of app_1" }),
  ])
  expect(endingOf("agent-absent", "app_1.hub", facts.snapshot)).toBe(
    "the agent is connected, or no endpoint needs it",
  )
})

test("an endpoint whose agent is absent has no alert about its failures", () => {
  const facts = { ...absentFor(absent(DAY, { disablesAt: NOW + 1 })), firing: () => new Set(["ep_1"]) }
  for (const rule of ["endpoint-failing", "endpoint-open", "endpoint-disabling"] as const)
    expect(evaluate(rule, defaultsOf(rule), facts)).toEqual([])
})

test("a snapshot without some of the absent agents is not complete for their rule alone", () => {
  const snapshot = snapshotOf({ troubled: [absent(DAY)] })
  const cut = { ...snapshot, endpoints: { ...snapshot.endpoints, offline: 2 } }
  expect(isComplete("agent-absent", snapshot)).toBe(true)
  expect(isComplete("agent-absent", cut)).toBe(false)
  expect(isComplete("endpoint-failing", cut)).toBe(true)
  expect(isComplete("oldest-due", cut)).toBe(true)
})
