import { expect, test } from "vitest"
import { TestClock } from "../../test/support/clock.ts"
import { Alarm } from "./alarm.ts"

function start() {
  const clock = new TestClock()
  const rung: number[] = []
  const begin = clock.now()
  const alarm = new Alarm(clock, () => void rung.push(clock.now() - begin))
  return { clock, alarm, rung, at: (ms: number) => begin + ms }
}

test("rings at the earliest of the times that it was set for", () => {
  const { clock, alarm, rung, at } = start()
  alarm.setBy(at(30), null, at(10))
  alarm.setBy(at(20))
  clock.advance(100)
  expect(rung).toEqual([10])
})

test("rings again after it was set again, and not after it was cancelled", () => {
  const { clock, alarm, rung, at } = start()
  alarm.setBy(at(10))
  clock.advance(10)
  alarm.setBy(at(20))
  clock.advance(10)
  alarm.setBy(at(30))
  alarm.cancel()
  clock.advance(100)
  alarm.setBy(null)
  expect(rung).toEqual([10, 20])
})
