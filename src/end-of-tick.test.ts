import { expect, onTestFinished, test } from "vitest"
import { EndOfTick } from "./end-of-tick.ts"

const nextTick = () => new Promise((resolve) => setImmediate(resolve))

test("items are worked on at the end of their tick, in their order, and those that they add in the next", async () => {
  const done: number[] = []
  const end = new EndOfTick<number>((one) => {
    done.push(one)
    if (one === 2) end.add(4)
  })
  for (const one of [1, 2, 3]) end.add(one)
  await Promise.resolve()
  expect(done).toEqual([])
  await nextTick()
  expect(done).toEqual([1, 2, 3])
  await nextTick()
  expect(done).toEqual([1, 2, 3, 4])
})

test("an item that is added twice in a tick is worked on once, and again when it is added in the next", async () => {
  const done: string[] = []
  const end = new EndOfTick<string>((item) => done.push(item))
  for (const item of ["a", "b", "a"]) end.add(item)
  await nextTick()
  expect(done).toEqual(["a", "b"])
  end.add("a")
  await nextTick()
  expect(done).toEqual(["a", "b", "a"])
})

test("an item that fails does not stop the others", async () => {
  const done: number[] = []
  const failures: Error[] = []
  const others = process.listeners("uncaughtException")
  process.removeAllListeners("uncaughtException").on("uncaughtException", (error) => failures.push(error))
  onTestFinished(() => {
    process.removeAllListeners("uncaughtException")
    for (const other of others) process.on("uncaughtException", other)
  })
  const end = new EndOfTick<number>((one) => {
    if (one === 2) throw new Error("two")
    done.push(one)
  })
  for (const one of [1, 2, 3]) end.add(one)
  await expect.poll(() => done).toEqual([1, 3])
  expect(failures.map(({ message }) => message)).toEqual(["two"])
})
