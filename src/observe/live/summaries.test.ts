import { pino } from "pino"
import { expect, test } from "vitest"
import { TestClock } from "../../../test/support/clock.ts"
import { DEFAULT_ORG } from "../../core/org.ts"
import { EventBus } from "../event-bus.ts"
import { NO_INSTRUMENTS } from "../instruments.ts"
import type { PublicEvent } from "../public-events.ts"
import { AcceptedCounter } from "./accepted-counter.ts"
import type { BufferLimits } from "./event-buffer.ts"
import { LiveEvents } from "./live-events.ts"
import type { LiveFilter } from "./live-filter.ts"
import type { ReaderConnection } from "./live-reader.ts"

const ALL = { orgId: DEFAULT_ORG, appIds: null, endpointIds: null, kinds: null, seesCounts: true }
const EACH_SECOND: LiveFilter = { ...ALL, summaryMs: 1000 }

function start(limits: BufferLimits = { events: 100, bytes: 1_000_000 }) {
  const clock = new TestClock(0)
  const bus = new EventBus(pino({ level: "silent" }))
  const live = new LiveEvents({ bus, clock, instruments: NO_INSTRUMENTS, limits })
  const publish = (type: PublicEvent["type"], count = 1, fields: object = {}) => {
    const common = { type, org_id: DEFAULT_ORG, app_id: "app_1", webhook_id: "ep_1", at: clock.now() }
    for (let n = 0; n < count; n++) bus.publish({ ...common, ...fields } as PublicEvent)
  }
  const open = (filter: LiveFilter = EACH_SECOND, lastEventId: string | null = null) => {
    const connection = new Connection()
    const reader = live.open(filter, lastEventId, connection)
    return Object.assign(connection, { reader })
  }
  return { clock, bus, live, publish, open }
}

class Connection implements ReaderConnection {
  text = ""
  isFull = false
  ended: "stop" | "drop" | null = null

  write(bytes: Buffer): boolean {
    this.text += bytes.toString()
    return !this.isFull
  }

  mayGoOn = () => true

  end(how: "stop" | "drop"): void {
    this.ended = how
  }

  /** With their ids. */
  get events() {
    return [...this.text.matchAll(/^id: (.*)\nevent: (.*)\ndata: (.*)$/gm)].map(([, id, kind, data]) => ({
      id: id!,
      kind,
      data: JSON.parse(data!),
    }))
  }

  get summaries() {
    return this.events.filter(({ kind }) => kind === "summary").map(({ data }) => data)
  }

  get lastEventId(): string {
    return [...this.text.matchAll(/^id: (.*)$/gm)].at(-1)![1]!
  }
}

const ZEROS = { accepted: 0, counts: {}, failedAttempts: 0, events: [], dropped: 0 }
const tick = () => new Promise((resolve) => setImmediate(resolve))

test("one summary for each period with events, one of zeros when they end, and then silence", () => {
  const { clock, live, publish, open } = start()
  const reader = open()
  clock.advance(5000)
  expect(reader.events).toEqual([])
  publish("delivery.attempt", 2, { success: true })
  publish("delivery.attempt", 1, { success: false })
  publish("delivery.delivered", 2)
  clock.advance(999)
  expect(reader.events).toEqual([])
  clock.advance(1)
  expect(reader.summaries).toEqual([
    {
      ...{ type: "summary", from: 5000, to: 6000, ...ZEROS },
      ...{ counts: { "delivery.attempt": 3, "delivery.delivered": 2 }, failedAttempts: 1 },
    },
  ])
  clock.advance(300)
  publish("delivery.dead")
  clock.advance(700)
  expect(reader.summaries[1]).toMatchObject({ from: 6000, to: 7000, counts: { "delivery.dead": 1 } })
  clock.advance(1000)
  expect(reader.summaries[2]).toEqual({ type: "summary", from: 7000, to: 8000, ...ZEROS })
  clock.advance(10_000)
  expect(reader.summaries).toHaveLength(3)
  publish("delivery.dead")
  clock.advance(1000)
  expect(reader.summaries[3]).toMatchObject({ from: 18_000, to: 19_000 })
  live.close()
})

test("rare events are shown in full, at most 50 of them", () => {
  const { clock, live, publish, open } = start()
  const reader = open()
  publish("endpoint.breaker.opened", 1, { failures: 7 })
  publish("delivery.delivered", 3)
  publish("endpoint.failing", 60)
  clock.advance(1000)
  const [summary] = reader.summaries
  expect(summary.counts).toEqual({
    ...{ "endpoint.breaker.opened": 1, "delivery.delivered": 3, "endpoint.failing": 60 },
  })
  expect(summary.events).toHaveLength(50)
  expect(summary.events[0]).toMatchObject({
    type: "endpoint.breaker.opened",
    webhook_id: "ep_1",
    failures: 7,
  })
  expect(summary.dropped).toBe(11)
  live.close()
})

test("readers with the same filter get the same bytes, others their own events at their own pace", () => {
  const { clock, live, publish, open } = start()
  const [one, same] = [open(), open()]
  const slow = open({ ...ALL, summaryMs: 5000 })
  const dead = open({ ...EACH_SECOND, kinds: ["delivery.dead"] })
  const elsewhere = open({ ...EACH_SECOND, appIds: ["app_2"] })
  publish("delivery.delivered", 4)
  publish("delivery.dead")
  clock.advance(5000)
  expect(one.text).toBe(same.text)
  expect(one.summaries[0]!.counts).toEqual({ "delivery.delivered": 4, "delivery.dead": 1 })
  expect(slow.summaries.map(({ counts }) => counts)).toEqual([one.summaries[0]!.counts])
  expect(dead.summaries[0]).toMatchObject({ counts: { "delivery.dead": 1 }, accepted: null })
  expect(elsewhere.summaries).toEqual([])
  live.close()
})

test("accepted messages are counted for the applications of the reader, and not by endpoint or kind", () => {
  const { clock, live, open } = start()
  const counter = new AcceptedCounter({
    clock,
    isWanted: () => live.countsAccepted,
    passOn: (counts) => live.accepted(counts),
  })
  const accept = (appId: string, duplicates: readonly boolean[], orgId = DEFAULT_ORG) =>
    counter.handle({
      type: "messages.accepted",
      orgId,
      messages: duplicates.map((duplicate) => ({ appId, duplicate })),
    })
  accept("app_1", [false])
  const events = open(ALL)
  expect(live.countsAccepted).toBe(false)
  const all = open()
  const second = open({ ...EACH_SECOND, appIds: ["app_2"] })
  const endpoint = open({ ...EACH_SECOND, endpointIds: ["ep_1"] })
  accept("app_1", [false, false, true])
  accept("app_2", [false])
  accept("app_2", [false])
  accept("app_3", [false], "org_other")
  clock.advance(200)
  accept("app_1", [false])
  clock.advance(1000)
  expect(all.summaries.map(({ accepted }) => accepted)).toEqual([5])
  expect(second.summaries.map(({ accepted }) => accepted)).toEqual([2])
  clock.advance(1000)
  expect(all.summaries.map(({ accepted }) => accepted)).toEqual([5, 0])
  expect(endpoint.events).toEqual([])
  expect(events.events).toEqual([])
  live.close()
  expect(live.countsAccepted).toBe(false)
})

test("a reader that comes back gets one summary of what it missed, and then those of all", () => {
  const { clock, live, publish, open } = start()
  const [first, other] = [open(), open()]
  publish("delivery.delivered", 2)
  clock.advance(1000)
  live.leave(first.reader)
  publish("delivery.delivered", 3, { at: 1100 })
  clock.advance(1000)
  publish("delivery.dead", 1)
  const back = open(EACH_SECOND, first.lastEventId)
  expect(back.summaries).toEqual([
    { type: "summary", from: 1100, to: 2000, ...ZEROS, counts: { "delivery.delivered": 3 } },
  ])
  clock.advance(1000)
  expect(back.summaries.slice(1)).toEqual(other.summaries.slice(2))
  expect(back.summaries[1].counts).toEqual({ "delivery.dead": 1 })
  // Also the last of the readers, for a minute.
  for (const { reader } of [other, back]) live.leave(reader)
  live.accepted([[DEFAULT_ORG, "app_1", 7]])
  publish("delivery.attempt")
  clock.advance(30_000)
  const last = open(EACH_SECOND, back.lastEventId)
  expect(last.summaries).toMatchObject([{ accepted: 7, counts: { "delivery.attempt": 1 } }])
  live.close()
})

test("what the buffer has lost is a gap, and the rest is in the summary", () => {
  const { clock, live, publish, open } = start({ events: 20, bytes: 1_000_000 })
  const first = open()
  publish("delivery.delivered", 1)
  clock.advance(1000)
  live.leave(first.reader)
  publish("delivery.delivered", 30)
  const back = open(EACH_SECOND, first.lastEventId)
  expect(back.events).toMatchObject([
    { kind: "gap", data: { reason: "overflow", count: 10 } },
    { kind: "summary", data: { counts: { "delivery.delivered": 20 } } },
  ])
  live.close()
})

test("a reader whose connection is full gets one summary of all that it missed when it takes bytes again", () => {
  const { clock, live, publish, open } = start()
  const [slow, quick] = [open(), open()]
  slow.isFull = true
  publish("delivery.delivered", 1)
  clock.advance(1000)
  for (let n = 0; n < 4; n++) {
    publish("delivery.delivered", 10)
    clock.advance(1000)
  }
  clock.advance(1000)
  publish("delivery.dead", 1)
  expect(quick.summaries).toHaveLength(6)
  expect(slow.summaries).toHaveLength(1)
  slow.isFull = false
  live.drained(slow.reader)
  expect(slow.summaries[1]).toEqual({
    ...{ type: "summary", from: 1000, to: 6000, ...ZEROS },
    counts: { "delivery.delivered": 40 },
  })
  clock.advance(1000)
  expect(slow.summaries[2]).toEqual(quick.summaries[6])
  expect(slow.summaries[2].counts).toEqual({ "delivery.dead": 1 })
  live.close()
})

test("a reader that takes nothing until the buffer has overtaken it is disconnected", async () => {
  const { clock, live, publish, open } = start()
  const [blocked, quick] = [open(), open()]
  blocked.isFull = true
  publish("delivery.delivered")
  clock.advance(1000)
  publish("delivery.delivered")
  clock.advance(1000)
  publish("delivery.delivered", 101)
  await expect.poll(() => blocked.ended).toBe("drop")
  expect(quick.ended).toBeNull()
  live.close()
})

test("the place to resume from moves on with events of others, and not over events that were not told", async () => {
  const { clock, live, publish, open } = start()
  const reader = open({ ...EACH_SECOND, appIds: ["app_2"] })
  publish("delivery.delivered", 10)
  clock.advance(15_000)
  await tick()
  expect(reader.lastEventId).toMatch(/-10$/)
  clock.advance(14_500)
  publish("delivery.delivered", 1, { app_id: "app_2" })
  clock.advance(500)
  await tick()
  expect(reader.lastEventId).toMatch(/-10$/)
  clock.advance(500)
  expect(reader.lastEventId).toMatch(/-11$/)
  live.close()
})

test("only readers who see all counts are told how many events are missing, and readers of summaries are limited", () => {
  const { clock, bus, live, open } = start()
  const [operator, customer] = [open(), open({ ...EACH_SECOND, seesCounts: false })]
  bus.publish({ type: "gap", reason: "relay", from: "a", to: "b", count: 7, at: 0 })
  clock.advance(1000)
  const counts = [operator, customer].map(({ summaries: [summary] }) => summary.events[0].count)
  expect(counts).toEqual([7, null])
  const one = { ...EACH_SECOND, appIds: ["app_1"] }
  for (let n = 0; n < 200; n++) open({ ...one, summaryMs: n % 2 ? 250 : undefined })
  expect(() => open(one)).toThrow(/200 readers/)
  live.close()
})
