import { expect, test } from "vitest"
import { TestClock } from "../../test/support/clock.ts"
import { type Deadlined, Deadlines } from "./deadlines.ts"

/** Adds requests by name, and records when each deadline passed. */
function start() {
  const clock = new TestClock()
  const began = clock.elapsedMs()
  const deadlines = new Deadlines<Deadlined>(clock)
  const late: [string, number][] = []
  const add = (name: string, timeoutMs: number) => {
    const one = { timeoutMs, deadlinePassed: () => void late.push([name, clock.elapsedMs() - began]) }
    deadlines.add(one)
    return one
  }
  return { clock, deadlines, late, add }
}

test("each deadline passes at its own time, whatever the timeouts of the others", () => {
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

test("a request that has ended has no deadline any more, and those behind it keep theirs", () => {
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

test.each([999, -999, 3_600_000])("setting the wall clock by %i ms changes no deadline", (ms) => {
  const { clock, late, add } = start()
  add("first", 1000)
  clock.advance(990)
  add("second", 1000)
  clock.jumpWall(ms)
  clock.advance(999)
  expect(late).toEqual([["first", 1000]])
  clock.advance(1)
  expect(late).toEqual([
    ["first", 1000],
    ["second", 1990],
  ])
})

test("requests of the same timeout share one timer, and no timer is left without requests", () => {
  const { clock, deadlines, add } = start()
  const many = Array.from({ length: 100 }, (_, i) => add(String(i), 100))
  expect(clock.timers).toBe(1)
  const other = add("other", 50)
  expect(clock.timers).toBe(2)
  for (const one of [...many, other]) deadlines.delete(one)
  expect(clock.timers).toBe(0)
  add("late", 100)
  clock.advance(100)
  expect(clock.timers).toBe(0)
})

test("a request whose deadline passed is listed until it has ended", () => {
  const { clock, deadlines, add } = start()
  const [one, two] = [add("one", 100), add("two", 200)]
  clock.advance(100)
  expect(deadlines.all()).toEqual([one, two])
  deadlines.delete(one)
  expect(deadlines.all()).toEqual([two])
  deadlines.delete(two)
  expect(deadlines.all()).toEqual([])
})

test("a request that begins in the callback of another deadline has its own full time", () => {
  const { clock, deadlines, late, add } = start()
  const first = { timeoutMs: 100, deadlinePassed: () => void add("next", 100) }
  deadlines.add(first)
  clock.advance(199)
  expect(late).toEqual([])
  clock.advance(1)
  expect(late).toEqual([["next", 200]])
  expect(clock.timers).toBe(0)
})
