import { expect, test } from "vitest"
import { TestClock } from "../../test/support/clock.ts"
import type { Clock } from "../core/clock.ts"
import { Deadlines, type Limited } from "./deadlines.ts"

/** Requests by name, and when those that were late were told. */
function start() {
  const clock = new TestClock()
  const began = clock.now()
  const timers = new Set<object>()
  const counting: Clock = {
    now: () => clock.now(),
    wallNow: () => clock.wallNow(),
    hasTimeLeft: () => true,
    setTimer(delayMs, run) {
      const timer = clock.setTimer(delayMs, () => {
        timers.delete(timer)
        run()
      })
      timers.add(timer)
      return {
        cancel() {
          timers.delete(timer)
          timer.cancel()
        },
      }
    },
  }
  const deadlines = new Deadlines<Limited>(counting)
  const late: [string, number][] = []
  const add = (name: string, timeoutMs: number) => {
    const one = { timeoutMs, isLate: () => void late.push([name, clock.now() - began]) }
    deadlines.add(one)
    return one
  }
  return { clock, deadlines, late, add, timers }
}

test("each is late when its own time is over, whatever the others have", () => {
  const { clock, late, add } = start()
  add("first", 100)
  clock.advance(30)
  add("second", 100)
  add("short", 20)
  clock.advance(10)
  add("third", 100)
  clock.advance(1000)
  expect(late).toEqual([
    ["short", 50],
    ["first", 100],
    ["second", 130],
    ["third", 140],
  ])
})

test("one that has ended is never late, and those behind it are in their own time", () => {
  const { clock, deadlines, late, add } = start()
  const first = add("first", 100)
  clock.advance(30)
  add("second", 100)
  deadlines.delete(first)
  clock.advance(99)
  expect(late).toEqual([])
  clock.advance(1)
  expect(late).toEqual([["second", 130]])
})

test("there is one timer for those that have as much time, and none when none is left", () => {
  const { clock, deadlines, add, timers } = start()
  const many = Array.from({ length: 100 }, (_, i) => add(String(i), 100))
  expect(timers.size).toBe(1)
  const other = add("other", 50)
  expect(timers.size).toBe(2)
  for (const one of [...many, other]) deadlines.delete(one)
  expect(timers.size).toBe(0)
  add("late", 100)
  clock.advance(100)
  expect(timers.size).toBe(0)
})

test("one that begins when another is told that it is late has its own time", () => {
  const { clock, deadlines, late, add, timers } = start()
  deadlines.add({ timeoutMs: 100, isLate: () => void add("next", 100) })
  clock.advance(199)
  expect(late).toEqual([])
  clock.advance(1)
  expect(late).toEqual([["next", 200]])
  expect(timers.size).toBe(0)
})
