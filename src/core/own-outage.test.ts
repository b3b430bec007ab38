import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { FAILURE_CAUSES } from "./failure-causes.ts"
import type { Outcome } from "./outcome.ts"
import {
  LONGEST_OUTAGE_MS,
  learnOutage,
  NO_OUTAGE,
  networkSignOf,
  OUTAGE_DEFAULTS,
  type OutageEvent,
  type OutageSettings,
  type OutageState,
  outageAt,
} from "./own-outage.ts"

const NOW = 1_000_000_000
const SECOND = 1000
const HOUR = 3_600_000
const TICK: OutageEvent = { kind: "tick" }

const answered = (appId = "app0"): OutageEvent => ({ kind: "answered", appId })
/** By default each endpoint is silent for the first time. */
function silent(
  n: number,
  at: number,
  { apps = 2, hosts = 5, since = at, startedAt = at } = {},
): OutageEvent {
  return {
    kind: "unanswered",
    endpointId: `ep${n}`,
    appId: `app${n % apps}`,
    host: `host${n % hosts}`,
    startedAt,
    unansweredSince: since,
  }
}

function learned(
  state: OutageState,
  events: readonly OutageEvent[],
  now: number,
  settings: OutageSettings = OUTAGE_DEFAULTS,
) {
  return events.reduce((before, event) => learnOutage(before, event, now, settings), state)
}

const silentMany = (count: number, at: number, more = {}) =>
  Array.from({ length: count }, (_, n) => silent(n, at, more))

/** All of these at NOW, and then nothing until 15 s later. */
function phaseAfter(count: number, more: { apps?: number; hosts?: number } = {}, before = NO_OUTAGE) {
  return learned(learned(before, silentMany(count, NOW, more), NOW), [TICK], NOW + 15 * SECOND).phase
}

const DOWN = learned(learned(NO_OUTAGE, silentMany(10, NOW), NOW), [TICK], NOW + 15 * SECOND)

describe("what an attempt says about our network", () => {
  const response = (status: number): Outcome => ({ kind: "response", status, excerpt: "", retryAfter: null })
  test.each<[string, Outcome, ReturnType<typeof networkSignOf>]>([
    ["200", response(200), "answered"],
    ["503", response(503), "answered"],
    ["an agent's failure", { kind: "ack", result: "transient", detail: "" }, "answered"],
    ["an interruption", { kind: "interrupted" }, null],
    ["a fault of our own", { kind: "fault", detail: "" }, null],
    ["expiry", { kind: "overdue" }, null],
  ])("%s", (_name, outcome, sign) => expect(networkSignOf(outcome, false)).toBe(sign))

  const SIGNS = {
    dns_error: "unanswered",
    connection_refused: "unanswered",
    connection_reset: "unanswered",
    tls_error: null,
    timeout: "unanswered",
    target_forbidden: null,
    response_too_large: "answered",
    invalid_response: "answered",
    network_error: "unanswered",
    auth_error: null,
  } as const
  test.each(FAILURE_CAUSES)("%s", (cause) => {
    expect(networkSignOf({ kind: "failure", cause }, false)).toBe(SIGNS[cause])
    expect(networkSignOf({ kind: "failure", cause }, true)).toBe("answered")
  })
})

test("15 s without an answer from ten endpoints on three hosts are an outage", () => {
  const suspected = learned(NO_OUTAGE, silentMany(10, NOW, { hosts: 3 }), NOW)
  expect(suspected).toMatchObject({ phase: "suspected", since: NOW })
  expect(outageAt(suspected, NOW, OUTAGE_DEFAULTS)).toBe(NOW + 15 * SECOND)
  expect(learned(suspected, [TICK], NOW + 15 * SECOND - 1).phase).toBe("suspected")
  expect(learned(suspected, [TICK], NOW + 15 * SECOND)).toMatchObject({
    phase: "outage",
    since: NOW,
    declaredAt: NOW + 15 * SECOND,
  })
})

test.each([
  ["nine endpoints", 9, { hosts: 5 }, "suspected"],
  ["two hosts", 100, { hosts: 2 }, "suspected"],
  ["ten endpoints on three hosts of one application", 10, { hosts: 3, apps: 1 }, "outage"],
  ["a thousand endpoints", 1000, { hosts: 700, apps: 300 }, "outage"],
] as const)("%s", (_name, count, more, phase) => expect(phaseAfter(count, more)).toBe(phase))

describe("endpoints of one application alone", () => {
  const JUDGED_AT = NOW + 15 * SECOND
  test.each<[string, readonly (readonly [appId: string, ageMs: number])[], string]>([
    ["and no other has answered", [["app0", 20 * SECOND]], "outage"],
    ["and another one answered an hour ago", [["app1", HOUR]], "suspected"],
    ["and another one answered before that", [["app1", HOUR + 1]], "outage"],
    [
      "and another one answered before this one did",
      [
        ["app1", HOUR / 2],
        ["app0", 20 * SECOND],
      ],
      "suspected",
    ],
    [
      "and two others did",
      [
        ["app1", HOUR / 2],
        ["app2", HOUR / 3],
        ["app0", 20 * SECOND],
      ],
      "suspected",
    ],
  ])("%s", (_name, answers, phase) => {
    const before = answers.reduce(
      (state, [appId, ageMs]) => learned(state, [answered(appId)], JUDGED_AT - ageMs),
      NO_OUTAGE,
    )
    expect(phaseAfter(20, { apps: 1 }, before)).toBe(phase)
  })
})

test("a silence begins with the start of its first attempt, and not before the last answer", () => {
  const before = learned(NO_OUTAGE, [answered()], NOW - 20 * SECOND)
  const since = (startedAt: number) => learned(before, [silent(0, NOW, { startedAt })], NOW).since
  expect(since(NOW - 10 * SECOND)).toBe(NOW - 10 * SECOND)
  expect(since(NOW - 30 * SECOND)).toBe(NOW - 20 * SECOND)
})

test("an endpoint that was silent before the last answer is down by itself", () => {
  const before = learned(NO_OUTAGE, [answered()], NOW - SECOND)
  expect(learned(before, silentMany(20, NOW, { since: NOW - 2 * SECOND }), NOW).phase).toBe("normal")
})

test("attempts that failed more than a minute ago are no evidence any more", () => {
  let state = NO_OUTAGE
  for (let n = 0; n < 100; n++)
    state = learned(state, [silent(n, NOW + n * 7 * SECOND)], NOW + n * 7 * SECOND)
  expect(state.phase).toBe("suspected")
  const late = learned(NO_OUTAGE, silentMany(10, NOW), NOW)
  expect(learned(late, [TICK], NOW + 61 * SECOND).phase).toBe("suspected")
  expect(learned(late, [TICK], NOW + 60 * SECOND).phase).toBe("outage")
})

test("any answer ends a silence and an outage", () => {
  expect(DOWN.phase).toBe("outage")
  expect(learned(DOWN, [answered()], NOW + HOUR)).toMatchObject({ phase: "normal", since: NOW + HOUR })
  const suspected = learned(NO_OUTAGE, silentMany(9, NOW), NOW)
  const again = learned(learned(suspected, [answered()], NOW + 1), [silent(9, NOW + 2)], NOW + 2)
  expect(again).toMatchObject({ phase: "suspected", since: NOW + 2, tried: [{ id: "ep9" }] })
})

test("an outage ends after a day without an answer, and the same endpoints do not begin another", () => {
  const later = NOW + 15 * SECOND + LONGEST_OUTAGE_MS
  expect(learned(DOWN, silentMany(20, NOW), later - 1)).toBe(DOWN)
  const over = learned(DOWN, [silent(0, NOW)], later)
  expect(over).toMatchObject({ phase: "normal", since: later })
  const again = learned(over, silentMany(20, later + SECOND, { since: NOW }), later + SECOND)
  expect(learned(again, [TICK], later + 20 * SECOND).phase).toBe("normal")
})

describe("any sequence of events", () => {
  const event = fc.oneof(
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("answered" as const), n: fc.nat(3) }) },
    { weight: 20, arbitrary: fc.record({ kind: fc.constant("unanswered" as const), n: fc.nat(40) }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant("tick" as const), n: fc.constant(0) }) },
  )
  const steps = fc.array(fc.record({ event, ms: fc.nat(4000) }), { maxLength: 150 })

  test("declares an outage only with its evidence, ends it with an answer, and remembers little", () => {
    fc.assert(
      fc.property(steps, (given) => {
        let state = NO_OUTAGE
        let now = NOW
        let answeredAt = Number.NEGATIVE_INFINITY
        const silentSince = new Map<number, number>()
        const lastSilent = new Map<number, number>()
        for (const { event: one, ms } of given) {
          now += ms
          const before = state
          if (one.kind === "answered") {
            state = learned(state, [answered(`app${one.n % 2}`)], now)
            answeredAt = now
            silentSince.delete(one.n)
            lastSilent.clear()
            expect(state.phase).toBe("normal")
          } else if (one.kind === "unanswered") {
            if (!silentSince.has(one.n)) silentSince.set(one.n, now)
            lastSilent.set(one.n, now)
            state = learned(state, [silent(one.n, now, { since: silentSince.get(one.n)! })], now)
          } else state = learned(state, [TICK], now)
          if (state.phase === "suspected") expect(state.tried.length).toBeLessThanOrEqual(10 + 3 + 1)
          if (state.phase === "outage" && before.phase !== "outage") {
            const recent = [...lastSilent].filter(([, at]) => now - at <= 60 * SECOND).map(([n]) => n)
            expect(now - Math.max(answeredAt, state.since)).toBeGreaterThanOrEqual(15 * SECOND)
            expect(recent.length).toBeGreaterThanOrEqual(10)
            expect(new Set(recent.map((n) => n % 5)).size).toBeGreaterThanOrEqual(3)
          }
        }
      }),
    )
  })

  test("with all endpoints silent for the first time, a minute of evidence always suffices", () => {
    const many = fc.array(fc.record({ n: fc.nat(200), ms: fc.nat(300) }), { minLength: 60, maxLength: 90 })
    fc.assert(
      fc.property(many, (given) => {
        const endpoints = new Set(given.map(({ n }) => n))
        fc.pre(endpoints.size >= 10 && new Set([...endpoints].map((n) => n % 5)).size >= 3)
        let now = NOW
        const first = new Map<number, number>()
        const state = given.reduce((before, { n, ms }) => {
          now += ms
          if (!first.has(n)) first.set(n, now)
          return learned(before, [silent(n, now, { since: first.get(n)! })], now)
        }, NO_OUTAGE)
        expect(learned(state, [TICK], now + 15 * SECOND).phase).toBe("outage")
      }),
    )
  })
})
