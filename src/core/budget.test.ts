import fc from "fast-check"
import { expect, test } from "vitest"
import { learnCost, nextRetryAt, retriesLeft, spentNow } from "./budget.ts"
import type { AttemptOutcome } from "./outcome.ts"
import { parsePolicy } from "./parse-policy.ts"
import type { BudgetPolicy } from "./policy.ts"
import { PRESETS } from "./presets.ts"
import { HEALTHY, type Protection, readProtection, writeProtection } from "./protection.ts"

const POLICY = PRESETS.standard.budget as BudgetPolicy
const NOW = 1_000_000_000
const MINUTE = 60_000
const OK: AttemptOutcome = { kind: "response", status: 200, excerpt: "", retryAfter: null }
const NOT_FOUND: AttemptOutcome = { kind: "response", status: 404, excerpt: "", retryAfter: null }
const TIMEOUT: AttemptOutcome = { kind: "failure", cause: "timeout" }

const learnt = (outcome: AttemptOutcome, isCharged: boolean, times = 1, before: Protection = HEALTHY) =>
  Array.from({ length: times }).reduce<Protection>(
    (state) => learnCost(state, outcome, isCharged, POLICY, NOW),
    before,
  )
const left = (state: Protection, inHand = 0, now = NOW) => retriesLeft(state, POLICY, inHand, now)

test.each<[string, AttemptOutcome, boolean, number]>([
  ["a retry that fails", NOT_FOUND, true, 5],
  ["a retry that times out", TIMEOUT, true, 10],
  ["a retry that succeeds", OK, true, 0],
  ["a first attempt or a probe that fails", NOT_FOUND, false, 0],
  ["a first attempt or a probe that times out", TIMEOUT, false, 0],
])("%s costs its tokens", (_name, outcome, isCharged, cost) =>
  expect(learnt(outcome, isCharged).spent).toBe(cost))

test("twenty failed retries empty the bucket; a minute or five successes give one back", () => {
  expect(left(HEALTHY)).toBe(20)
  const empty = learnt(NOT_FOUND, true, 20)
  expect(left(empty)).toBe(0)
  expect(nextRetryAt(empty, POLICY, 0, NOW)).toBe(NOW + MINUTE)
  expect(left(empty, 0, NOW + MINUTE - 1)).toBe(0)
  expect(left(empty, 0, NOW + MINUTE)).toBe(1)
  expect(left(empty, 0, NOW + 20 * MINUTE)).toBe(20)
  expect(left(learnt(OK, false, 4, empty))).toBe(0)
  expect(left(learnt(OK, false, 5, empty))).toBe(1)
})

test("retries in hand count as if they failed", () => {
  expect(left(HEALTHY, 19)).toBe(1)
  expect(left(HEALTHY, 25)).toBe(0)
  expect(nextRetryAt(HEALTHY, POLICY, 19, NOW)).toBe(NOW)
  expect(nextRetryAt(HEALTHY, POLICY, 20, NOW)).toBe(NOW + MINUTE)
})

test("the time of the next retry is known while the bucket is empty; a success may bring it forward", () => {
  const empty = learnt(NOT_FOUND, true, 20)
  expect(empty.retriesAt).toBe(NOW + MINUTE)
  expect(learnt(OK, false, 4, empty).retriesAt).toBe(NOW + MINUTE / 5)
  expect(learnt(OK, false, 5, empty).retriesAt).toBe(NOW)
})

test("a success with a full bucket changes nothing that would have to be written", () => {
  expect(learnt(OK, false)).toBe(HEALTHY)
  expect(learnt(OK, true)).toBe(HEALTHY)
})

test("a state survives being written and read", () => {
  const state = learnt(TIMEOUT, true, 9)
  expect(readProtection(writeProtection(state), null)).toEqual(state)
  expect(writeProtection(learnCost(state, OK, false, POLICY, NOW + 60 * MINUTE))).toBeNull()
})

test("between no tokens and all of them, whatever happens, and a retry is always due in the end", () => {
  const step = fc.record({
    outcome: fc.constantFrom(OK, NOT_FOUND, TIMEOUT),
    isCharged: fc.boolean(),
    waitMs: fc.integer({ min: -1000, max: 10 * MINUTE }),
  })
  fc.assert(
    fc.property(fc.array(step), (steps) => {
      let state: Protection = HEALTHY
      let now = NOW
      for (const { outcome, isCharged, waitMs } of steps) {
        now += waitMs
        const before = state
        state = learnCost(state, outcome, isCharged, POLICY, now)
        const spent = spentNow(state, POLICY, now)
        expect(spent).toBeGreaterThanOrEqual(0)
        expect(spent).toBeLessThanOrEqual(POLICY.tokens)
        const at = nextRetryAt(state, POLICY, 0, now)
        expect(left(state, 0, at)).toBeGreaterThan(0)
        expect(at === now).toBe(left(state, 0, now) > 0)
        if (state !== before && left(state, 0, now) === 0) expect(state.retriesAt).toBe(at)
      }
    }),
  )
})

test.each<[object, string]>([
  [{ tokens: 0 }, "retry.budget.tokens"],
  [{ tokens: 10, retry: 11 }, "retry.budget.retry"],
  [{ retry: 8, timeout: 7 }, "retry.budget.timeout"],
  [{ success: -1 }, "retry.budget.success"],
  [{ perMinute: 0 }, "retry.budget.perMinute"],
  [{ tokensPerMinute: 1 }, "retry.budget.tokensPerMinute"],
])("%o is refused with the field's name and range", (budget, field) => {
  const parse = () => parsePolicy({ delays: [1], maxAttempts: 2, budget } as never)
  expect(parse).toThrow(expect.objectContaining({ code: "invalid_input", field }))
})

test("on in a policy of one's own, off in seed 003's words and in the seed presets", () => {
  expect(parsePolicy({ delays: [1], maxAttempts: 2 }).budget).toEqual(POLICY)
  expect(parsePolicy({ max_retries: 3, base_delay: 1, strategy: "fixed" }).budget).toBe(false)
  for (const name of ["gateway", "relay", "enterprise", "jobs"] as const)
    expect(PRESETS[name].budget).toBe(false)
  expect(parsePolicy({ delays: [1], maxAttempts: 2, budget: { tokens: 4 } }).budget).toEqual({
    tokens: 4,
    retry: 4,
    timeout: 4,
    success: 1,
    perMinute: 5,
  })
})
