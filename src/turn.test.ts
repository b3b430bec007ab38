import { expect, onTestFinished, test } from "vitest"
import { EndOfTurn } from "./turn.ts"

const nextTurn = () => new Promise((resolve) => setImmediate(resolve))

test("what was added in a turn is done at its end, in its order, and what that adds in the next", async () => {
  const done: number[] = []
  const end = new EndOfTurn<number>((one) => {
    done.push(one)
    if (one === 2) end.add(4)
  })
  for (const one of [1, 2, 3]) end.add(one)
  await Promise.resolve()
  expect(done).toEqual([])
  await nextTurn()
  expect(done).toEqual([1, 2, 3])
  await nextTurn()
  expect(done).toEqual([1, 2, 3, 4])
})

test("one that fails keeps none of the others from being done", async () => {
  const done: number[] = []
  const failures: Error[] = []
  const others = process.listeners("uncaughtException")
  process.removeAllListeners("uncaughtException").on("uncaughtException", (error) => failures.push(error))
  onTestFinished(() => {
    process.removeAllListeners("uncaughtException")
    for (const other of others) process.on("uncaughtException", other)
  })
  const end = new EndOfTurn<number>((one) => {
    if (one === 2) throw new Error("two")
    done.push(one)
  })
  for (const one of [1, 2, 3]) end.add(one)
  await expect.poll(() => done).toEqual([1, 3])
  expect(failures.map(({ message }) => message)).toEqual(["two"])
})
