import { pino } from "pino"
import { expect, test } from "vitest"
import { TestClock } from "../../test/support/clock.ts"
import { DirectOutbox } from "./direct-outbox.ts"
import type { Notification, NotificationKind } from "./notification.ts"
import type { DirectResult } from "./notifier.ts"

const DELIVERED: DirectResult = { outcome: "delivered" }
const TRANSIENT: DirectResult = { outcome: "transient", detail: "answered 500" }
const PERMANENT: DirectResult = { outcome: "permanent", detail: "answered 403" }

type Answer = DirectResult | Promise<DirectResult>

/** `answers` by channel, in order; then all is delivered. */
function site(answers: { [channel: string]: Answer[] } = {}) {
  const clock = new TestClock()
  const tried: string[] = []
  const lines: string[] = []
  const logger = pino({ level: "error" }, { write: (line: string) => void lines.push(line) })
  const sendNow = async (channel: string, { kind, rule }: Notification) => {
    tried.push(`${channel} ${rule} ${kind}`)
    return answers[channel]?.shift() ?? DELIVERED
  }
  const notifier = { sendNow, channels: async () => [], notify: async () => {} }
  const outbox = new DirectOutbox({ notifier, clock, logger })
  let key = 0
  const add = (kind: NotificationKind, { channel = "ops", rule = "disk-space" } = {}) => {
    const notification = { kind, rule, groupKey: rule, summary: rule } as Notification
    outbox.add([{ key: String(key++), channel, notification }])
  }
  const pass = async (ms: number) => {
    clock.advance(ms)
    await outbox.settled()
  }
  return { clock, outbox, tried, lines, add, pass }
}

test("a queue stops at its first failure, so that nothing overtakes a beginning", async () => {
  const { outbox, tried, add, pass } = site({ ops: [TRANSIENT] })
  add("firing")
  add("firing", { rule: "store-unavailable" })
  await outbox.settled()
  expect(tried).toEqual(["ops disk-space firing"])
  await pass(15_000)
  expect(tried.slice(1)).toEqual(["ops disk-space firing", "ops store-unavailable firing"])
})

test("a beginning that failed is not sent again after its end; the end is, as the beginning may have arrived", async () => {
  const { outbox, tried, add, pass } = site({ ops: [TRANSIENT] })
  add("firing")
  await outbox.settled()
  add("resolved")
  await pass(15_000)
  expect(tried).toEqual(["ops disk-space firing", "ops disk-space resolved"])
})

test("a beginning that was never sent is dropped together with its end", async () => {
  const { outbox, tried, add, pass } = site({ ops: [TRANSIENT] })
  add("firing", { rule: "store-unavailable" })
  await outbox.settled()
  add("firing")
  add("resolved")
  await pass(15_000)
  expect(tried).toEqual(["ops store-unavailable firing", "ops store-unavailable firing"])
})

test("an end waits for the beginning in flight, and an earlier end stays when the next alert is dropped", async () => {
  const answer = Promise.withResolvers<DirectResult>()
  const { outbox, tried, add } = site({ ops: [answer.promise] })
  for (const kind of ["firing", "resolved", "firing", "resolved"] as const) add(kind)
  expect(tried).toEqual(["ops disk-space firing"])
  answer.resolve(DELIVERED)
  await outbox.settled()
  expect(tried).toEqual(["ops disk-space firing", "ops disk-space resolved"])
})

test("the end of an alert whose repeat waits is sent", async () => {
  const { outbox, tried, add, pass } = site({ ops: [DELIVERED, TRANSIENT] })
  add("firing")
  await outbox.settled()
  add("firing", { rule: "store-unavailable" })
  await outbox.settled()
  add("repeated")
  add("resolved")
  await pass(15_000)
  expect(tried.slice(2)).toEqual(["ops store-unavailable firing", "ops disk-space resolved"])
})

test("a permanent failure is dropped with one line in the log", async () => {
  const { outbox, tried, lines, add, pass, clock } = site({ ops: [PERMANENT] })
  add("firing")
  add("firing", { rule: "store-unavailable" })
  await outbox.settled()
  expect(tried).toEqual(["ops disk-space firing", "ops store-unavailable firing"])
  expect(lines).toHaveLength(1)
  expect(lines[0]).toContain("ops was not notified, and never will be: answered 403")
  await pass(3_600_000)
  expect([tried.length, clock.timers]).toEqual([2, 0])
})

test("a channel that fails is tried at growing distances, and not after a day", async () => {
  const { clock, outbox, tried, add, pass } = site({ ops: Array<DirectResult>(1000).fill(TRANSIENT) })
  const begin = clock.now()
  const at: number[] = []
  add("firing")
  await outbox.settled()
  for (let count = 1; clock.timers > 0; ) {
    await pass(15_000)
    if (tried.length > count) at.push((clock.now() - begin) / 1000)
    count = tried.length
  }
  expect(at.slice(0, 7)).toEqual([15, 45, 105, 225, 465, 765, 1065])
  expect(at.at(-1)).toBeGreaterThanOrEqual(86_400)
  expect(at.at(-1)).toBeLessThan(86_400 + 300)
})

test("a channel that hangs holds up no other, and closing waits for it for a limited time", async () => {
  const { clock, outbox, tried, add } = site({ slow: [new Promise(() => {})] })
  add("firing", { channel: "slow" })
  add("firing")
  add("repeated", { channel: "slow" })
  expect(tried).toEqual(["slow disk-space firing", "ops disk-space firing"])
  let isClosed = false
  const closing = outbox.close(5000).then(() => {
    isClosed = true
  })
  await new Promise(setImmediate)
  expect(isClosed).toBe(false)
  clock.advance(5000)
  await closing
  expect(tried).toHaveLength(2)
})

test("a notification in flight that was left to the next leader is not tried again", async () => {
  const answers = [Promise.withResolvers<DirectResult>(), Promise.withResolvers<DirectResult>()]
  const { outbox, tried, add, pass } = site({ ops: answers.map(({ promise }) => promise) })
  add("firing")
  outbox.leave(new Set(["0"]))
  answers[0]!.resolve(TRANSIENT)
  await outbox.settled()
  await pass(86_400_000)
  expect(tried).toEqual(["ops disk-space firing"])

  // A notification that is not left still follows, after the delay.
  add("firing")
  add("firing", { rule: "store-unavailable" })
  outbox.leave(new Set(["1"]))
  answers[1]!.resolve(TRANSIENT)
  await outbox.settled()
  expect(tried).toHaveLength(2)
  await pass(15_000)
  expect(tried.slice(2)).toEqual(["ops store-unavailable firing"])
})
