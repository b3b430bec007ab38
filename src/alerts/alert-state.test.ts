import fc from "fast-check"
import { expect, test } from "vitest"
import { alertOf, NOW } from "../../test/support/alert-samples.ts"
import { type Alert, acknowledge, advance, endAll, forget } from "./alert-state.ts"

const subject = (key: string) => ({ key, name: key, since: NOW, detail: "" })

function evaluation(keys: readonly string[], round = 0, isComplete = true) {
  let ids = 0
  return {
    rule: "endpoint-failing" as const,
    subjects: keys.map(subject),
    isComplete,
    ending: () => "over",
    now: NOW + round,
    newId: () => `alert_${round}_${ids++}`,
  }
}

const run = (rounds: readonly (readonly string[])[]) =>
  rounds.reduce((alerts: Alert[], keys, round) => advance(alerts, evaluation(keys, round)), [])
const phases = (alerts: readonly Alert[]) => alerts.map(({ subject: key, phase }) => `${key} ${phase}`)

test.each<[string, string[][], string[]]>([
  ["is pending after one evaluation", [["a"]], ["a pending"]],
  ["fires after two", [["a"], ["a"]], ["a firing"]],
  ["is forgotten if the second does not find it", [["a"], [], ["a"]], ["a pending"]],
  ["still fires after one that does not find it", [["a"], ["a"], []], ["a firing"]],
  ["is resolved after two", [["a"], ["a"], [], []], ["a resolved"]],
  ["is not resolved by two that are not in a row", [["a"], ["a"], [], ["a"], []], ["a firing"]],
  ["begins anew after its end", [["a"], ["a"], [], [], ["a"]], ["a resolved", "a pending"]],
])("an alert %s", (_name, rounds, expected) => {
  expect(phases(run(rounds))).toEqual(expected)
})

test("a list of subjects that is not complete resolves nothing", () => {
  const firing = run([["a"], ["a"]])
  const after = [1, 2, 3].reduce((alerts, i) => advance(alerts, evaluation([], i, false)), firing)
  expect(after).toEqual(firing)
})

test("an evaluation without a change returns the same objects, and leaves other rules alone", () => {
  const other = alertOf({ rule: "oldest-due", subject: "" })
  const before = [other, ...run([["a"], ["a"]])]
  const after = advance(before, evaluation(["a"], 9))
  expect(after.every((alert, i) => alert === before[i])).toBe(true)
})

test("an acknowledgement stays with the alert until its end, and the first one counts", () => {
  const [firing] = run([["a"], ["a"]])
  const known = acknowledge(acknowledge(firing!, "key_1", NOW), "key_2", NOW + 1)
  expect(known.acknowledged).toEqual({ at: NOW, by: "key_1" })
  const ended = [1, 2].reduce((alerts: readonly Alert[], i) => advance(alerts, evaluation([], i)), [known])
  expect(ended).toMatchObject([{ phase: "resolved", detail: "over", acknowledged: { by: "key_1" } }])
})

test.each(["pending", "resolved"] as const)("an alert that is %s cannot be acknowledged", (phase) => {
  expect(() => acknowledge(alertOf({ phase }), null, NOW)).toThrow(
    expect.objectContaining({ code: "conflict" }),
  )
})

test("the alerts of a rule that is switched off end at once", () => {
  const ended = endAll(
    [alertOf(), alertOf({ phase: "pending" }), alertOf({ rule: "oldest-due" })],
    "endpoint-failing",
    NOW,
  )
  expect(ended.map(({ rule, phase }) => [rule, phase])).toEqual([
    ["endpoint-failing", "resolved"],
    ["oldest-due", "firing"],
  ])
})

test("resolved alerts are kept for seven days, at most 200, and longer if a channel has not heard of the end", () => {
  const resolved = (more: Partial<Alert>) => alertOf({ phase: "resolved", endedAt: NOW, ...more })
  const old = NOW - 7 * 86_400_000
  expect(
    forget([resolved({}), resolved({ endedAt: old }), resolved({ endedAt: old, told: { ops: 1 } })], NOW),
  ).toHaveLength(2)
  expect(forget([alertOf(), ...Array.from({ length: 300 }, () => resolved({}))], NOW)).toHaveLength(201)
})

test("any sequence: one open alert for a subject; firing needs two in a row, resolving two without", () => {
  const keys = fc.subarray(["a", "b", "c"])
  fc.assert(
    fc.property(fc.array(keys, { maxLength: 40 }), (rounds) => {
      let alerts: Alert[] = []
      rounds.forEach((now, round) => {
        const before = alerts
        alerts = advance(before, evaluation(now, round))
        const open = alerts.filter(({ phase }) => phase !== "resolved")
        expect(new Set(open.map(({ subject: key }) => key)).size).toBe(open.length)
        expect(new Set(alerts.map(({ id }) => id)).size).toBe(alerts.length)
        const seen = (key: string, ago: number) => rounds[round - ago]?.includes(key) ?? false
        for (const alert of alerts) {
          const was = before.find(({ id }) => id === alert.id)
          if (was?.phase === "resolved") expect(alert).toBe(was)
          if (alert.phase === "pending") expect([was, seen(alert.subject, 0)]).toEqual([undefined, true])
          if (alert.phase === "firing" && was?.phase === "pending")
            expect([seen(alert.subject, 0), seen(alert.subject, 1)]).toEqual([true, true])
          if (alert.phase === "resolved" && was?.phase === "firing")
            expect([seen(alert.subject, 0), seen(alert.subject, 1)]).toEqual([false, false])
          if (alert.phase === "firing") expect(seen(alert.subject, 0) || seen(alert.subject, 1)).toBe(true)
        }
        for (const key of ["a", "b", "c"])
          if (seen(key, 0) && seen(key, 1))
            expect(open.some((alert) => alert.subject === key && alert.phase === "firing")).toBe(true)
      })
    }),
    { numRuns: 500 },
  )
})
