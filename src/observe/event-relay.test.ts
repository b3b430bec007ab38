import { pino } from "pino"
import { expect, onTestFinished, test, vi } from "vitest"
import { EventRelay } from "./event-relay.ts"
import { type DeliveredEvent, EventBus } from "./events.ts"
import { type Note, noProcessChannel } from "./process-channel.ts"

test("others are told that somebody listens for as long as somebody does", () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const notes: Note[] = []
  const bus = new EventBus(pino({ level: "silent" }))
  const eventRelay = new EventRelay(bus, { ...noProcessChannel, post: (note) => void notes.push(note) })
  onTestFinished(() => eventRelay.close())
  const said = () => notes.splice(0).filter(({ kind }) => kind === "listening").length
  vi.advanceTimersByTime(60_000)
  expect(said()).toBe(0)
  const stops = [bus.on("delivery.dead", () => {}), bus.on("gateway:webhooks", () => {})]
  expect(said()).toBe(1)
  stops[0]!()
  vi.advanceTimersByTime(21_000)
  expect(said()).toBe(3)
  stops[1]!()
  vi.advanceTimersByTime(60_000)
  expect(said()).toBe(0)
  bus.on("delivery.dead", () => {})
  expect(said()).toBe(1)
})

test("who has started passes events on until it knows whether somebody listens, and hears at once from who does", () => {
  const notes: Note[] = []
  const at = vi.spyOn(performance, "now").mockReturnValue(0)
  onTestFinished(() => at.mockRestore())
  const start = () => {
    const bus = new EventBus(pino({ level: "silent" }))
    const eventRelay = new EventRelay(bus, { ...noProcessChannel, post: (note) => void notes.push(note) })
    onTestFinished(() => eventRelay.close())
    eventRelay.start()
    return { bus, eventRelay }
  }
  const kinds = () => notes.splice(0).map(({ kind }) => kind)
  const event = { type: "delivery.delivered" } as DeliveredEvent
  const passesOn = (bus: EventBus) => {
    bus.publish(event)
    return kinds().includes("events")
  }
  const { bus, eventRelay } = start()
  expect(kinds()).toEqual(["asking"])
  at.mockReturnValue(1999)
  expect(passesOn(bus)).toBe(true)
  at.mockReturnValue(2000)
  expect(passesOn(bus)).toBe(false)

  const elsewhere = start()
  elsewhere.eventRelay.hear({ kind: "asking" })
  expect(kinds()).toEqual(["asking"])
  elsewhere.bus.on("delivery.dead", () => {})
  kinds()
  elsewhere.eventRelay.hear({ kind: "asking" })
  expect(kinds()).toEqual(["listening"])
  eventRelay.hear({ kind: "listening" })
  expect(passesOn(bus)).toBe(true)
})
