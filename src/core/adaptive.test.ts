import fc from "fast-check"
import { expect, test } from "vitest"
import { adaptedDelayMs } from "./adaptive.ts"
import { FAILURE_CAUSES } from "./failure-causes.ts"
import type { AttemptOutcome } from "./outcome.ts"
import { parsePolicy } from "./parse-policy.ts"

const POLICY = parsePolicy({ delays: [5, 3600], maxAttempts: 9, adaptive: true })
const response = (status: number, retryAfter: string | null = null): AttemptOutcome => ({
  kind: "response",
  status,
  excerpt: "",
  retryAfter,
})

test.each<[string, AttemptOutcome, number]>([
  ["timeout", { kind: "failure", cause: "timeout" }, 60],
  ["dns_error", { kind: "failure", cause: "dns_error" }, 60],
  ["tls_error", { kind: "failure", cause: "tls_error" }, 600],
  ["connection_refused", { kind: "failure", cause: "connection_refused" }, 5],
  ["401", response(401), 600],
  ["403", response(403), 600],
  ["404", response(404), 600],
  ["429", response(429), 10],
  ["503", response(503), 10],
  ["503 with a Retry-After that is not honoured", response(503, "soon"), 10],
  ["500", response(500), 5],
])("after %s", (_name, outcome, seconds) => {
  expect(adaptedDelayMs(POLICY, outcome, 5000, 0)).toBe(seconds * 1000)
})

test("a Retry-After that is honoured has its own rule", () => {
  expect(adaptedDelayMs(POLICY, response(503, "7"), 5000, 7000)).toBe(5000)
})

test("the floor is not above the schedule's longest delay", () => {
  const short = parsePolicy({ delays: [5, 30], maxAttempts: 9, adaptive: true })
  expect(adaptedDelayMs(short, { kind: "failure", cause: "tls_error" }, 5000, 0)).toBe(30_000)
})

test("floors of one's own replace the defaults", () => {
  const own = parsePolicy({ delays: [5, 3600], maxAttempts: 9, adaptive: { "500": 90 } })
  expect(adaptedDelayMs(own, response(500), 5000, 0)).toBe(90_000)
  expect(adaptedDelayMs(own, { kind: "failure", cause: "timeout" }, 5000, 0)).toBe(5000)
})

test("it never shortens a delay, and changes nothing when it is off", () => {
  const off = parsePolicy({ delays: [5, 3600], maxAttempts: 9 })
  const outcome = fc.oneof(
    fc.constantFrom(...FAILURE_CAUSES).map((cause): AttemptOutcome => ({ kind: "failure", cause })),
    fc.integer({ min: 300, max: 599 }).map((status) => response(status)),
  )
  fc.assert(
    fc.property(outcome, fc.integer({ min: 0, max: 5_000_000 }), (one, ms) => {
      expect(adaptedDelayMs(POLICY, one, ms, 0)).toBeGreaterThanOrEqual(ms)
      expect(adaptedDelayMs(POLICY, one, ms, 0)).toBeLessThanOrEqual(Math.max(ms, 3_600_000))
      expect(adaptedDelayMs(off, one, ms, 0)).toBe(ms)
    }),
  )
})

test.each([
  [{ slow: 1 }, "retry.adaptive.slow is unknown"],
  [{ timeout: -1 }, "retry.adaptive.timeout must be a number between 0 and 31536000"],
  ["yes", "retry.adaptive must be true, false or an object of seconds by cause"],
])("adaptive: %j is refused", (adaptive, message) => {
  expect(() => parsePolicy({ delays: [1], maxAttempts: 1, adaptive: adaptive as never })).toThrow(message)
})
