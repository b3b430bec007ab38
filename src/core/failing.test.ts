import fc from "fast-check"
import { expect, test } from "vitest"
import { disablesAt, enabledAgain, failingTransition, learnAttempt, mustDisable } from "./failing.ts"
import { parsePolicy } from "./parse-policy.ts"
import { PRESETS } from "./presets.ts"
import { HEALTHY, type Protection, readProtection, writeProtection } from "./protection.ts"

const NOW = 1_900_000_000_000
const HOUR = 3_600_000
const DAY = 24 * HOUR
const POLICY = PRESETS.standard.autoDisable

const failed = (state: Protection, now = NOW, isRetry = false) =>
  learnAttempt(state, "HTTP 500", isRetry, false, now)
const succeeded = (state: Protection, now = NOW) => learnAttempt(state, null, false, false, now)

function failedTimes(times: number, state: Protection = HEALTHY): Protection {
  return Array.from({ length: times }).reduce<Protection>((before) => failed(before), state)
}

test("an endpoint is failing after five failures in a row of any deliveries", () => {
  expect(failedTimes(4).isFailing).toBe(false)
  expect(failedTimes(5)).toMatchObject({ isFailing: true, failures: 5, failingSince: NOW })
})

test("a failed retry makes it failing at once, unless a success came in between", () => {
  expect(failed(failed(HEALTHY), NOW + 5000, true).isFailing).toBe(true)
  expect(failed(succeeded(failed(HEALTHY)), NOW + 5000, true).isFailing).toBe(false)
})

test("one failure is enough if no success came of late and the next attempt is far away", () => {
  expect(learnAttempt(HEALTHY, "HTTP 404", false, true, NOW).isFailing).toBe(true)
})

test("it is told once when it begins, at a day, at three days, and when it recovers", () => {
  const told: string[] = []
  let state: Protection = HEALTHY
  for (let hour = 0; hour <= 100; hour++) {
    const next = failed(state, NOW + hour * HOUR, hour > 0)
    const transition = failingTransition(state, next)
    if (transition !== null) told.push(`${transition} ${hour}`)
    state = next
  }
  expect(told).toEqual(["failing 1", "failing 24", "failing 72"])
  expect(failingTransition(state, succeeded(state))).toBe("recovered")
  expect(succeeded(state)).toEqual(HEALTHY)
})

test.each([
  [5 * DAY, 20, true],
  [5 * DAY - 1, 20, false],
  [5 * DAY, 19, false],
])("failing for %i ms with %i failures: disabled %s", (ms, failures, disables) => {
  const state = { ...HEALTHY, failures, failingSince: NOW }
  expect(mustDisable(state, POLICY, NOW + ms)).toBe(disables)
  expect(mustDisable(state, false, NOW + ms)).toBe(false)
  expect(disablesAt(state, POLICY)).toBe(NOW + 5 * DAY)
})

test("the last error is kept until a success, also while the endpoint is enabled again", () => {
  const state = learnAttempt(failedTimes(4), "timeout", true, false, NOW)
  expect(state.lastError).toBe("timeout")
  expect(enabledAgain(state, false, NOW)).toEqual({ ...HEALTHY, isFailing: true, lastError: "timeout" })
  expect(succeeded(enabledAgain(state, false, NOW))).toEqual(HEALTHY)
  expect(enabledAgain(failed(HEALTHY), false, NOW)).toBe(HEALTHY)
  expect(enabledAgain(state, true, NOW)).toMatchObject({ phase: "ramping", since: NOW, isFailing: true })
})

test("a success of a healthy endpoint changes nothing", () => {
  expect(succeeded(HEALTHY)).toBe(HEALTHY)
})

test("any outcomes keep the counts right, and the state can be stored", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.boolean(), fc.boolean(), fc.integer({ min: 0, max: DAY }))), (steps) => {
      let [state, now, inARow]: [Protection, number, number] = [HEALTHY, NOW, 0]
      for (const [isSuccess, isRetry, ms] of steps) {
        now += ms
        state = learnAttempt(state, isSuccess ? null : "timeout", isRetry, false, now)
        inARow = isSuccess ? 0 : inARow + 1
        expect(state.failures).toBe(inARow)
        expect(state.failingSince === null).toBe(inARow === 0)
        expect(readProtection(writeProtection(state), state.until)).toEqual(state)
      }
    }),
  )
})

test("which policies disable: standard and one's own", () => {
  const own = { delays: [1], maxAttempts: 3 }
  expect(parsePolicy(own).autoDisable).toEqual({ after: 432_000, failures: 20 })
  expect(parsePolicy({ ...own, autoDisable: { failures: 3 } }).autoDisable).toEqual({
    after: 432_000,
    failures: 3,
  })
  expect(parsePolicy({ max_retries: 3 }).autoDisable).toBe(false)
  expect(Object.values(PRESETS).filter(({ autoDisable }) => autoDisable !== false)).toHaveLength(1)
})

test.each([
  [{ after: 3600 }, "retry.autoDisable.after must be a number between 43200 and 31536000"],
  [{ failures: 0 }, "retry.autoDisable.failures must be a whole number between 1 and 100000"],
  [{ days: 5 }, "retry.autoDisable.days is unknown"],
  ["yes", "retry.autoDisable must be true, false or an object"],
])("autoDisable: %j is refused", (autoDisable, message) => {
  expect(() => parsePolicy({ delays: [1], maxAttempts: 1, autoDisable: autoDisable as never })).toThrow(
    message,
  )
})
