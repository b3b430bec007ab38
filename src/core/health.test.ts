import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { HOUR_MS, type HourlySum } from "./attempt-window.ts"
import { HEALTH_STATES, type HealthFacts, type HealthState, healthOf } from "./health.ts"
import { PRESETS } from "./presets.ts"
import { HEALTHY, type Protection } from "./protection.ts"

const NOW = 500_000 * HOUR_MS + HOUR_MS / 2
const THIS_HOUR = 500_000 * HOUR_MS
const DAY = 24 * HOUR_MS
const { standard: POLICY, gateway: WITHOUT_BREAKER } = PRESETS
const SOON = NOW + 30_000

const FACTS: HealthFacts = {
  disabled: false,
  disabledAt: null,
  disabledReason: null,
  paused: false,
  pausedAt: null,
  holdUntil: null,
  createdAt: 0,
  protection: HEALTHY,
  policy: POLICY,
  absence: null,
}
const protection = (more: Partial<Protection>): Pick<HealthFacts, "protection"> => ({
  protection: { ...HEALTHY, ...more },
})

const DISABLED = { disabled: true, disabledAt: NOW - 9, disabledReason: "manual" } as const
const PAUSED = { paused: true, pausedAt: NOW - 8 }
const OPEN = { phase: "open", since: NOW - 7, until: SOON, downs: 5 } as const
const FAILING = { isFailing: true, failures: 5, failingSince: NOW - 6 }

const hour = (hoursAgo: number, attempts: number, succeeded: number): HourlySum => ({
  hour: THIS_HOUR - hoursAgo * HOUR_MS,
  attempts,
  succeeded,
  latencies: [attempts],
})
const waiting = (count: number) => ({ count, isLowerBound: false })
const ABSENCE = {
  hasOtherKey: false,
  agent: "hub",
  since: NOW - 60_000,
  lastSeenAt: NOW - 60_000,
  waiting: waiting(12),
  givenUpAt: SOON,
}
const GOOD = [hour(0, 100, 95)]
const BAD = [hour(0, 100, 94)]

describe("the state is the worst that applies", () => {
  const both = (...states: readonly Partial<HealthFacts>[]) => Object.assign({}, ...states)
  const open = protection({ ...OPEN, ...FAILING })
  test.each<[string, Partial<HealthFacts>, readonly HourlySum[], HealthState, number | null]>([
    ["nothing", {}, [], "healthy", null],
    ["95 %", {}, GOOD, "healthy", null],
    ["94 %", {}, BAD, "degraded", THIS_HOUR],
    ["failing", protection(FAILING), GOOD, "failing", NOW - 6],
    ["failing and 94 %", protection(FAILING), BAD, "failing", NOW - 6],
    ["four failures in a row", protection({ failures: 4, failingSince: NOW }), GOOD, "healthy", null],
    ["open", protection(OPEN), GOOD, "open", NOW - 7],
    ["open and failing", open, BAD, "open", NOW - 7],
    ["half-open", protection({ ...OPEN, until: NOW }), GOOD, "open", NOW - 7],
    ["ramping", protection({ phase: "ramping", since: NOW, until: NOW - 1 }), GOOD, "healthy", null],
    ["would be open", protection({ reported: true }), GOOD, "healthy", null],
    ["offline", { absence: ABSENCE }, GOOD, "offline", NOW - 60_000],
    ["offline and open", both(open, { absence: ABSENCE }), BAD, "offline", NOW - 60_000],
    ["paused and offline", both(PAUSED, { absence: ABSENCE }), GOOD, "paused", NOW - 8],
    ["paused", PAUSED, GOOD, "paused", NOW - 8],
    ["paused and open", both(open, PAUSED), BAD, "paused", NOW - 8],
    ["disabled", DISABLED, GOOD, "disabled", NOW - 9],
    ["all of them", both(open, PAUSED, DISABLED), BAD, "disabled", NOW - 9],
    ["paused by an older version", { paused: true }, GOOD, "paused", null],
    ["disabled by an older version", { disabled: true }, GOOD, "disabled", null],
    ["open by SQL", protection({ phase: "open", until: SOON }), GOOD, "open", null],
  ])("%s", (_what, more, sums, health, since) => {
    expect(healthOf({ ...FACTS, ...more }, sums, NOW)).toMatchObject({ health, since })
  })
})

test("a breaker that the policy no longer has is open until its time is over, and is then not half-open", () => {
  const facts = { ...FACTS, ...protection(OPEN), policy: WITHOUT_BREAKER }
  expect(healthOf(facts, [], SOON - 1).health).toBe("open")
  expect(healthOf(facts, [], SOON).health).toBe("healthy")
})

test.each<[string, readonly HourlySum[], number]>([
  ["the first of the bad hours", [hour(0, 9, 0), hour(1, 9, 0), hour(2, 9, 9), hour(3, 9, 0)], 1],
  ["a good current hour", [hour(0, 1, 1), hour(1, 99, 0), hour(2, 9, 9)], 1],
  ["hours without attempts between them", [hour(0, 9, 0), hour(5, 9, 0)], 5],
])("degraded since: %s", (_what, sums, hoursAgo) => {
  const since = THIS_HOUR - hoursAgo * HOUR_MS
  expect(healthOf(FACTS, sums, NOW)).toMatchObject({ health: "degraded", since })
  expect(healthOf(FACTS, sums.toReversed(), NOW)).toMatchObject({ since })
})

const at = (ms: number) => new Date(ms).toISOString().replace(".000Z", "Z")

test.each<[Partial<HealthFacts>, readonly HourlySum[], string]>([
  [{}, [], "no attempts in the last hour"],
  [{}, GOOD, "95 % of 100 attempts in the last hour succeeded"],
  [{}, [hour(0, 1, 1)], "100 % of 1 attempt in the last hour succeeded"],
  [{}, [hour(0, 10_000, 9499)], "94.9 % of 10000 attempts in the last hour succeeded"],
  [
    { holdUntil: SOON },
    GOOD,
    `95 % of 100 attempts in the last hour succeeded; a Retry-After holds it until ${at(SOON)}`,
  ],
  [{ holdUntil: NOW }, [], "no attempts in the last hour"],
  [
    protection({ phase: "ramping" }),
    [],
    "no attempts in the last hour; the backlog of an outage goes out slowly",
  ],
  [
    protection({ failures: 1, lastError: "timeout" }),
    BAD,
    "94 % of 100 attempts in the last hour succeeded; last error: timeout",
  ],
  [
    protection({ ...FAILING, lastError: "HTTP 503" }),
    [],
    `the last 5 attempts failed; last error: HTTP 503; without a success it is disabled at ${new Date(NOW - 6 + 5 * DAY).toISOString().replace(/\.\d+Z/, "Z")} at the earliest`,
  ],
  [
    { ...protection({ ...FAILING, lastError: "HTTP 503" }), policy: WITHOUT_BREAKER },
    [],
    "the last 5 attempts failed; last error: HTTP 503",
  ],
  [
    protection({ isFailing: true, lastError: "HTTP 500" }),
    [],
    "it was failing when it was enabled, and had no success since; last error: HTTP 500",
  ],
  [
    protection({ ...OPEN, lastError: "HTTP 503" }),
    [],
    `the circuit breaker opened after 5 failures in a row; last error: HTTP 503; no request before ${at(SOON)}`,
  ],
  [
    protection({ ...OPEN, until: NOW }),
    [],
    "the circuit breaker opened after 5 failures in a row; the next delivery that is due probes the endpoint",
  ],
  [
    protection({ ...OPEN, downs: 1 }),
    [],
    `the circuit breaker opened since 50 % or more of the attempts within 60 s failed; no request before ${at(SOON)}`,
  ],
  [
    protection({ ...OPEN, downs: 0 }),
    [],
    `the circuit breaker was opened by hand; no request before ${at(SOON)}`,
  ],
  [
    { absence: ABSENCE },
    [],
    `its agent hub has not been connected since ${at(NOW - 60_000)}; 12 deliveries wait; the oldest delivery is given up at ${at(SOON)}`,
  ],
  [
    { absence: { ...ABSENCE, waiting: waiting(1), givenUpAt: NOW } },
    [],
    `its agent hub has not been connected since ${at(NOW - 60_000)}; 1 delivery waits; the oldest delivery is given up now`,
  ],
  [
    { absence: { ...ABSENCE, lastSeenAt: null, waiting: waiting(0), givenUpAt: null } },
    BAD,
    "its agent hub was never connected",
  ],
  [
    { absence: { ...ABSENCE, hasOtherKey: true, waiting: waiting(0), givenUpAt: null } },
    [],
    "its agent hub is connected with a key for other endpoints",
  ],
  [
    { absence: { ...ABSENCE, waiting: { count: 1000, isLowerBound: true }, givenUpAt: null } },
    [],
    `its agent hub has not been connected since ${at(NOW - 60_000)}; at least 1000 deliveries wait`,
  ],
  [
    { absence: { ...ABSENCE, waiting: null } },
    [],
    `its agent hub has not been connected since ${at(NOW - 60_000)}; the oldest delivery is given up at ${at(SOON)}`,
  ],
  [PAUSED, [], "paused by hand; resume it to send the waiting deliveries"],
  [DISABLED, [], "disabled by hand"],
  [{ ...DISABLED, disabledReason: "gone" }, [], "disabled: the receiver answered 410 Gone"],
  [{ ...DISABLED, disabledReason: null }, [], "disabled; the reason was not recorded"],
  [
    {
      ...DISABLED,
      disabledReason: "failing",
      ...protection({ failingSince: NOW - 9 - 5 * DAY, lastError: "HTTP 404" }),
    },
    [],
    "disabled: no success for 5 days; last error: HTTP 404",
  ],
  [
    { ...DISABLED, disabledReason: "failing", ...protection({ failingSince: NOW - 9 - DAY / 2 }) },
    [],
    "disabled: no success for 12 hours",
  ],
  [{ ...DISABLED, disabledReason: "failing" }, [], "disabled: no success"],
  [
    protection({ ...OPEN, until: 9e99 }),
    [],
    "the circuit breaker opened after 5 failures in a row; no request before 9e+99",
  ],
])("why, for %j", (more, sums, why) => {
  expect(healthOf({ ...FACTS, ...more }, sums, NOW).why).toBe(why)
})

test("any facts have one state, with a reason, and a worse fact never makes it better", () => {
  const time = fc.option(fc.integer({ min: NOW - DAY, max: NOW + DAY }))
  const anyFacts: fc.Arbitrary<HealthFacts> = fc.record({
    disabled: fc.boolean(),
    disabledAt: time,
    disabledReason: fc.constantFrom("manual", "gone", "failing", null),
    paused: fc.boolean(),
    pausedAt: time,
    holdUntil: time,
    createdAt: fc.nat(NOW),
    protection: fc.record({
      phase: fc.constantFrom("closed", "open", "ramping"),
      since: fc.nat(NOW),
      until: time,
      step: fc.nat(9),
      downs: fc.nat(9),
      ramp: fc.option(fc.integer({ min: 1, max: 99 })),
      spent: fc.nat(100),
      spentAt: fc.nat(NOW),
      retriesAt: time,
      reported: fc.boolean(),
      failures: fc.nat(99),
      failingSince: time,
      isFailing: fc.boolean(),
      lastError: fc.option(fc.constant("HTTP 500")),
      warnings: fc.nat(2),
    }),
    policy: fc.constantFrom(POLICY, WITHOUT_BREAKER),
    absence: fc.option(
      fc.record({
        agent: fc.constant("hub"),
        since: fc.nat(NOW),
        hasOtherKey: fc.boolean(),
        lastSeenAt: time,
        waiting: fc.option(fc.record({ count: fc.nat(9), isLowerBound: fc.boolean() })),
        givenUpAt: time,
      }),
    ),
  })
  const anySums = fc.array(
    fc.tuple(fc.nat(26), fc.nat(100), fc.nat(100)).map(([ago, good, bad]) => hour(ago, good + bad, good)),
  )
  const rank = (facts: HealthFacts, sums: readonly HourlySum[]) =>
    HEALTH_STATES.indexOf(healthOf(facts, sums, NOW).health)
  fc.assert(
    fc.property(anyFacts, anySums, (facts, sums) => {
      const { health, why } = healthOf(facts, sums, NOW)
      expect(HEALTH_STATES).toContain(health)
      expect(why).toMatch(/^\S.+\S$/)
      expect(why).not.toMatch(/null|undefined|NaN|Invalid/)
      const before = rank(facts, sums)
      const failing = { ...facts, protection: { ...facts.protection, isFailing: true } }
      for (const worse of [{ ...facts, disabled: true }, { ...facts, paused: true }, failing])
        expect(rank(worse, sums)).toBeGreaterThanOrEqual(before)
    }),
  )
})
