import { pino } from "pino"
import { expect, onTestFinished, test, vi } from "vitest"
import { settledEvent } from "../../test/support/events.ts"
import { EventBus } from "./event-bus.ts"
import { EventRelay } from "./event-relay.ts"
import { type Note, noProcessChannel, toNote } from "./process-channel.ts"
import { RelayPositions } from "./relay-positions.ts"

const SILENT = pino({ level: "silent" })

function join() {
  const notes: Note[] = []
  const bus = new EventBus(pino({ level: "silent" }))
  const relay = new EventRelay(bus, { ...noProcessChannel, post: (note) => void notes.push(note) }, () => 0)
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
  expect(posted()).toEqual(["asking", "events"])
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

/** Two processes on one channel. `lose` keeps notes of events from arriving. */
function pair() {
  const lost = { events: false }
  const heard: string[] = []
  const [one, other] = [new EventBus(SILENT), new EventBus(SILENT)]
  const relays: { readonly here: EventRelay; readonly there: EventRelay } = {
    here: new EventRelay(one, { ...noProcessChannel, post: (note) => carry(note, () => relays.there) }, () =>
      Date.now(),
    ),
    there: new EventRelay(
      other,
      { ...noProcessChannel, post: (note) => carry(note, () => relays.here) },
      () => Date.now(),
    ),
  }
  const carry = (note: Note, to: () => EventRelay) => {
    if (!("events" in note) || !lost.events) to().hear(note as never)
  }
  onTestFinished(() => [relays.here, relays.there].forEach((relay) => void relay.close()))
  other.onEvery((event) =>
    heard.push(event.type === "gap" ? `gap ${event.reason} ${event.count}` : event.type),
  )
  return { ...relays, lost, heard }
}

test("an event that is lost on the way is a gap before the next one", () => {
  const { here, lost, heard } = pair()
  here.handle(settledEvent({}, null))
  lost.events = true
  for (let n = 0; n < 3; n++) here.handle(settledEvent({}, null))
  lost.events = false
  here.handle(settledEvent({}, null))
  expect(heard).toEqual(["delivery.delivered", "gap relay 3", "delivery.delivered"])
})

test("an event that is lost, and is the last one, is a gap when its process says how far it is", () => {
  const { here, lost, heard } = pair()
  lost.events = true
  here.handle(settledEvent({}, null))
  lost.events = false
  at(10_000)
  here.hear({ kind: "listening" })
  expect(heard).toEqual(["gap relay 1"])
})

test("an event of a type that this version does not know is a gap, and is not passed to listeners", () => {
  const { there, heard } = pair()
  const [first, second] = [1, 2].map((n) => ({ relay_id: `0123456789ab-1-${n}`, at: 5 }))
  const strange = [
    { ...second, type: "delivery.lost" },
    { ...second, type: "delivery.dead\nevent: delivery.delivered" },
    { ...second, type: "gap", reason: "relay", from: "a", to: "b", count: 1 },
    { ...second, type: "gateway:webhooks" },
    { ...second, type: "delivery.dead", at: undefined },
    { ...second, type: "delivery.dead", last_error: { length: -1e9 } },
    { type: "relay.position" },
    null,
  ]
  const events = [
    { ...first, type: "delivery.dead", last_error: null },
    ...strange,
    { type: "relay.position", relay_id: second!.relay_id },
  ]
  there.hear(toNote({ kind: "events", events }) as never)
  expect(heard).toEqual(["delivery.dead", "gap relay 1"])
  expect(toNote({ kind: "events", events: strange })).toBe(null)
})

test("a late word of an earlier epoch is no news", () => {
  const positions = new RelayPositions()
  positions.event({ process: "a", epoch: 2, number: 3 }, 0)
  expect(positions.event({ process: "a", epoch: 1, number: 70 }, 0)).toBe(null)
  expect(positions.event({ process: "a", epoch: 2, number: 4 }, 0)).toBe(null)
})

test("events of a time in which a process did not know that another listens are a gap", () => {
  const { here, heard } = pair()
  here.handle(settledEvent({}, null))
  at(30_000)
  here.handle(settledEvent({}, null))
  here.hear({ kind: "listening" })
  expect(heard).toEqual(["delivery.delivered", "gap relay null"])
})

test("a process that stops says how far it was, and one that dies is missed", () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const stopped = pair()
  stopped.here.handle(settledEvent({}, null))
  stopped.here.close()
  stopped.lost.events = true
  vi.advanceTimersByTime(60_000)
  expect(stopped.heard).toEqual(["delivery.delivered"])
  const positions = new RelayPositions()
  positions.event({ process: "a", epoch: 1, number: 7 }, 0)
  expect(positions.forgetSilent(25_000)).toEqual([])
  expect(positions.forgetSilent(25_001)).toMatchObject([{ reason: "process_lost", from: "a-1-7", to: null }])
  expect(positions.forgetSilent(60_000)).toEqual([])
})

function at(ms: number): void {
  const clock = vi.spyOn(performance, "now").mockReturnValue(performance.now() + ms)
  onTestFinished(() => clock.mockRestore())
}
