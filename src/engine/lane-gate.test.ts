import { expect, test } from "vitest"
import type { GateUpdate, LoadedGate } from "../core/gate.ts"
import type { Outcome } from "../core/outcome.ts"
import { PRESETS } from "../core/presets.ts"
import { HEALTHY } from "../core/protection.ts"
import { type GateLimits, LaneGate, type Probe } from "./lane-gate.ts"
import { ApplicationRates } from "./limits.ts"

const NOW = 1_000_000
const LIMITS: GateLimits = {
  appId: "app",
  concurrency: 4,
  rateLimit: null,
  appRateLimit: null,
  breaker: false,
  budget: false,
  autoDisable: false,
  reach: null,
}
const OPEN: LoadedGate = {
  deleted: false,
  disabled: false,
  paused: false,
  holdUntil: null,
  protection: HEALTHY,
  epoch: 0,
  token: 0,
  revision: 0,
}
const SUCCESS = { kind: "response", status: 200, excerpt: "", retryAfter: null } as const
const FAILURE = { kind: "failure", cause: "timeout" } as const

const BUSY = { kind: "response", status: 429, excerpt: "", retryAfter: "60" } as const

const gate = () => new LaneGate(new ApplicationRates(), () => 0.5)

function ended(outcome: Outcome, sending = 1, probe: Probe = null, now = NOW) {
  return { outcome, probe, sending, most: 4, isBacklogGone: false, isRetry: false, retryAt: null, now }
}

/** The gate learns of a 429 or a 410. */
function close(lane: LaneGate, holdUntil: number | null, disables: boolean): GateUpdate | null {
  return lane.learn(ended(BUSY), LIMITS, { holdUntil, disables })
}

const NOTHING = { holdUntil: null, disables: false }

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
  expect(close(lane, NOW + 60, false)).toMatchObject({
    holdUntil: NOW + 60,
    epoch: 0,
    revision: 1,
    closes: true,
  })
  expect(close(lane, NOW + 30, false)).toMatchObject({
    holdUntil: NOW + 60,
    epoch: 0,
    revision: 2,
    closes: true,
  })
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
  close(lane, NOW + 60, true)
  lane.written(7, 1)
  lane.load({ ...OPEN, token: 6, revision: 9 })
  expect(lane.mayStart(NOW, 0, LIMITS)).toEqual({ reason: "disabled", until: null })
  lane.load({ ...OPEN, token: 8, revision: 1 })
  expect(lane.mayStart(NOW, 0, LIMITS)).toBeNull()
})

test("an operator's reset opens a gate that closed before it, also before that is stored", () => {
  const lane = gate()
  close(lane, NOW + 60, false)
  lane.load({ ...OPEN, epoch: 1 })
  expect(lane.mayStart(NOW, 0, LIMITS)).toBeNull()
  expect(close(lane, NOW + 5, false)).toMatchObject({ holdUntil: NOW + 5, epoch: 1, revision: 2 })
})

test("an outcome that is never written leaves the gate as the store has it", () => {
  const lane = gate()
  close(lane, NOW + 60, true)
  lane.unlearn()
  expect(lane.mayStart(NOW, 0, LIMITS)).toBeNull()
})

test("an endpoint that answered 410 gets nothing more, also before that is stored", () => {
  const lane = gate()
  close(lane, null, true)
  lane.load(OPEN)
  expect(lane.mayStart(NOW, 0, LIMITS)).toEqual({ reason: "disabled", until: null })
})

test("concurrency starts at one, grows with success up to the limit, and is halved by a failure", () => {
  const lane = gate()
  expect(lane.mayStart(NOW, 0, LIMITS)).toBeNull()
  expect(lane.mayStart(NOW, 1, LIMITS)).toEqual({ reason: "concurrency", until: null })
  for (let sending = 1; sending <= 9; sending++) lane.learn(ended(SUCCESS, sending), LIMITS, NOTHING)
  expect(lane.allowed(LIMITS)).toBe(4)
  lane.learn(ended(FAILURE, 4), LIMITS, NOTHING)
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
  const [one, other] = [new LaneGate(rates, Math.random), new LaneGate(rates, Math.random)]
  const limits = { ...LIMITS, appRateLimit: 1 }
  one.started(NOW, limits)
  expect(other.mayStart(NOW, 0, limits)).toEqual({ reason: "rate", until: NOW + 1000 })
})

const PROTECTED: GateLimits = { ...LIMITS, breaker: PRESETS.standard.breaker }

/** A lane whose breaker opened at NOW, for 30 s. */
function opened(): LaneGate {
  const lane = gate()
  for (let i = 0; i < 5; i++) lane.learn(ended(FAILURE), PROTECTED, NOTHING)
  return lane
}

test("the breaker closes the gate at the fifth failure in a row, and the update says so", () => {
  const lane = gate()
  const updates = Array.from({ length: 5 }, () => lane.learn(ended(FAILURE), PROTECTED, NOTHING))
  expect(updates.map((update) => update?.transitions)).toEqual([[], [], [], [], ["opened", "failing"]])
  expect(updates.at(-1)).toMatchObject({ closes: true, protection: { until: NOW + 30_000 } })
  expect(lane.mayStart(NOW + 29_999, 0, PROTECTED)).toEqual({ reason: "breaker", until: NOW + 30_000 })
})

test("a half-open breaker lets one probe start, beside older requests, until it ends", () => {
  const lane = opened()
  const now = NOW + 30_000
  expect(lane.mayStart(now, 3, PROTECTED)).toBeNull()
  const probe = lane.started(now, PROTECTED)
  expect(lane.mayStart(now, 4, PROTECTED)).toEqual({ reason: "probe", until: null })
  lane.learn(ended(SUCCESS, 4, null, now), PROTECTED, NOTHING)
  expect(lane.mayStart(now, 3, PROTECTED)).toEqual({ reason: "probe", until: null })
  lane.ended(probe)
  expect(lane.mayStart(now, 3, PROTECTED)).toBeNull()
})

test("a probe of an earlier open interval decides nothing", () => {
  const lane = opened()
  const old = lane.started(NOW + 30_000, PROTECTED)
  lane.load({ ...OPEN, epoch: 1 })
  for (let i = 0; i < 5; i++) lane.learn(ended(FAILURE, 1, null, NOW + 40_000), PROTECTED, NOTHING)
  lane.learn(ended(SUCCESS, 1, old, NOW + 41_000), PROTECTED, NOTHING)
  expect(lane.mayStart(NOW + 41_000, 0, PROTECTED)).toMatchObject({ reason: "breaker" })
})

test("after a good probe concurrency doubles and the ramp limits the rate", () => {
  const lane = opened()
  const now = NOW + 30_000
  lane.learn(ended(SUCCESS, 1, lane.started(now, PROTECTED), now), PROTECTED, NOTHING)
  expect(lane.allowed(PROTECTED)).toBe(2)
  for (let i = 0; i < 10; i++) {
    expect(lane.mayStart(now, 0, PROTECTED)).toBeNull()
    lane.started(now, PROTECTED)
  }
  expect(lane.mayStart(now, 0, PROTECTED)).toEqual({ reason: "ramp", until: now + 1000 })
})

test("the ramp ends with the success after which nothing waits", () => {
  const lane = opened()
  const now = NOW + 30_000
  lane.learn(ended(SUCCESS, 1, lane.started(now, PROTECTED), now), PROTECTED, NOTHING)
  expect(lane.protection.phase).toBe("ramping")
  lane.learn({ ...ended(SUCCESS, 1, null, now), isBacklogGone: true }, PROTECTED, NOTHING)
  expect(lane.protection).toMatchObject({ phase: "closed", ramp: null })
})

test("a breaker that only reports starts every request", () => {
  const lane = gate()
  const limits = { ...LIMITS, breaker: { ...PRESETS.standard.breaker, report: true } as const } as GateLimits
  const updates = Array.from({ length: 7 }, () => lane.learn(ended(FAILURE), limits, NOTHING))
  expect(updates.map((update) => update?.transitions)).toEqual([
    [],
    [],
    [],
    [],
    ["opened", "failing"],
    [],
    [],
  ])
  expect(lane.mayStart(NOW, 0, limits)).toBeNull()
  expect(lane.learn(ended(SUCCESS), limits, NOTHING)?.transitions).toEqual(["closed", "recovered"])
})

test("a new run of the lane has a probe of its own; the probe of the run before decides nothing", () => {
  const lane = opened()
  const now = NOW + 30_000
  const lost = lane.started(now, PROTECTED)
  lane.begin()
  expect(lane.mayStart(now, 0, PROTECTED)).toBeNull()
  lane.load({ ...OPEN, protection: { ...HEALTHY, phase: "open", since: NOW, until: now, step: 1 } })
  const own = lane.started(now, PROTECTED)
  lane.ended(lost)
  expect(lane.mayStart(now, 1, PROTECTED)).toEqual({ reason: "probe", until: null })
  lane.learn(ended(SUCCESS, 1, lost, now), PROTECTED, NOTHING)
  expect(lane.protection.phase).toBe("open")
  lane.learn(ended(SUCCESS, 1, own, now), PROTECTED, NOTHING)
  expect(lane.protection.phase).toBe("ramping")
})

test("a probe that leaves nothing waiting closes the breaker without a ramp", () => {
  const lane = opened()
  const now = NOW + 30_000
  const probe = lane.started(now, PROTECTED)
  lane.learn({ ...ended(SUCCESS, 1, probe, now), isBacklogGone: true }, PROTECTED, NOTHING)
  expect(lane.protection).toMatchObject({ phase: "closed", ramp: null })
})

test.each([
  false,
  { ...(PRESETS.standard.breaker as object), report: true },
])("a policy without an active breaker ends a ramp and a half-open breaker: %o", (breaker) => {
  const limits = { ...LIMITS, breaker } as GateLimits
  const lane = gate()
  for (const phase of ["open", "ramping"] as const) {
    lane.load({ ...OPEN, protection: { ...HEALTHY, phase, since: NOW, until: NOW, ramp: 1 } })
    expect(lane.sendableSince(NOW + 5, limits)).toBe(0)
    lane.started(NOW + 5, limits)
    expect(lane.mayStart(NOW + 5, 0, limits)).toBeNull()
    const update = lane.learn(ended(SUCCESS, 1, null, NOW + 5), limits, NOTHING)
    expect(update?.protection).toMatchObject({ phase: "closed", until: null, ramp: null })
    lane.unlearn()
  }
})

test("a breaker that was opened by hand ramps at the rate that the owner remembers", () => {
  const lane = gate()
  for (let i = 0; i < 3000; i++) lane.learn(ended(SUCCESS, 1, null, NOW + i), PROTECTED, NOTHING)
  const until = NOW + 33_000
  lane.load({ ...OPEN, epoch: 1, protection: { ...HEALTHY, phase: "open", since: NOW, until, step: 1 } })
  lane.learn(ended(SUCCESS, 1, lane.started(until, PROTECTED), until), PROTECTED, NOTHING)
  expect(lane.protection.ramp).toBeGreaterThan(50)
})
