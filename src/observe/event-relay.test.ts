import { pino } from "pino"
import { expect, onTestFinished, test, vi } from "vitest"
import { settledEvent } from "../../test/support/events.ts"
import { EventBus } from "./event-bus.ts"
import { EventRelay } from "./event-relay.ts"
import { type Note, noProcessChannel } from "./process-channel.ts"

function join() {
  const notes: Note[] = []
  const bus = new EventBus(pino({ level: "silent" }))
  const relay = new EventRelay(bus, { ...noProcessChannel, post: (note) => void notes.push(note) })
  onTestFinished(() => relay.close())
  const posted = () => notes.splice(0).map(({ kind }) => kind)
  const passesOn = () => {
    relay.handle(settledEvent())
    return posted().includes("events")
  }
  return { bus, relay, posted, passesOn }
}

test("a process says that it listens for as long as it has a listener", () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const { bus, posted } = join()
  vi.advanceTimersByTime(60_000)
  expect(posted()).toEqual([])
  const stops = [bus.on("delivery.dead", () => {}), bus.on("gateway:webhooks", () => {})]
  expect(posted()).toEqual(["listening"])
  stops[0]!()
  vi.advanceTimersByTime(21_000)
  expect(posted()).toEqual(["listening", "listening", "listening"])
  stops[1]!()
  vi.advanceTimersByTime(60_000)
  expect(posted()).toEqual([])
  bus.on("delivery.dead", () => {})
  expect(posted()).toEqual(["listening"])
})

test("a process that starts passes events on for two seconds, and then only if another one listens", () => {
  const at = vi.spyOn(performance, "now").mockReturnValue(0)
  onTestFinished(() => at.mockRestore())
  const { relay, posted, passesOn } = join()
  relay.start()
  expect(posted()).toEqual(["asking"])
  at.mockReturnValue(1999)
  expect(passesOn()).toBe(true)
  at.mockReturnValue(2000)
  expect(passesOn()).toBe(false)
  relay.hear({ kind: "listening" })
  expect(passesOn()).toBe(true)
})

test("a process that is asked answers only if it has a listener", () => {
  const { bus, relay, posted } = join()
  relay.hear({ kind: "asking" })
  expect(posted()).toEqual([])
  bus.on("delivery.dead", () => {})
  posted()
  relay.hear({ kind: "asking" })
  expect(posted()).toEqual(["listening"])
})
