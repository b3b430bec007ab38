import { expect, test } from "vitest"
import type { LoadedGate } from "../core/gate.ts"
import { type GateLimits, LaneGate } from "./lane-gate.ts"
import { ApplicationRates } from "./limits.ts"

const NOW = 1_000_000
const LIMITS: GateLimits = { appId: "app", concurrency: 4, rateLimit: null, appRateLimit: null }
const OPEN: LoadedGate = {
  deleted: false,
  disabled: false,
  paused: false,
  holdUntil: null,
  epoch: 0,
  token: 0,
  revision: 0,
}
const SUCCESS = { kind: "response", status: 200, excerpt: "", retryAfter: null } as const
const FAILURE = { kind: "failure", cause: "timeout" } as const

const gate = () => new LaneGate(new ApplicationRates())

test.each<[string, Partial<LoadedGate>, string | null, number | null]>([
  ["nothing stored", {}, null, null],
  ["paused", { paused: true, holdUntil: NOW + 5 }, "paused", null],
  ["disabled", { disabled: true, paused: true }, "disabled", null],
  ["a Retry-After", { holdUntil: NOW + 5 }, "held", NOW + 5],
  ["a Retry-After that is over", { holdUntil: NOW }, null, null],
  ["a deleted endpoint, whose deliveries are cancelled", { deleted: true, disabled: true }, null, null],
])("with %s", (_name, stored, reason, until) => {
  const lane = gate()
  lane.load({ ...OPEN, ...stored })
  expect(lane.mayStart(NOW, 0, LIMITS)).toEqual(reason === null ? null : { reason, until })
})

test("a hold that the receiver asked for closes the gate before it is stored", () => {
  const lane = gate()
  const held = { reason: "held", until: NOW + 60 }
  expect(lane.close(NOW + 60, false)).toEqual({ holdUntil: NOW + 60, epoch: 0, revision: 1, closes: true })
  expect(lane.close(NOW + 30, false)).toEqual({ holdUntil: NOW + 60, epoch: 0, revision: 2, closes: true })
  lane.load(OPEN)
  expect(lane.mayStart(NOW, 0, LIMITS)).toEqual(held)
  lane.written(7, 1)
  lane.load(OPEN)
  expect(lane.mayStart(NOW, 0, LIMITS)).toEqual(held)
  lane.written(7, 2)
  expect(lane.mayStart(NOW, 0, LIMITS)).toEqual(held)
  lane.load({ ...OPEN, token: 7, revision: 2 })
  expect(lane.mayStart(NOW, 0, LIMITS)).toBeNull()
})

test("a fetch that read the gate before the last settle was written does not open it", () => {
  const lane = gate()
  lane.load({ ...OPEN, token: 6, revision: 9 })
  lane.close(NOW + 60, true)
  lane.written(7, 1)
  lane.load({ ...OPEN, token: 6, revision: 9 })
  expect(lane.mayStart(NOW, 0, LIMITS)).toEqual({ reason: "disabled", until: null })
  lane.load({ ...OPEN, token: 8, revision: 1 })
  expect(lane.mayStart(NOW, 0, LIMITS)).toBeNull()
})

test("an operator's reset opens a gate that closed before it, also before that is stored", () => {
  const lane = gate()
  lane.close(NOW + 60, false)
  lane.load({ ...OPEN, epoch: 1 })
  expect(lane.mayStart(NOW, 0, LIMITS)).toBeNull()
  expect(lane.close(NOW + 5, false)).toMatchObject({ holdUntil: NOW + 5, epoch: 1, revision: 2 })
})

test("an outcome that is never written leaves the gate as the store has it", () => {
  const lane = gate()
  lane.close(NOW + 60, true)
  lane.unlearn()
  expect(lane.mayStart(NOW, 0, LIMITS)).toBeNull()
})

test("an endpoint that answered 410 gets nothing more, also before that is stored", () => {
  const lane = gate()
  lane.close(null, true)
  lane.load(OPEN)
  expect(lane.mayStart(NOW, 0, LIMITS)).toEqual({ reason: "disabled", until: null })
})

test("concurrency starts at one, grows with success up to the limit, and is halved by a failure", () => {
  const lane = gate()
  expect(lane.mayStart(NOW, 0, LIMITS)).toBeNull()
  expect(lane.mayStart(NOW, 1, LIMITS)).toEqual({ reason: "concurrency", until: null })
  for (let sending = 1; sending <= 9; sending++) lane.learn(SUCCESS, sending, 4)
  expect(lane.allowed(LIMITS)).toBe(4)
  lane.learn(FAILURE, 4, 4)
  expect(lane.allowed(LIMITS)).toBe(2)
})

test("a rate limit says when the next request may start", () => {
  const lane = gate()
  const limits = { ...LIMITS, rateLimit: 1 }
  expect(lane.mayStart(NOW, 0, limits)).toBeNull()
  lane.started(NOW, limits)
  expect(lane.mayStart(NOW + 400, 0, limits)).toEqual({ reason: "rate", until: NOW + 1000 })
  expect(lane.mayStart(NOW + 1000, 0, limits)).toBeNull()
})

test("the lanes of an application share its rate limit", () => {
  const rates = new ApplicationRates()
  const [one, other] = [new LaneGate(rates), new LaneGate(rates)]
  const limits = { ...LIMITS, appRateLimit: 1 }
  one.started(NOW, limits)
  expect(other.mayStart(NOW, 0, limits)).toEqual({ reason: "rate", until: NOW + 1000 })
})
