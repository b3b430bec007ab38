import { expect, test } from "vitest"
import { snapshotOf, troubled } from "../../test/support/alert-samples.ts"
import { TestClock } from "../../test/support/clock.ts"
import { sqliteStage } from "../../test/support/sqlite-stage.ts"
import { PosthornError } from "../core/errors.ts"
import { createIds } from "../core/ids.ts"
import type { History } from "../monitor/history.ts"
import type { Snapshot } from "../monitor/snapshot.ts"
import { createLogger } from "../observe/log.ts"
import { NOW } from "../store/conformance/samples.ts"
import { AlertStore } from "./alert-store.ts"
import { Alerts } from "./alerts.ts"
import { AlertEvaluator } from "./evaluator.ts"
import { type DiskSpace, LocalAlerts } from "./local-alerts.ts"
import type { Notification } from "./notification.ts"
import type { DirectResult } from "./notifier.ts"
import { defaultsOf } from "./rules.ts"

const DAY = 86_400_000

/** Channels that keep what they get. */
class Ledger {
  readonly accepted = new Map<string, Notification>()
  readonly sentNow: Notification[] = []
  isBroken = false
  deadLetters = true
  isReadable = true

  async channels() {
    return [{ name: "ops", deadLetters: this.deadLetters, isReadable: this.isReadable }]
  }

  async notify(_channels: readonly string[], notification: Notification, key: string): Promise<void> {
    if (this.isBroken) throw new PosthornError("store_unavailable", "the process was killed")
    this.accepted.set(key, notification)
  }

  async sendNow(_channel: string, notification: Notification): Promise<DirectResult> {
    if (this.isBroken) return { outcome: "transient", detail: "the channel does not answer" }
    this.sentNow.push(notification)
    return { outcome: "delivered" }
  }

  get kinds(): string[] {
    return [...this.accepted.values()].map(({ kind, rule }) => `${rule} ${kind}`)
  }
}

async function site() {
  const clock = new TestClock(NOW)
  const { store } = await sqliteStage()
  const alerts = new AlertStore(store, clock)
  const ledger = new Ledger()
  const disk: { space: DiskSpace; onRead: null | (() => Promise<void>) } = {
    space: { freeBytes: 1e12, totalBytes: 2e12 },
    onRead: null,
  }
  const diskSpace = async () => {
    await disk.onRead?.()
    disk.onRead = null
    return disk.space
  }
  const ids = createIds((into) => void crypto.getRandomValues(into))
  const process = (notifier = ledger) => {
    const shared = { notifier, clock, ids, logger: createLogger("silent") }
    const local = new LocalAlerts({ ...shared, deployment: "eu", diskSpace })
    const parts = { ...shared, store, alertStore: alerts, local }
    return { local, evaluator: new AlertEvaluator(parts), operator: new Alerts(parts) }
  }
  const evaluate = async (
    { evaluator, local }: Pick<ReturnType<typeof process>, "evaluator" | "local">,
    snapshot: Partial<Snapshot> = {},
    history: Partial<History> = {},
  ) => {
    clock.advance(15_000)
    await evaluator.snapshot(
      { ...snapshotOf(snapshot), at: clock.now() },
      { samples: [], dead: 0, ...history },
    )
    await local.settled()
  }
  return { clock, store, alerts, ledger, disk, process, evaluate }
}

const failing = () => ({ troubled: [troubled("failing", DAY, { since: NOW - DAY })] })

test("an alert fires at the second evaluation and ends at the second without it, each with a notification", async () => {
  const { ledger, process, evaluate, alerts } = await site()
  const one = process()
  await evaluate(one, failing())
  expect([ledger.kinds, one.evaluator.firing(true)["endpoint-failing"]]).toEqual([[], 0])
  await evaluate(one, failing())
  expect([ledger.kinds, one.evaluator.firing(true)["endpoint-failing"]]).toEqual([
    ["endpoint-failing firing"],
    1,
  ])
  await evaluate(one, failing())
  await evaluate(one)
  expect(ledger.kinds).toHaveLength(1)
  await evaluate(one)
  expect(ledger.kinds).toEqual(["endpoint-failing firing", "endpoint-failing resolved"])
  expect((await alerts.readBoard()).value).toMatchObject({ outbox: [], alerts: [{ phase: "resolved" }] })
})

test("another process continues the state of the first, and repeats no notification", async () => {
  const { ledger, process, evaluate } = await site()
  await evaluate(process(), failing())
  await evaluate(process(), failing())
  await evaluate(process(), failing())
  expect(ledger.kinds).toEqual(["endpoint-failing firing"])
})

test("a leader that dies between its write and the notification leaves the notification to its successor", async () => {
  const { ledger, process, evaluate } = await site()
  const first = process()
  await evaluate(first, failing())
  ledger.isBroken = true
  await evaluate(first, failing())
  expect(ledger.kinds).toEqual([])
  ledger.isBroken = false
  // Even if the alert is over by then.
  await evaluate(process())
  expect(ledger.kinds).toEqual(["endpoint-failing firing"])
})

test("a notification that was handed over twice, because its removal was lost, has one key", async () => {
  const { ledger, process, evaluate, alerts } = await site()
  const first = process()
  await evaluate(first, failing())
  await evaluate(first, failing())
  const [[key, notification]] = [...ledger.accepted] as [[string, Notification]]
  const read = await alerts.readBoard()
  await alerts.saveBoard({ ...read.value, outbox: [{ key, channel: "ops", notification }] }, read)
  await evaluate(process(), failing())
  expect([...ledger.accepted.keys()]).toEqual([key])
})

test("of two processes that decide at once, one makes the transition", async () => {
  const { ledger, process, evaluate, clock } = await site()
  const both = [process(), process()]
  await evaluate(both[0]!, failing())
  await evaluate(both[1]!, failing())
  ledger.accepted.clear()
  const empty = { ...snapshotOf(), at: clock.now() }
  for (let round = 0; round < 4; round++)
    await Promise.all(both.map(({ evaluator }) => evaluator.snapshot(empty, { samples: [], dead: 0 })))
  expect(ledger.kinds).toEqual(["endpoint-failing resolved"])
})

test("an evaluation in which nothing changes writes nothing", async () => {
  const { process, evaluate, alerts } = await site()
  const one = process()
  for (let i = 0; i < 3; i++) await evaluate(one, failing())
  const { entry } = await alerts.readBoard()
  for (let i = 0; i < 8; i++) await evaluate(one, failing())
  expect((await alerts.readBoard()).entry!.version).toBe(entry!.version)
})

test("a flood of dead letters makes a notice at once and then one in five minutes", async () => {
  const { ledger, process, evaluate } = await site()
  const one = process()
  await evaluate(one, {}, { dead: 500 })
  expect(ledger.kinds).toEqual([])
  for (let dead = 501; dead <= 10_500; dead += 250) await evaluate(one, {}, { dead })
  for (let i = 0; i < 20; i++) await evaluate(one, {}, { dead: 10_500 })
  const notices = [...ledger.accepted.values()]
  expect(ledger.kinds).toEqual([
    "dead-letter dead_letters",
    "dead-letter dead_letters",
    "dead-letter dead_letters",
  ])
  const counts = notices.map(({ summary }) => Number(/(\d+) deliver/.exec(summary)![1]))
  expect([counts[0], counts.reduce((a, b) => a + b)]).toEqual([1, 10_000])
})

test("a channel that is put while an evaluation runs keeps the count of its put", async () => {
  const { ledger, process, evaluate, alerts, disk, clock } = await site()
  const one = process()
  const channels = [{ name: "late", deadLetters: true, isReadable: true }]
  ledger.channels = async () => []
  disk.onRead = async () => {
    const read = await alerts.readBoard()
    const late = { counted: 3, since: clock.now(), at: 0 }
    await alerts.saveBoard({ ...read.value, notices: { late } }, read)
  }
  await evaluate(one, {}, { dead: 4 })
  ledger.channels = async () => channels
  await evaluate(one, {}, { dead: 4 })
  expect(ledger.kinds).toEqual(["dead-letter dead_letters"])
  ledger.channels = async () => []
  for (let i = 0; i < 20; i++) await evaluate(one, {}, { dead: 4 })
  expect((await alerts.readBoard()).value.notices).toEqual({})
})

test("a channel that cannot be read for a while gets ends and deaths when it is readable again", async () => {
  const { ledger, process, evaluate } = await site()
  const one = process()
  for (let i = 0; i < 2; i++) await evaluate(one, failing())
  ledger.isReadable = false
  await evaluate(one, failing(), { dead: 3 })
  for (let i = 0; i < 3; i++) await evaluate(one, {}, { dead: 3 })
  expect(ledger.kinds).toEqual(["endpoint-failing firing"])
  ledger.isReadable = true
  await evaluate(one, {}, { dead: 3 })
  expect(ledger.kinds.toSorted()).toEqual([
    "dead-letter dead_letters",
    "endpoint-failing firing",
    "endpoint-failing resolved",
  ])
})

test("a channel without dead letters, and a rule that is switched off, get no notice, also not later", async () => {
  const { ledger, process, evaluate, alerts } = await site()
  const one = process()
  ledger.deadLetters = false
  await evaluate(one, {}, { dead: 0 })
  await evaluate(one, {}, { dead: 50 })
  ledger.deadLetters = true
  await alerts.saveRule(
    "dead-letter",
    { ...defaultsOf("dead-letter"), enabled: false },
    await alerts.readRule("dead-letter"),
  )
  await evaluate(one, {}, { dead: 60 })
  await alerts.resetRule("dead-letter")
  await evaluate(one, {}, { dead: 60 })
  expect(ledger.kinds).toEqual([])
  await evaluate(one, {}, { dead: 61 })
  expect([...ledger.accepted.values()].map(({ summary }) => summary)).toEqual([
    "Dead letters: 1 delivery was given up",
  ])
})

test("an unavailable store is notified without it after a minute, and its end too", async () => {
  const { ledger, process, evaluate, clock } = await site()
  const { evaluator, local } = process()
  await evaluate({ evaluator, local })
  const fail = async () => {
    clock.advance(15_000)
    await evaluator.failed(new PosthornError("store_unavailable", "connection refused"), true)
    await local.settled()
  }
  for (let i = 0; i < 5; i++) await fail()
  expect(ledger.sentNow).toEqual([])
  await fail()
  expect(ledger.sentNow).toMatchObject([
    { rule: "store-unavailable", severity: "critical", kind: "firing", groupKey: "store-unavailable:eu" },
  ])
  // Its lease has run out by now: another process may count the stored alerts.
  expect(evaluator.firing(false)).toEqual({ "store-unavailable": 1 })
  expect(evaluator.firing(true)).toMatchObject({ "store-unavailable": 1, "endpoint-failing": 0 })
  expect(ledger.sentNow[0]!.subjects[0]!.detail).toBe("failing for 75 seconds: connection refused")
  await evaluate({ evaluator, local })
  await evaluate({ evaluator, local })
  expect(ledger.sentNow.map(({ kind }) => kind)).toEqual(["firing", "resolved"])
  expect(ledger.accepted.size).toBe(0)
})

test("a process that was not the leader says nothing about the store", async () => {
  const { ledger, process, clock } = await site()
  const { evaluator } = process()
  for (let i = 0; i < 20; i++) {
    clock.advance(15_000)
    await evaluator.failed(new PosthornError("store_unavailable", "connection refused"), false)
  }
  expect(ledger.sentNow).toEqual([])
})

test("a leader that finds another leader after the outage still reports the end", async () => {
  const { ledger, process, evaluate, clock } = await site()
  const { evaluator, local } = process()
  await evaluate({ evaluator, local })
  for (let i = 0; i < 8; i++) {
    clock.advance(15_000)
    await evaluator.failed(new PosthornError("store_unavailable", "connection refused"), true)
    await local.settled()
  }
  evaluator.stoodDown()
  await local.close(1000)
  expect(ledger.sentNow.map(({ kind }) => kind)).toEqual(["firing", "resolved"])
  expect(evaluator.firing(false)).toEqual({})
})

const FULL: DiskSpace = { freeBytes: 1, totalBytes: 1e12 }
const ROOMY: DiskSpace = { freeBytes: 5e11, totalBytes: 1e12 }

test("a restart continues the alert about the disk: no second beginning, and its end is notified", async () => {
  const { ledger, process, evaluate, disk } = await site()
  const first = process()
  disk.space = FULL
  for (let i = 0; i < 3; i++) await evaluate(first)
  await first.evaluator.close(1000)
  const second = process()
  for (let i = 0; i < 2; i++) await evaluate(second)
  expect(ledger.sentNow.map(({ kind }) => kind)).toEqual(["firing"])
  disk.space = ROOMY
  for (let i = 0; i < 2; i++) await evaluate(second)
  expect(ledger.sentNow.map(({ kind }) => kind)).toEqual(["firing", "resolved"])
})

test("a notification that had not arrived when its process stopped is sent by the next leader", async () => {
  const { ledger, process, evaluate, disk } = await site()
  const first = process()
  disk.space = FULL
  ledger.isBroken = true
  for (let i = 0; i < 2; i++) await evaluate(first)
  await first.evaluator.close(1000)
  ledger.isBroken = false
  await evaluate(process())
  expect(ledger.sentNow).toMatchObject([{ rule: "disk-space", kind: "firing" }])
})

test("a notification that arrived during the close is not sent again by the next leader", async () => {
  const { ledger, process, disk, clock, evaluate } = await site()
  const { evaluator } = process()
  const sending = Promise.withResolvers<DirectResult>()
  const { sendNow } = ledger
  ledger.sendNow = (channel, notification) => {
    void sendNow.call(ledger, channel, notification)
    return sending.promise
  }
  disk.space = FULL
  for (let i = 0; i < 2; i++) {
    clock.advance(15_000)
    await evaluator.snapshot({ ...snapshotOf(), at: clock.now() }, { samples: [], dead: 0 })
  }
  const closing = evaluator.close(1000)
  sending.resolve({ outcome: "delivered" })
  await closing
  await evaluate(process())
  expect(ledger.sentNow.map(({ kind }) => kind)).toEqual(["firing"])
})

test("a leader that stands down leaves saved alerts and notifications to the next leader", async () => {
  const { ledger, process, evaluate, disk } = await site()
  const [first, second] = [process(), process()]
  disk.space = FULL
  ledger.isBroken = true
  for (let i = 0; i < 2; i++) await evaluate(first)
  first.evaluator.stoodDown()
  ledger.isBroken = false
  for (let i = 0; i < 3; i++) await evaluate(second)
  expect(ledger.sentNow.map(({ kind }) => kind)).toEqual(["firing"])
  expect(first.local.alerts).toEqual([])
  // The first process leads again.
  second.evaluator.stoodDown()
  disk.space = ROOMY
  for (let i = 0; i < 2; i++) await evaluate(first)
  expect(ledger.sentNow.map(({ kind }) => kind)).toEqual(["firing", "resolved"])
})

test("a leader that did not notice another leader continues the alerts of that one", async () => {
  const { ledger, process, evaluate, disk } = await site()
  const [first, second] = [process(), process()]
  await evaluate(first)
  disk.space = FULL
  for (let i = 0; i < 2; i++) await evaluate(second)
  await second.evaluator.close(1000)
  disk.space = ROOMY
  for (let i = 0; i < 2; i++) await evaluate(first)
  expect(ledger.sentNow.map(({ kind }) => kind)).toEqual(["firing", "resolved"])
  expect(first.local.alerts).toMatchObject([{ phase: "resolved" }])
})

test("the last write of a process does not replace the alerts of its successor", async () => {
  const { ledger, process, evaluate, disk } = await site()
  const [first, second] = [process(), process()]
  const sending = Promise.withResolvers<DirectResult>()
  const { sendNow } = ledger
  disk.space = FULL
  ledger.sendNow = () => sending.promise
  for (let i = 0; i < 2; i++) await first.evaluator.snapshot(snapshotOf(), { samples: [], dead: 0 })
  ledger.sendNow = sendNow
  disk.space = ROOMY
  for (let i = 0; i < 2; i++) await evaluate(second)
  sending.resolve({ outcome: "delivered" })
  await first.evaluator.close(1000)
  expect((await process().operator.list()).data).toMatchObject([{ rule: "disk-space", state: "resolved" }])
})

test("an acknowledgement in the store reaches the leader's alert about the disk", async () => {
  const { ledger, process, evaluate, disk, clock } = await site()
  const [leader, { operator }] = [process(), process()]
  disk.space = FULL
  for (let i = 0; i < 2; i++) await evaluate(leader)
  const { id } = (await operator.list()).data[0]!
  await operator.acknowledge(id, { by: "key_1" })
  clock.advance(5 * 3_600_000)
  for (let i = 0; i < 2; i++) await evaluate(leader)
  expect(leader.local.alerts).toMatchObject([{ id, acknowledged: { by: "key_1" } }])
  expect(ledger.sentNow.map(({ kind }) => kind)).toEqual(["firing"])
})

test("an acknowledgement during an evaluation, or before the last write of its process, is not lost", async () => {
  const { ledger, process, evaluate, disk } = await site()
  const [leader, { operator }] = [process(), process()]
  disk.space = FULL
  for (let i = 0; i < 2; i++) await evaluate(leader)
  const { id } = (await operator.list()).data[0]!
  disk.onRead = async () => void (await operator.acknowledge(id, { by: "key_1" }))
  await evaluate(leader)
  expect(await operator.get(id)).toMatchObject({ state: "acknowledged" })
  expect(leader.local.alerts).toMatchObject([{ id, acknowledged: { by: "key_1" } }])

  // The next alert about the disk, whose notification does not arrive before the close.
  disk.space = ROOMY
  for (let i = 0; i < 2; i++) await evaluate(leader)
  disk.space = FULL
  const sending = Promise.withResolvers<DirectResult>()
  ledger.sendNow = () => sending.promise
  for (let i = 0; i < 2; i++) await leader.evaluator.snapshot(snapshotOf(), { samples: [], dead: 0 })
  const next = (await operator.list({ state: "firing" })).data[0]!
  await operator.acknowledge(next.id, { by: "key_1" })
  sending.resolve({ outcome: "delivered" })
  await leader.evaluator.close(1000)
  expect(await operator.get(next.id)).toMatchObject({ state: "acknowledged" })
})

test("a full disk is notified, also while the channel fails at first", async () => {
  const { ledger, process, evaluate, disk } = await site()
  const one = process()
  await evaluate(one)
  ledger.isBroken = true
  disk.space = { freeBytes: 0.04e12, totalBytes: 1e12 }
  for (let i = 0; i < 3; i++) await evaluate(one)
  expect(ledger.sentNow).toEqual([])
  ledger.isBroken = false
  for (let i = 0; i < 2; i++) await evaluate(one)
  expect(ledger.sentNow).toMatchObject([{ rule: "disk-space", kind: "firing" }])
  disk.space = { freeBytes: 1e9, totalBytes: 1e10 }
  await evaluate(one)
  expect(ledger.sentNow).toHaveLength(1)
  disk.space = { freeBytes: 5e11, totalBytes: 1e12 }
  await evaluate(one)
  await evaluate(one)
  expect(ledger.sentNow.map(({ kind }) => kind)).toEqual(["firing", "resolved"])
})

test("an evaluation does not wait for a channel that hangs", async () => {
  const { ledger, process, disk, clock } = await site()
  const { evaluator, local } = process()
  const hanging = Promise.withResolvers<DirectResult>()
  ledger.sendNow = () => hanging.promise
  disk.space = { freeBytes: 1, totalBytes: 1e12 }
  for (let i = 0; i < 4; i++) {
    clock.advance(15_000)
    await evaluator.snapshot({ ...snapshotOf(), at: clock.now() }, { samples: [], dead: 0 })
  }
  expect(local.alerts).toMatchObject([{ rule: "disk-space", phase: "firing" }])
  hanging.resolve({ outcome: "delivered" })
  await local.settled()
})

test("while surveys fail, the disk is watched and the failure itself is notified after a minute", async () => {
  const { ledger, process, evaluate, disk, clock } = await site()
  const [leader, { operator }] = [process(), process()]
  const failSurvey = async () => {
    clock.advance(15_000)
    await leader.evaluator.surveyFailed(new Error("database disk image is malformed"))
    await leader.local.settled()
  }
  disk.space = FULL
  // Also in a process that has never had a snapshot.
  for (let i = 0; i < 2; i++) await failSurvey()
  expect(ledger.sentNow.map(({ rule, kind }) => `${rule} ${kind}`)).toEqual(["disk-space firing"])
  for (let i = 0; i < 4; i++) await failSurvey()
  expect(ledger.sentNow).toMatchObject([
    {},
    {
      rule: "store-unavailable",
      kind: "firing",
      subjects: [{ detail: "failing for 75 seconds: database disk image is malformed" }],
    },
  ])
  // The store can be written, so other processes see both, and can acknowledge them.
  const both = (await operator.list({ state: "firing" })).data
  expect(both.map(({ rule }) => rule).toSorted()).toEqual(["disk-space", "store-unavailable"])
  for (let i = 0; i < 2; i++) await evaluate(leader)
  expect(ledger.sentNow.slice(2).map(({ rule, kind }) => `${rule} ${kind}`)).toEqual([
    "store-unavailable resolved",
  ])
})

test("the stored alerts stay as they are while surveys fail", async () => {
  const { ledger, process, evaluate, clock } = await site()
  const one = process()
  for (let i = 0; i < 2; i++) await evaluate(one, failing())
  for (let i = 0; i < 8; i++) {
    clock.advance(15_000)
    await one.evaluator.surveyFailed(new TypeError("a bug"))
  }
  await evaluate(one, failing())
  expect([ledger.kinds, one.evaluator.firing(true)["endpoint-failing"]]).toEqual([
    ["endpoint-failing firing"],
    1,
  ])
})

test.each([
  "readRules",
  "readBoard",
  "saveBoard",
] as const)("an evaluation whose %s always fails is notified too", async (method) => {
  const { ledger, process, evaluate, disk, alerts } = await site()
  const one = process()
  await evaluate(one)
  Object.assign(alerts, { [method]: () => Promise.reject(new SyntaxError("Unexpected token")) })
  disk.space = FULL
  for (let i = 0; i < 8; i++) await evaluate(one).catch(() => undefined)
  await one.local.settled()
  expect(ledger.sentNow.map(({ rule, kind }) => `${rule} ${kind}`)).toEqual([
    "disk-space firing",
    "store-unavailable firing",
  ])
})
