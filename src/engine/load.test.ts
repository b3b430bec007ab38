import { expect, test } from "vitest"
import { TestClock } from "../../test/support/clock.ts"
import { Load } from "./load.ts"
import { Slots } from "./slots.ts"

/** A process with this many requests in flight. */
function start(taken: number, isBusy = true, busyLanes = 100) {
  const clock = new TestClock()
  clock.isBusy = isBusy
  const slots = new Slots(2048, clock)
  const places = Array.from({ length: taken }, () => slots.take(0, 0, false, () => {})!)
  const load = new Load(clock, slots, () => busyLanes)
  /** After many others that took so long. */
  const mostAfter = (tookMs: number, othersMs: number, allowed = 32) => {
    for (let i = 0; i < 1000; i++) load.mostAfter(othersMs, allowed)
    return load.mostAfter(tookMs, allowed)
  }
  return { clock, slots, places, load, mostAfter }
}

test.each<[number, boolean, number, number, number, string]>([
  [256, true, 10, 10, 2, "a busy process has enough requests in flight: a lane grows no farther than two"],
  [255, true, 10, 10, 32, "there are too few to keep it busy: all that the endpoint allows"],
  [256, false, 10, 10, 32, "it has time left"],
  [256, true, 10, 100, 32, "the answer took much longer than others do"],
  [256, true, 10, 99, 2, "and not when it was quick all the same"],
  [256, true, 50, 140, 2, "nor when they all take long, since they wait in this process"],
])("%i in flight, busy %s, answers in %i ms, one in %i: at most %i, since %s", (taken, isBusy, othersMs, tookMs, most) => {
  expect(start(taken, isBusy).mostAfter(tookMs, othersMs)).toBe(most)
})

test.each([
  [999, 2],
  [1999, 2],
  [2000, 32],
])("requests that have been in flight for %i ms are not counted once they hang: at most %i", (forMs, most) => {
  const { clock, mostAfter } = start(256)
  clock.advance(forMs)
  expect(mostAfter(10, 10)).toBe(most)
})

test("requests that have just ended leave no room: lanes send in bursts", () => {
  const { clock, slots, places, mostAfter } = start(256)
  for (const place of places) slots.release(place)
  clock.advance(1999)
  expect(mostAfter(10, 10)).toBe(2)
  clock.advance(1000)
  expect(mostAfter(10, 10)).toBe(32)
})

test.each([
  [9, 32, "the receivers take longer than the store"],
  [10, 2, "more at once would wait for the store"],
])("with time left, answers in 10 ms and outcomes written in %i ms: at most %i, since %s", (writtenMs, most) => {
  const { load, mostAfter } = start(256, false)
  load.wrote(writtenMs)
  expect(mostAfter(10, 10)).toBe(most)
})

test("the first response of a process does not count as slow", () => {
  expect(start(256).load.mostAfter(1000, 32)).toBe(2)
})

test.each([
  [1, 64],
  [4, 64],
  [8, 32],
  [127, 2],
  [129, 2],
])("where %i lanes are busy, each has its share of what keeps the process busy: at most %i", (busyLanes, most) => {
  expect(start(256, true, busyLanes).mostAfter(10, 10, 64)).toBe(most)
})

test("the endpoint's own limit is never exceeded", () => {
  expect(start(256).mostAfter(10, 10, 1)).toBe(1)
})

test("an outcome that could not be written for an hour is soon forgotten", () => {
  const { load, mostAfter } = start(256, false)
  load.wrote(1)
  load.wrote(3_600_000)
  for (let i = 0; i < 50; i++) load.wrote(1)
  expect(mostAfter(10, 10)).toBe(32)
})
