/** Outcomes are kept until they are written, and each listener is told once. */
import { expect, test } from "vitest"
import { TestClock } from "../../test/support/clock.ts"
import { PosthornError } from "../core/errors.ts"
import { createLogger } from "../observe/log.ts"
import type { LaneSession, Settlement, SettleResult } from "../store/store.ts"
import type { Tried } from "./attempt.ts"
import { PendingSettlement, type SettlementListener } from "./pending-settlement.ts"
import { SettlementQueue } from "./settlement-queue.ts"
import type { Slot } from "./slots.ts"

const turn = () => new Promise((resolve) => setImmediate(resolve))

/** `write` answers for the outcome with that number, or throws. */
function start(write: (seq: number) => SettleResult) {
  const clock = new TestClock()
  const queue = new SettlementQueue(clock, () => 0.5, createLogger("silent"))
  const calls: number[] = []
  const session = {
    async settleIfClaimed([outcome]: readonly Settlement[]) {
      const { seq } = outcome!.delivery
      calls.push(seq)
      return [write(seq)]
    },
  } as unknown as LaneSession
  const told: [number, string][] = []
  /** Its listener throws when it is told of one of `throwsAt`. */
  const settle = (seq: number, throwsAt: readonly number[] = []) => {
    const tell = (result: string) => {
      told.push([seq, result])
      if (throwsAt.includes(seq)) throw new Error("a mistake of ours")
    }
    const listener: SettlementListener = {
      written: (_, result) => tell(result),
      refused: (_, error) => tell((error as Error).message),
    }
    const settlement = { delivery: { seq } } as Settlement
    queue.settle(new PendingSettlement(listener, session, settlement, {} as Tried, {} as Slot, 0))
  }
  return { queue, clock, calls, told, settle }
}

test("an outcome that could not be written is kept, and tried again after waits that grow up to a limit", async () => {
  let fails = true
  const { clock, calls, told, settle } = start(() => {
    if (fails) throw new Error("the disk is full")
    return "applied"
  })
  settle(1)
  await turn()
  // Three quarters of 50 ms, doubled each time up to 2 s: the chance is always one half.
  for (const waitMs of [37.5, 75, 150, 300, 600, 1200, 1500, 1500]) {
    const before = calls.length
    clock.advance(waitMs - 1)
    await turn()
    expect(calls).toHaveLength(before)
    clock.advance(1)
    await turn()
    expect(calls).toHaveLength(before + 1)
  }
  expect(told).toEqual([])
  fails = false
  clock.advance(1500)
  await turn()
  expect(told).toEqual([[1, "applied"]])
})

test("an outcome whose delivery somebody holds is tried again", async () => {
  const results: SettleResult[] = ["busy", "busy", "applied"]
  const { clock, told, settle } = start(() => results.shift()!)
  settle(1)
  await turn()
  expect(told).toEqual([])
  for (const waitMs of [38, 75]) {
    clock.advance(waitMs)
    await turn()
  }
  expect(told).toEqual([[1, "applied"]])
})

test.each<SettleResult>([
  "applied",
  "superseded",
  "stale",
])("a result of %s ends the outcome", async (result) => {
  const { clock, calls, told, settle } = start(() => result)
  settle(1)
  await turn()
  clock.advance(10_000)
  await turn()
  expect({ calls, told }).toEqual({ calls: [1], told: [[1, result]] })
})

test("an outcome waits for no other, and fails with no other", async () => {
  const { told, settle } = start((seq) => {
    if (seq === 1) throw new Error("its lane is held by somebody's transaction")
    return "applied"
  })
  settle(1)
  settle(2)
  await turn()
  expect(told).toEqual([[2, "applied"]])
})

test("outcomes that could not be written at one moment wait as long as one alone would", async () => {
  let fails = true
  const { clock, told, settle } = start(() => {
    if (fails) throw new Error("the store is busy")
    return "applied"
  })
  for (let seq = 0; seq < 50; seq++) settle(seq)
  await turn()
  fails = false
  clock.advance(38)
  await turn()
  expect(told).toHaveLength(50)
})

test.each([
  "store_failed",
  "closed",
] as const)("a store that has ended (%s) refuses every outcome, though a listener throws", async (code) => {
  const { clock, calls, told, settle } = start(() => {
    throw new PosthornError(code, "the disk is gone")
  })
  for (const seq of [1, 2, 3]) settle(seq, [2])
  await turn()
  clock.advance(10_000)
  await turn()
  expect(calls).toEqual([1, 2, 3])
  expect(told).toEqual([1, 2, 3].map((seq) => [seq, "the disk is gone"]))
})

test("an outcome whose listener throws is written once, and the others' listeners are told", async () => {
  const { clock, calls, told, settle } = start(() => "applied")
  for (const seq of [1, 2, 3]) settle(seq, [2])
  await turn()
  clock.advance(10_000)
  await turn()
  expect(calls).toEqual([1, 2, 3])
  expect(told).toEqual([1, 2, 3].map((seq) => [seq, "applied"]))
})

test("after giveUp, waiting outcomes are written once more, and refused if that fails", async () => {
  let isFull = true
  const { queue, clock, calls, told, settle } = start((seq) => {
    if (isFull || seq === 2) throw new Error("the disk is full")
    return "applied"
  })
  settle(1)
  settle(2)
  await turn()
  isFull = false
  queue.giveUp()
  await turn()
  settle(2)
  await turn()
  clock.advance(10_000)
  await turn()
  expect(calls).toEqual([1, 2, 1, 2, 2])
  expect(told).toEqual([
    [1, "applied"],
    [2, "the disk is full"],
    [2, "the disk is full"],
  ])
})
