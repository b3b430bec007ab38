import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { learn, type Recent, rampAt, type Signal, signalOf, transitionOf, tripped } from "./breaker.ts"
import type { Outcome } from "./outcome.ts"
import { parsePolicy } from "./parse-policy.ts"
import { type BreakerPolicy, readPolicy } from "./policy.ts"
import { PRESETS } from "./presets.ts"
import { HEALTHY, type Protection, readProtection, writeProtection } from "./protection.ts"

const POLICY = PRESETS.standard.breaker as BreakerPolicy
const NOW = 1_000_000_000
const FEW: Recent = { attempts: 1, downs: 1, rate: 0, isBacklogGone: false }
const MIDDLE = () => 0.5

function after(state: Protection, signals: readonly Signal[], now = NOW, recent = FEW): Protection {
  return signals.reduce((before, signal) => learn(before, signal, false, recent, POLICY, now, MIDDLE), state)
}

function probed(state: Protection, signal: Signal, now: number): Protection {
  return learn(state, signal, true, FEW, POLICY, now, MIDDLE)
}

const down = (n: number): Signal[] => new Array(n).fill("down")

describe("signals", () => {
  const response = (status: number): Outcome => ({ kind: "response", status, excerpt: "", retryAfter: null })
  test.each<[string, Outcome, Signal | null]>([
    ["200", response(200), "up"],
    ["404", response(404), "up"],
    ["429", response(429), "up"],
    ["408", response(408), "down"],
    ["500", response(500), "down"],
    ["503", response(503), "down"],
    ["no response", { kind: "failure", cause: "timeout" }, "down"],
    ["a forbidden target", { kind: "failure", cause: "target_forbidden" }, null],
    ["a token that was not issued", { kind: "failure", cause: "auth_error" }, null],
    ["an agent's transient failure", { kind: "ack", result: "transient", detail: "" }, "down"],
    ["an agent's permanent failure", { kind: "ack", result: "permanent", detail: "" }, "up"],
    ["an interruption", { kind: "interrupted" }, null],
    ["a fault of our own", { kind: "fault", detail: "" }, null],
    ["expiry", { kind: "overdue" }, null],
  ])("%s", (_name, outcome, signal) => expect(signalOf(outcome)).toBe(signal))
})

test("opens at the fifth failure in a row, and not when an answer came in between", () => {
  expect(after(HEALTHY, [...down(4), "up", ...down(4)]).phase).toBe("closed")
  expect(after(HEALTHY, down(5))).toMatchObject({ phase: "open", until: NOW + 30_000, step: 1 })
})

test.each([
  [19, 19, "closed"],
  [20, 9, "closed"],
  [20, 10, "open"],
  [100, 49, "closed"],
  [100, 50, "open"],
])("of %i attempts in the window %i failed: %s", (attempts, downs, phase) => {
  expect(after(HEALTHY, ["down"], NOW, { ...FEW, attempts, downs }).phase).toBe(phase)
})

test("the open time doubles with each failed probe, up to ten minutes", () => {
  let state = after(HEALTHY, down(5))
  const seconds = []
  for (let i = 0; i < 7; i++) {
    const at = state.until!
    state = probed(state, "down", at)
    seconds.push((state.until! - at) / 1000)
  }
  expect(seconds).toEqual([60, 120, 240, 480, 600, 600, 600])
})

test("the open time varies by 20 % to both sides", () => {
  const open = (random: number) =>
    learn({ ...HEALTHY, downs: 4 }, "down", false, FEW, POLICY, NOW, () => random).until! - NOW
  expect([open(0), open(0.999_999)]).toEqual([24_000, 36_000])
})

test("an outcome that is not the probe's does not decide an open breaker", () => {
  const state = after(HEALTHY, down(5))
  expect(after(state, ["up", "down"], state.until! + 1)).toBe(state)
})

test("a good probe begins the ramp, which ends when the backlog is gone", () => {
  const open = after(HEALTHY, down(5))
  const ramping = probed(open, "up", open.until!)
  expect(ramping).toMatchObject({ phase: "ramping", ramp: 10, downs: 0 })
  expect(after(ramping, ["up"])).toBe(ramping)
  expect(after(ramping, ["up"], NOW, { ...FEW, isBacklogGone: true })).toMatchObject({
    phase: "closed",
    ramp: null,
  })
})

test("the ramp allows 1.5 times the rate from before the outage, if that is more than the policy's", () => {
  expect(after({ ...HEALTHY, downs: 4 }, ["down"], NOW, { ...FEW, rate: 100 }).ramp).toBe(150)
  expect(after({ ...HEALTHY, downs: 4 }, ["down"], NOW, { ...FEW, rate: 2 }).ramp).toBe(10)
})

test("failing again during the ramp opens for longer and keeps the rate", () => {
  const open = after({ ...HEALTHY, downs: 4 }, ["down"], NOW, { ...FEW, rate: 100 })
  const ramping = probed(open, "up", open.until!)
  expect(after(ramping, down(5), open.until!)).toMatchObject({ phase: "open", step: 2, ramp: 150 })
})

test.each([
  [0, 120],
  [59, 120],
  [60, 60],
  [89, 60],
  [90, 30],
  [10_000, 30],
])("after %i healthy seconds the breaker, which had been open for 60 s, opens for %i s", (healthy, open) => {
  const before: Protection = { ...HEALTHY, step: 2, since: NOW, until: NOW }
  const now = NOW + healthy * 1000
  expect(after(before, down(5), now).until! - now).toBe(open * 1000)
})

test("a breaker that only reports never opens", () => {
  const report: BreakerPolicy = { ...POLICY, report: true }
  let state: Protection = HEALTHY
  for (let i = 0; i < 30; i++) state = learn(state, "down", false, FEW, report, NOW, MIDDLE)
  expect(state).toMatchObject({ phase: "closed", until: null, reported: true })
  expect(learn(state, "up", false, FEW, report, NOW, MIDDLE)).toMatchObject({ reported: false, downs: 0 })
})

test("an operator's trip opens it as a failure would", () => {
  expect(tripped(HEALTHY, POLICY, NOW, MIDDLE)).toMatchObject({ phase: "open", until: NOW + 30_000 })
})

test("a healthy endpoint has nothing to write, and a success changes nothing", () => {
  expect(writeProtection(HEALTHY)).toBeNull()
  expect(after(HEALTHY, ["up", "up"])).toBe(HEALTHY)
})

test("whatever an operator typed is read as a valid state", () => {
  const text = fc.oneof(
    fc.string(),
    fc.json(),
    fc.constant('{"phase":"open","step":-1,"ramp":"x","downs":null}'),
  )
  fc.assert(
    fc.property(fc.option(text), fc.option(fc.integer()), (stored, until) => {
      const state = readProtection(stored, until)
      expect(state.until).toBe(until)
      expect(state.step).toBeGreaterThanOrEqual(0)
      expect(["closed", "open", "ramping"]).toContain(state.phase)
      const next = learn(state, "down", true, FEW, POLICY, NOW, MIDDLE)
      expect(next.until === null || Number.isFinite(next.until)).toBe(true)
    }),
  )
})

test("random signals keep the invariants of the breaker", () => {
  const step = fc.record({
    signal: fc.constantFrom<Signal>("up", "down"),
    isProbe: fc.boolean(),
    waitMs: fc.integer({ min: 0, max: 900_000 }),
    attempts: fc.integer({ min: 1, max: 50 }),
    random: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
    isBacklogGone: fc.boolean(),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      let state: Protection = HEALTHY
      let now = NOW
      for (const { signal, isProbe, waitMs, attempts, random, isBacklogGone } of steps) {
        now += waitMs
        const recent = { attempts, downs: attempts, rate: 1, isBacklogGone }
        const next = learn(state, signal, isProbe, recent, POLICY, now, () => random)
        if (state.phase === "open" && !isProbe) expect(next).toBe(state)
        if (transitionOf(state, next) === "opened") {
          expect(signal).toBe("down")
          expect(next.until! - now).toBeGreaterThanOrEqual(24_000)
          expect(next.until! - now).toBeLessThanOrEqual(720_000)
        }
        if (transitionOf(state, next) === "closed") expect(isProbe && signal === "up").toBe(true)
        expect(readProtection(writeProtection(next), next.until)).toEqual(next)
        state = next
      }
    }),
  )
})

test("which policies have a breaker: standard and one's own; not the other presets, nor seed 003's words, nor older rows", () => {
  const own = { delays: [1], maxAttempts: 3 }
  expect(Object.entries(PRESETS).filter(([, policy]) => policy.breaker !== false)).toHaveLength(1)
  expect(parsePolicy(own).breaker).toEqual(POLICY)
  expect(parsePolicy({ ...own, breaker: "report" }).breaker).toEqual({ ...POLICY, report: true })
  expect(parsePolicy({ max_retries: 3 }).breaker).toBe(false)
  expect(parsePolicy({ max_retries: 3, breaker: true }).breaker).toEqual(POLICY)
  expect(readPolicy('{"maxAttempts":3}').breaker).toBe(false)
})

test.each([
  [{ failures: 0 }, "retry.breaker.failures must be a whole number between 1 and 1000"],
  [{ ratio: 2 }, "retry.breaker.ratio must be a number between 0.01 and 1"],
  [{ open: 61 }, "retry.breaker.open must be a number between 1 and 60"],
  [{ open: 30, maxOpen: 10 }, "retry.breaker.maxOpen must be a number between 30 and 60"],
  [{ opens: 1 }, "retry.breaker.opens is unknown"],
  ["on", 'retry.breaker must be true, false, "report" or an object'],
])("breaker: %j is refused", (breaker, message) => {
  const policy = { delays: [1], maxAge: 60, breaker: breaker as never }
  expect(() => parsePolicy(policy)).toThrow(message)
})

test("the ramp holds its limit for half an hour, then doubles every ten minutes, so that it ends under any load", () => {
  const state: Protection = { ...HEALTHY, phase: "ramping", since: NOW, ramp: 12 }
  const at = (minutes: number) => rampAt(state, POLICY, NOW + minutes * 60_000)
  expect([0, 29.9, 30, 39.9, 40, 50].map(at)).toEqual([12, 12, 24, 24, 48, 96])
  expect(at(24 * 60)).toBe(10_000)
  expect(rampAt({ ...state, ramp: null }, POLICY, NOW)).toBe(10)
  expect(rampAt({ ...state, phase: "closed" }, POLICY, NOW)).toBeNull()
})
