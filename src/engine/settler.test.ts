/** How many calls the outcomes of one moment take, and who waits for whom. */
import { expect, test } from "vitest"
import { TestClock } from "../../test/support/clock.ts"
import { PosthornError } from "../core/errors.ts"
import { createLogger } from "../observe/log.ts"
import type { Settlement, SettleResult, Store } from "../store/store.ts"
import { Settler } from "./settler.ts"

function start(settlesTogether: boolean, settle: (seqs: number[]) => Promise<SettleResult[]>) {
  const store = {
    settlesTogether,
    settle: (settlements: readonly Settlement[]) => settle(settlements.map(({ seq }) => seq)),
  } as unknown as Store
  const clock = new TestClock()
  const settler = new Settler(store, clock, () => 0.5, createLogger("silent"))
  const ask = (seq: number, status = "delivered") =>
    new Promise<SettleResult>((written, refused) => {
      const settlement = { seq, change: { status } } as Settlement
      settler.settle({ settlement, failures: 0, written, refused })
    })
  return { settler, clock, ask }
}

test("where the store writes them together, the outcomes of one turn are one call, and a flush comes before the turn ends", async () => {
  const calls: number[][] = []
  const { settler, ask } = start(true, async (seqs) => {
    calls.push(seqs)
    return seqs.map(() => "applied")
  })
  const first = [ask(1), ask(2)]
  expect(calls).toEqual([])
  settler.flush()
  expect(calls).toEqual([[1, 2]])
  const then = [ask(3), Promise.resolve().then(() => ask(4))]
  expect(await Promise.all([...first, ...then])).toEqual(Array(4).fill("applied"))
  expect(calls).toEqual([
    [1, 2],
    [3, 4],
  ])
})

test("while two calls are not answered outcomes are gathered, until one is, or there are enough for a call", async () => {
  const turn = () => new Promise((resolve) => setImmediate(resolve))
  const calls: { readonly seqs: number[]; answer(): void }[] = []
  const { ask } = start(true, (seqs) => {
    const { promise, resolve } = Promise.withResolvers<SettleResult[]>()
    calls.push({ seqs, answer: () => resolve(seqs.map(() => "applied")) })
    return promise
  })
  const seqs = () => calls.map(({ seqs }) => seqs)
  for (const seq of [1, 2, 3, 4]) {
    void ask(seq)
    await turn()
  }
  expect(seqs()).toEqual([[1], [2]])
  calls[0]!.answer()
  await turn()
  await turn()
  expect(seqs()).toEqual([[1], [2], [3, 4]])
  const many = Array.from({ length: 64 }, (_, i) => 5 + i)
  for (const seq of many) void ask(seq)
  expect(seqs()).toEqual([[1], [2], [3, 4], many])
  for (const { answer } of calls) answer()
  await turn()
  void ask(99)
  await turn()
  expect(seqs().at(-1)).toEqual([99])
})

test("a failure waits for no call that is not answered, and takes along what was gathered", async () => {
  const turn = () => new Promise((resolve) => setImmediate(resolve))
  const calls: number[][] = []
  const { ask } = start(true, (seqs) => {
    calls.push(seqs)
    return new Promise(() => {})
  })
  for (const [seq, status] of [
    [1, "delivered"],
    [2, "delivered"],
    [3, "delivered"],
    [4, "failed"],
    [5, "dead"],
  ] as const) {
    void ask(seq, status)
    await turn()
  }
  expect(calls).toEqual([[1], [2], [3, 4], [5]])
})

test("outcomes that were gathered beside calls that fail are written all the same", async () => {
  const turn = () => new Promise((resolve) => setImmediate(resolve))
  const failing: (() => void)[] = []
  const written: number[] = []
  const { ask } = start(true, (seqs) => {
    if (failing.length === 2) return Promise.resolve(seqs.map(() => "applied"))
    return new Promise((_resolve, reject) => failing.push(() => reject(new Error("the disk is full"))))
  })
  for (const seq of [1, 2, 3]) {
    void ask(seq).then(() => written.push(seq))
    await turn()
  }
  for (const fail of failing) fail()
  for (let i = 0; i < 3; i++) await turn()
  expect(written).toEqual([3])
})

test("where it does not, an outcome waits for no other, and fails with no other", async () => {
  const { ask } = start(false, async ([seq]) => {
    if (seq === 1) throw new Error("its lane is held by somebody's transaction")
    return ["applied"]
  })
  let isWritten = false
  void ask(1).then(() => {
    isWritten = true
  })
  expect(await ask(2)).toBe("applied")
  expect(isWritten).toBe(false)
})

test.each([
  true,
  false,
])("outcomes that could not be written in one moment wait as long as one alone would (together: %s)", async (together) => {
  let fails = true
  const { clock, ask } = start(together, async (seqs) => {
    if (fails) throw new Error("the store is busy")
    return seqs.map(() => "applied")
  })
  const asked = Array.from({ length: 50 }, (_, seq) => ask(seq))
  await new Promise((resolve) => setImmediate(resolve))
  await new Promise((resolve) => setImmediate(resolve))
  fails = false
  clock.advance(50)
  expect(await Promise.all(asked)).toEqual(Array(50).fill("applied"))
})

test("where the store has ended all are told, though the end of one goes wrong", async () => {
  const { settler } = start(true, async () => {
    throw new PosthornError("store_failed", "the disk is gone")
  })
  const refused: number[] = []
  for (const seq of [1, 2, 3])
    settler.settle({
      settlement: { seq } as Settlement,
      failures: 0,
      written: () => {},
      refused: () => {
        refused.push(seq)
        if (seq === 2) throw new Error("a mistake of ours")
      },
    })
  settler.flush()
  await new Promise((resolve) => setImmediate(resolve))
  expect(refused).toEqual([1, 2, 3])
})

test("one whose end goes wrong is written once, and those behind it are told all the same", async () => {
  const calls: number[][] = []
  const { settler } = start(true, async (seqs) => {
    calls.push(seqs)
    return seqs.map(() => "applied")
  })
  const told: number[] = []
  const refused: unknown[] = []
  for (const seq of [1, 2, 3])
    settler.settle({
      settlement: { seq } as Settlement,
      failures: 0,
      written: () => {
        told.push(seq)
        if (seq === 2) throw new Error("a mistake of ours")
      },
      refused: (error) => void refused.push(error),
    })
  settler.flush()
  await new Promise((resolve) => setImmediate(resolve))
  expect({ calls, told, refused }).toEqual({ calls: [[1, 2, 3]], told: [1, 2, 3], refused: [] })
})
