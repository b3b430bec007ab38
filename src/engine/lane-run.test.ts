/** What a run asks of the store when it does not send. */
import { expect, test } from "vitest"
import { TestClock } from "../../test/support/clock.ts"
import { createLogger } from "../observe/log.ts"
import type { ClaimedDelivery, LaneFetch, Settlement } from "../store/store.ts"
import type { Tried } from "./attempt.ts"
import { type Crew, PollBudget, Uptime } from "./crew.ts"
import { Ending } from "./ending.ts"
import { LaneRun } from "./lane-run.ts"
import { LaneState } from "./lane-state.ts"
import { ApplicationRates } from "./limits.ts"
import type { Slot } from "./slots.ts"

const delivery = (seq: number) =>
  ({ seq, id: "dlv", messageId: "msg", priority: "normal", attemptCount: 0 }) as ClaimedDelivery
const ONE = delivery(1)

interface Course {
  readonly mayRest?: boolean
  /** What happens while the first fetch is under way. */
  meanwhile?(run: LaneRun): void
}

/** A run of an open lane that may not send yet: what it tells the engine first, and what was asked by then, in order. */
async function start(
  deliveries: readonly ClaimedDelivery[],
  { mayRest = true, meanwhile = () => {} }: Course = {},
) {
  const asked: string[] = []
  const clock = new TestClock()
  let fetches = 0
  let stopping = false
  let nextDueAt: number | null = null
  const told = Promise.withResolvers<string>()
  const work = { endpoint: null, lost: false, held: null, deleted: false, nextDueAt: null, open: true }
  const crew = {
    store: {
      fetch: async ([{ endpointId }]: [LaneFetch]) => {
        if (++fetches > 1) return [{ ...work, endpointId, deliveries: [] }]
        meanwhile(run)
        return [{ ...work, endpointId, deliveries }]
      },
      giveBack: async () => void asked.push("giveBack"),
      closeLane: async () => void asked.push("closeLane"),
    },
    settler: { flush: () => void asked.push("flush") },
    slots: { release: () => void asked.push("release") },
    load: { wrote: () => {} },
    reporter: {
      settled: () => {
        throw new Error("a mistake of ours")
      },
    },
    clock,
    budget: new PollBudget(null),
    uptime: new Uptime(),
    logger: createLogger("silent"),
    laneConcurrency: 1,
    stopping: () => stopping,
    holds: () => false,
    mayRest: () => mayRest,
  } as unknown as Crew
  const claim = { endpointId: "ep", appId: "app", token: 1 }
  const run = new LaneRun(crew, claim, new LaneState(claim.endpointId, new ApplicationRates()), {
    rests: (rests) => told.resolve(rests ? "rests" : "works"),
    finished: (dueAt) => {
      nextDueAt = dueAt
      told.resolve("finished")
    },
  })
  run.start()
  await Promise.resolve()
  const stop = () => {
    stopping = true
    run.recall()
  }
  return { run, asked, clock, stop, told: told.promise, fetches: () => fetches, nextDueAt: () => nextDueAt }
}

test("a run with nothing to do keeps its lane open and rests", async () => {
  const { told, asked } = await start([])
  expect(await told).toBe("rests")
  expect(asked).not.toContain("closeLane")
})

test("where as many rest as may, it closes its lane and gives it back at once", async () => {
  const { told, asked } = await start([], { mayRest: false })
  expect(await told).toBe("finished")
  expect(asked).toEqual(["flush", "flush", "closeLane"])
})

test("what is given back comes behind what was settled before, so that a hold is known by then", async () => {
  const { run, asked } = await start([ONE])
  asked.length = 0
  run.recall()
  expect(asked.slice(0, 2)).toEqual(["flush", "giveBack"])
})

test.each([
  ["high", 2],
  ["normal", 1],
] as const)("one of %s priority that is sent during a fetch: %i fetches, though enough of normal priority is in hand", async (priority, count) => {
  const { fetches } = await start([1, 2, 3].map(delivery), { meanwhile: (run) => run.wake(priority) })
  await new Promise((resolve) => setImmediate(resolve))
  expect(fetches()).toBe(count)
})

test("what came due while the hand was full is due when the lane is given back", async () => {
  const { run, clock, stop, told, fetches, nextDueAt } = await start([1, 2, 3, 4, 5, 6].map(delivery))
  await new Promise((resolve) => setImmediate(resolve))
  run.wake("high")
  stop()
  expect(await told).toBe("finished")
  expect(fetches()).toBe(1)
  expect(nextDueAt()).toBe(clock.now())
})

/** The store's answers, and whatever follows from them. */
const settled = () => new Promise((resolve) => setImmediate(resolve))

test("a lane is given back ten seconds after it was last of use, however often it was woken before", async () => {
  const { run, clock, told, asked } = await start([])
  await told
  for (let i = 0; i < 3; i++) {
    clock.advance(6000)
    run.wake()
    await settled()
  }
  clock.advance(9999)
  expect(asked).not.toContain("closeLane")
  clock.advance(1)
  expect(asked).toContain("closeLane")
})

test("what comes due is looked for at its time, also when a sooner one is told of, and once for each", async () => {
  const { run, clock, told, fetches } = await start([])
  await told
  const now = clock.now()
  const after = async (ms: number) => {
    clock.advance(ms)
    await settled()
    return fetches()
  }
  run.wakeAt(now + 3000)
  run.wakeAt(now + 1000)
  run.wakeAt(now + 2000)
  expect([await after(999), await after(1)]).toEqual([1, 2])
  run.wakeAt(now + 3000)
  expect([await after(1999), await after(1)]).toEqual([2, 3])
})

test("the place of one whose outcome is written is given back, though telling of it goes wrong", async () => {
  const { run, asked, told } = await start([])
  await told
  expect(() => run.written(endingOf(run), "applied")).toThrow("a mistake of ours")
  expect(asked).toContain("release")
})

test("the place of one whose outcome cannot be written is given back, and the lane with it", async () => {
  const { run, asked, told } = await start([])
  await told
  run.refused(endingOf(run), new Error("the store has ended"))
  await settled()
  expect(asked).toContain("release")
  expect(asked).toContain("closeLane")
})

function endingOf(run: LaneRun): Ending {
  const settlement = { change: { nextRetryAt: null }, attempt: null } as unknown as Settlement
  return new Ending(run, ONE, { result: null } as Tried, {} as Slot, settlement, 0)
}
