import { expect, test } from "vitest"
import { TestClock } from "../../test/support/clock.ts"
import { Load } from "./load.ts"
import { Slots } from "./slots.ts"

/** A process with so many requests under way, whose answers took so long. */
function start(taken: number, isBusy: boolean, answerMs: number): Load {
  const clock = new TestClock()
  clock.isBusy = isBusy
  const slots = new Slots(2048, clock)
  for (let i = 0; i < taken; i++) slots.take(0, 0, () => {})
  const load = new Load(clock, slots)
  for (let i = 0; i < 1000; i++) load.mostAfter(answerMs, 32)
  return load
}

test.each<[number, boolean, number, number, number, string]>([
  [256, true, 10, 10, 2, "a busy process has enough under way: a lane grows no farther than two"],
  [255, true, 10, 10, 32, "there are too few to keep it busy: all that the endpoint allows"],
  [256, false, 10, 10, 32, "it has time left"],
  [256, true, 10, 200, 32, "the answer took much longer than others do"],
  [256, true, 10, 199, 2, "and not when it was quick all the same"],
  [256, true, 100, 250, 2, "nor when they all take long, since they wait in this process"],
])("%i under way, busy %s, answers in %i ms, one in %i: at most %i, since %s", (taken, isBusy, othersMs, tookMs, most) => {
  expect(start(taken, isBusy, othersMs).mostAfter(tookMs, 32)).toBe(most)
})

test("what the endpoint allows is never exceeded", () => {
  expect(start(256, true, 10).mostAfter(10, 1)).toBe(1)
})
