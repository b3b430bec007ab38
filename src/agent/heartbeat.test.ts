import { expect, test } from "vitest"
import { TestClock } from "../../test/support/clock.ts"
import { Heartbeat } from "./heartbeat.ts"

test("it pings every 20 s, and finds a silence of 45 s, to the millisecond", () => {
  const clock = new TestClock()
  const seen: string[] = []
  const heartbeat = new Heartbeat(clock, { ping: () => seen.push("ping"), silent: () => seen.push("silent") })
  for (const ms of [3000, 41_000, 44_999]) {
    clock.advance(ms)
    heartbeat.heard()
  }
  expect(seen).toEqual(["ping", "ping", "ping", "ping"])
  clock.advance(44_999)
  expect(seen.filter((one) => one === "silent")).toEqual([])
  clock.advance(1)
  expect(seen.at(-1)).toBe("silent")
  heartbeat.stop()
  expect(clock.timers).toBe(0)
})
