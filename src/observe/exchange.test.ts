import { pino } from "pino"
import { expect, onTestFinished, test, vi } from "vitest"
import { type Note, noBulletin } from "./bulletin.ts"
import { EventBus } from "./events.ts"
import { EventExchange } from "./exchange.ts"

test("others are told that somebody listens for as long as somebody does", () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const notes: Note[] = []
  const bus = new EventBus(pino({ level: "silent" }))
  const exchange = new EventExchange(bus, { ...noBulletin, post: (note) => void notes.push(note) })
  onTestFinished(() => exchange.close())
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
