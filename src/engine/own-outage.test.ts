/** Which lanes may probe during an outage of our own network, and when. */
import { setImmediate } from "node:timers/promises"
import { expect, test } from "vitest"
import { TestClock } from "../../test/support/clock.ts"
import type { Outcome } from "../core/outcome.ts"
import { OUTAGE_DEFAULTS } from "../core/own-outage.ts"
import type { Tried } from "./attempt.ts"
import { LaneState } from "./lane-state.ts"
import { ApplicationRates } from "./limits.ts"
import { type EndedOutage, OwnOutage } from "./own-outage.ts"
import type { Target } from "./target.ts"

const TIMEOUT: Outcome = { kind: "failure", cause: "timeout" }
const START = { isProbe: false, answers: 0 }
const OK: Outcome = { kind: "response", status: 200, excerpt: "", retryAfter: null }

/** An outage of ten endpoints that was just declared. */
function start() {
  const clock = new TestClock()
  const began: number[] = []
  const ended: EndedOutage[] = []
  const guard = new OwnOutage(clock, OUTAGE_DEFAULTS, {
    began: (since) => void began.push(since),
    ended: (one) => void ended.push(one),
  })
  const lane = () => new LaneState("app", new ApplicationRates(), 1, Math.random)
  const tried = (n: number, outcome: Outcome, startedAt = clock.now()): Tried => {
    const target = { endpoint: { id: `ep${n}`, appId: "app" }, host: `host${n}` } as unknown as Target
    return { outcome, result: null, target, startedAt, kind: "first", dueAt: startedAt, span: null }
  }
  const lanes = Array.from({ length: 10 }, lane)
  for (const [n, one] of lanes.entries()) guard.ended(one, tried(n, TIMEOUT), START)
  const since = clock.now()
  clock.advance(15_000)
  expect(began).toEqual([since])
  /** Starts a request as a lane does; its turn is noted if it has to wait for one. */
  const turns: string[] = []
  const ask = (name: string, one: LaneState): void => {
    const start = () => {
      if (!guard.mayStart(one, start)) return
      guard.started()
      turns.push(name)
    }
    start()
  }
  return { clock, guard, lane, lanes, tried, turns, ask, ended }
}

test("one probe a second, of the lanes in turn", () => {
  const { clock, lanes, turns, ask } = start()
  for (const [n, one] of lanes.slice(0, 4).entries()) ask(`${n}`, one)
  expect(turns).toEqual(["0"])
  clock.advance(999)
  expect(turns).toEqual(["0"])
  clock.advance(1)
  expect(turns).toEqual(["0", "1"])
  clock.advance(1000)
  clock.advance(1000)
  expect(turns).toEqual(["0", "1", "2", "3"])
})

test("a lane that was not tried since the last answer goes first", () => {
  const { clock, lane, lanes, turns, ask } = start()
  for (const [n, one] of lanes.slice(0, 3).entries()) ask(`${n}`, one)
  ask("untried", lane())
  clock.advance(1000)
  expect(turns).toEqual(["0", "untried"])
})

test("ten probes are in flight at most; the end of one lets the next start", async () => {
  const { clock, guard, lane, lanes, tried, turns, ask } = start()
  for (const [n, one] of [...lanes, lane(), lane()].entries()) ask(`${n}`, one)
  for (let n = 0; n < 20; n++) clock.advance(1000)
  expect(turns).toHaveLength(10)
  expect(guard.ended(lanes[0]!, tried(0, TIMEOUT), { ...START, isProbe: true })).toBe(false)
  await setImmediate()
  expect(turns).toHaveLength(11)
})

test("a lane that has nothing to send any more passes its turn on", () => {
  const { clock, guard, lanes, turns, ask } = start()
  ask("0", lanes[0]!)
  guard.mayStart(lanes[1]!, () => turns.push("nothing to send"))
  ask("2", lanes[2]!)
  clock.advance(1000)
  expect(turns).toEqual(["0", "nothing to send", "2"])
})

test("an answer ends the outage: it counts, and all lanes go on", async () => {
  const { guard, lanes, tried, turns, ask, ended } = start()
  for (const [n, one] of lanes.entries()) ask(`${n}`, one)
  expect(guard.ended(lanes[1]!, tried(1, TIMEOUT), START)).toBe(false)
  expect(guard.since).not.toBe(null)
  expect(guard.ended(lanes[0]!, tried(0, OK), { ...START, isProbe: true })).toBe(true)
  expect(guard.since).toBe(null)
  expect(ended).toMatchObject([{ attempts: 1, isAnswered: true }])
  await setImmediate()
  expect(turns).toHaveLength(10)
})

test("an answer that breaks off ends the outage too, and counts", () => {
  const { guard, lanes, tried } = start()
  const brokenOff: Outcome = { kind: "failure", cause: "invalid_response" }
  expect(guard.ended(lanes[0]!, tried(0, brokenOff), START)).toBe(true)
  expect(guard.since).toBe(null)
})

test("requests that were in flight when another endpoint answered are no evidence", () => {
  const clock = new TestClock()
  const began: number[] = []
  const guard = new OwnOutage(clock, OUTAGE_DEFAULTS, {
    began: (since) => void began.push(since),
    ended() {},
  })
  const lanes = Array.from({ length: 11 }, () => new LaneState("app", new ApplicationRates(), 1, Math.random))
  const tried = (n: number, outcome: Outcome): Tried => {
    const target = { endpoint: { id: `ep${n}`, appId: "app" }, host: `host${n}` } as unknown as Target
    const startedAt = clock.now()
    return { outcome, result: null, target, startedAt, kind: "first", dueAt: startedAt, span: null }
  }
  const silence = (before: boolean) => {
    const starts = lanes.map(() => guard.started())
    if (before) guard.ended(lanes[10]!, tried(10, OK), starts[10]!)
    clock.advance(30_000)
    for (let n = 0; n < 10; n++) guard.ended(lanes[n]!, tried(n, TIMEOUT), starts[n]!)
    clock.advance(15_000)
    return began.length
  }
  expect(silence(true)).toBe(0)
  expect(silence(false)).toBe(1)
})
