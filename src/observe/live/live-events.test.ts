import { pino } from "pino"
import { expect, test } from "vitest"
import { TestClock } from "../../../test/support/clock.ts"
import { DEFAULT_ORG } from "../../core/org.ts"
import { EventBus } from "../event-bus.ts"
import { NO_INSTRUMENTS } from "../instruments.ts"
import type { PublicEvent } from "../public-events.ts"
import type { BufferLimits } from "./event-buffer.ts"
import { LiveEvents } from "./live-events.ts"
import type { ReaderConnection } from "./live-reader.ts"

const ALL = { orgId: DEFAULT_ORG, appIds: null, endpointIds: null, kinds: null, seesCounts: true }

function start(limits: BufferLimits = { events: 100, bytes: 1_000_000 }) {
  const clock = new TestClock()
  const bus = new EventBus(pino({ level: "silent" }))
  const live = new LiveEvents({ bus, clock, instruments: NO_INSTRUMENTS, limits })
  const publish = (count: number, fields: object = {}) => {
    for (let n = 0; n < count; n++)
      bus.publish({
        type: "delivery.dead",
        org_id: DEFAULT_ORG,
        app_id: "app_1",
        webhook_id: "ep_1",
        ...fields,
      } as PublicEvent)
  }
  return { clock, bus, live, publish }
}

/** Takes all bytes, or `takes` of them before it wants to be waited for. */
class Connection implements ReaderConnection {
  readonly chunks: Buffer[] = []
  takes = Number.POSITIVE_INFINITY
  ended: "stop" | "drop" | null = null

  write(bytes: Buffer): boolean {
    this.chunks.push(bytes)
    this.takes -= bytes.length
    return this.takes > 0
  }

  mayGoOn = (): Promise<boolean> | boolean => true

  end(how: "stop" | "drop"): void {
    this.ended = how
  }

  get numbers(): number[] {
    return [
      ...Buffer.concat(this.chunks)
        .toString()
        .matchAll(/^id: .*-(\d+)\nevent/gm),
    ].map(([, n]) => Number(n))
  }
}

const tick = () => new Promise((resolve) => setImmediate(resolve))
const upTo = (last: number, first = 1) => Array.from({ length: last - first + 1 }, (_, n) => first + n)

test("events are recorded while somebody reads, and a minute longer", () => {
  const { clock, bus, live } = start()
  expect(bus.hasListeners).toBe(false)
  const reader = live.open(ALL, null, new Connection())
  expect(bus.hasListeners).toBe(true)
  live.leave(reader)
  clock.advance(59_999)
  expect(bus.hasListeners).toBe(true)
  clock.advance(1)
  expect(bus.hasListeners).toBe(false)
  live.open(ALL, null, new Connection())
  expect(bus.hasListeners).toBe(true)
  live.close()
  expect(bus.hasListeners).toBe(false)
})

test("readers with the same filter share the bytes, and the events of a tick are one write", async () => {
  const { live, publish } = start()
  const connections = [new Connection(), new Connection(), new Connection()]
  for (const connection of connections) live.open(ALL, null, connection)
  publish(3)
  await tick()
  const [first, ...others] = connections.map(({ chunks }) => chunks)
  expect(first).toHaveLength(2)
  for (const other of others) expect(other[1]).toBe(first![1])
  live.close()
})

test("a reader that waits for its connection gets all events in order when that is free again", async () => {
  const { live, publish } = start()
  const [slow, quick] = [new Connection(), new Connection()]
  const reader = live.open(ALL, null, slow)
  live.open(ALL, null, quick)
  slow.takes = 1
  for (let n = 0; n < 5; n++) {
    publish(10)
    await tick()
  }
  expect(quick.numbers).toEqual(upTo(50))
  expect(slow.numbers).toEqual(upTo(10))
  slow.takes = Number.POSITIVE_INFINITY
  live.drained(reader)
  expect(slow.numbers).toEqual(upTo(50))
  live.close()
})

test("a reader is dropped when the buffer has lost an event that it needs, and not for events of others", async () => {
  const { live, publish } = start()
  const [blocked, elsewhere] = [new Connection(), new Connection()]
  live.open(ALL, null, blocked)
  live.open({ ...ALL, appIds: ["app_2"] }, null, elsewhere)
  blocked.takes = elsewhere.takes = 1
  publish(1)
  publish(1, { app_id: "app_2" })
  await tick()
  publish(100)
  await tick()
  expect([blocked.ended, elsewhere.ended]).toEqual([null, null])
  publish(1)
  await tick()
  await expect.poll(() => blocked.ended).toBe("drop")
  expect(elsewhere.ended).toBe(null)
  live.close()
  expect(elsewhere.ended).toBe("drop")
})

test("a reader that was overtaken is dropped also if another one resumes before that is noticed", async () => {
  const { live, publish } = start({ events: 20, bytes: 1_000_000 })
  const blocked = new Connection()
  const overtaken = live.open(ALL, null, blocked)
  const id = blocked.chunks[0]!.toString().match(/id: (.*)-0\n/)![1]
  blocked.takes = 1
  publish(2)
  await tick()
  expect(blocked.numbers).toEqual([1, 2])
  publish(40)
  const back = new Connection()
  live.open(ALL, `${id}-30`, back)
  expect(blocked.ended).toBe("drop")
  live.drained(overtaken)
  expect(blocked.numbers).toEqual([1, 2])
  expect(back.numbers).toEqual(upTo(42, 31))
  publish(1)
  await expect.poll(() => back.numbers).toEqual(upTo(43, 31))
  live.close()
})

test("a reader that may not go on is ended at a heartbeat, and cut off if it does not read", async () => {
  const { clock, live, publish } = start()
  const [reading, blocked, unknown, allowed] = Array.from({ length: 4 }, () => new Connection())
  for (const connection of [reading, blocked, unknown, allowed]) live.open(ALL, null, connection!)
  reading!.mayGoOn = blocked!.mayGoOn = () => false
  unknown!.mayGoOn = () => Promise.reject(new Error("nobody can be asked"))
  blocked!.takes = 1
  publish(1)
  await tick()
  clock.advance(15_000)
  await tick()
  expect([reading, blocked, unknown, allowed].map((connection) => connection!.ended)).toEqual([
    "stop",
    "drop",
    "stop",
    null,
  ])
  live.close()
})

test("the buffer is bounded by bytes too: long errors push others out sooner", async () => {
  const { live, publish } = start({ events: 100, bytes: 10_000 })
  const connection = new Connection()
  live.open(ALL, null, connection)
  publish(10, { last_error: "x".repeat(1000) })
  await tick()
  const id = Buffer.concat(connection.chunks)
    .toString()
    .match(/id: (.*)-0\n/)![1]
  const back = new Connection()
  live.open(ALL, `${id}-1`, back)
  expect(Buffer.concat(back.chunks).toString()).toContain('"reason":"overflow"')
  expect(back.numbers).toEqual([7, ...upTo(10, 8)])
  live.close()
})

test("only readers who see all counts are told how many events are missing", async () => {
  const { live, bus, publish } = start({ events: 20, bytes: 1_000_000 })
  const [operator, customer] = [new Connection(), new Connection()]
  const filters = [ALL, { ...ALL, seesCounts: false }]
  live.open(filters[0]!, null, operator)
  live.open(filters[1]!, null, customer)
  bus.publish({ type: "gap", reason: "relay", from: "a", to: "b", count: 7, at: 0 })
  await tick()
  const id = operator.chunks[0]!.toString().match(/id: (.*)-0\n/)![1]
  publish(10)
  const replayed = [new Connection(), new Connection()]
  for (const [n, connection] of replayed.entries()) live.open(filters[n]!, `${id}-0`, connection)
  publish(30)
  const overtaken = [new Connection(), new Connection()]
  for (const [n, connection] of overtaken.entries()) live.open(filters[n]!, `${id}-0`, connection)
  const counts = [operator, customer, ...replayed, ...overtaken].map(({ chunks }) =>
    Buffer.concat(chunks)
      .toString()
      .match(/"count":(\w+)/)!
      .at(1),
  )
  expect(counts).toEqual(["7", "null", "7", "null", "21", "null"])
  live.close()
})

test("a tenant other than the operator's cannot take the places of all readers", () => {
  const { live } = start()
  const tenant = { ...ALL, orgId: "org_2" }
  for (let n = 0; n < 1000; n++)
    live.open(n % 2 ? tenant : { ...tenant, appIds: [`app_${n}`, "app_2"] }, null, new Connection())
  expect(() => live.open(tenant, null, new Connection())).toThrow(/1000 readers .* of this organization/)
  expect(() => live.open({ ...tenant, appIds: ["app_3"] }, null, new Connection())).toThrow(/1000 readers/)
  live.open({ ...ALL, orgId: "org_3" }, null, new Connection())
  live.open(ALL, null, new Connection())
  live.close()
})

test("several tenants cannot take the places of the operator's readers", () => {
  const { live } = start()
  const open = (orgId: string, count: number) => {
    for (let n = 0; n < count; n++) live.open({ ...ALL, orgId }, null, new Connection())
  }
  open("org_2", 900)
  open("org_3", 800)
  expect(() => open("org_4", 1)).toThrow(/1700 readers/)
  open(DEFAULT_ORG, 300)
  live.close()
})

test("the customers of the default organization cannot take the places of the operator's readers", () => {
  const { live } = start()
  const open = (app: string, count: number) => {
    const portal = { ...ALL, appIds: [app], seesCounts: false }
    for (let n = 0; n < count; n++) live.open(portal, null, new Connection())
  }
  for (let n = 0; n < 8; n++) open(`app_${n}`, 200)
  open("app_8", 100)
  expect(() => open("app_9", 1)).toThrow(/1700 readers/)
  for (let n = 0; n < 300; n++) live.open(ALL, null, new Connection())
  live.close()
})

test("one application cannot take the places of all readers, and beyond the most nobody is taken", () => {
  const { live } = start()
  const one = { ...ALL, appIds: ["app_1"] }
  for (let n = 0; n < 200; n++)
    live.open(n % 2 ? one : { ...one, kinds: ["delivery.dead"] }, null, new Connection())
  expect(() => live.open(one, null, new Connection())).toThrow(/200 readers/)
  for (let n = 0; n < 1800; n++) live.open(ALL, null, new Connection())
  expect(() => live.open(ALL, null, new Connection())).toThrow(/2000 readers/)
  live.close()
  expect(() => live.open(ALL, null, new Connection())).toThrow(/closing/)
})
