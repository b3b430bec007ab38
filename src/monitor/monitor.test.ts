import { expect, test } from "vitest"
import { TestClock } from "../../test/support/clock.ts"
import { sqliteStage } from "../../test/support/sqlite-stage.ts"
import { PosthornError } from "../core/errors.ts"
import { preset } from "../core/presets.ts"
import { HEALTHY } from "../core/protection.ts"
import { createLogger } from "../observe/log.ts"
import { Presence } from "../relay/presence.ts"
import { NOW, ORG, sample } from "../store/conformance/samples.ts"
import type { Store } from "../store/store.ts"
import type { History } from "./history.ts"
import { MONITOR_INTERVAL_MS, Monitor } from "./monitor.ts"
import type { Snapshot } from "./snapshot.ts"

interface Told {
  readonly snapshots: Snapshot[]
  readonly histories: History[]
  readonly failedSurveys: string[]
  readonly failures: [message: string, isLeader: boolean][]
  stoodDown: number
}

async function site() {
  const clock = new TestClock(NOW)
  const stage = await sqliteStage()
  const monitor = (holder: string, store: Store = stage.store) => {
    const told: Told = { snapshots: [], histories: [], failedSurveys: [], failures: [], stoodDown: 0 }
    const listener = {
      snapshot(snapshot: Snapshot, history: History) {
        told.snapshots.push(snapshot)
        told.histories.push(history)
      },
      surveyFailed: (error: Error) => void told.failedSurveys.push(error.message),
      failed: (error: Error, isLeader: boolean) => void told.failures.push([error.message, isLeader]),
      stoodDown: () => void told.stoodDown++,
    }
    const parts = { store, clock, defaultPolicy: preset("standard"), logger: createLogger("silent") }
    const intervalMs = MONITOR_INTERVAL_MS
    const presence = new Presence(store, clock, holder)
    return { told, monitor: new Monitor({ ...parts, presence, holder, intervalMs, listeners: [listener] }) }
  }
  return { ...stage, clock, monitor }
}

test("one of two monitors takes the snapshots, and the other continues when it stops", async () => {
  const { clock, monitor } = await site()
  const [first, second] = [monitor("first"), monitor("second")]
  for (let tick = 0; tick < 3; tick++) {
    await first.monitor.runOnce()
    await second.monitor.runOnce()
    clock.advance(MONITOR_INTERVAL_MS)
  }
  expect([first.monitor.isLeader, second.monitor.isLeader]).toEqual([true, false])
  expect([first.told.snapshots.length, second.told.snapshots.length]).toEqual([3, 0])

  await first.monitor.stop()
  expect(first.told.stoodDown).toBe(1)
  await second.monitor.runOnce()
  expect(second.monitor.isLeader).toBe(true)
  // It continues the samples of the first.
  expect(second.told.histories[0]!.samples.length).toBeGreaterThan(1)
})

test("a leader that was paused for too long stands down", async () => {
  const { clock, monitor } = await site()
  const [paused, other] = [monitor("paused"), monitor("other")]
  await paused.monitor.runOnce()
  clock.advance(MONITOR_INTERVAL_MS)
  await other.monitor.runOnce()
  expect(other.monitor.isLeader).toBe(false)
  clock.advance(2 * MONITOR_INTERVAL_MS)
  expect(paused.monitor.isLeader).toBe(false)
  await other.monitor.runOnce()
  expect(other.monitor.isLeader).toBe(true)
  await paused.monitor.runOnce()
  expect([paused.monitor.isLeader, paused.told.stoodDown, paused.told.snapshots.length]).toEqual([
    false,
    1,
    1,
  ])
})

test("a leader that finds that another one led meanwhile stands down before it leads again", async () => {
  const { clock, monitor } = await site()
  const [paused, other] = [monitor("paused"), monitor("other")]
  await paused.monitor.runOnce()
  clock.advance(60_000)
  await other.monitor.runOnce()
  await other.monitor.stop()
  await paused.monitor.runOnce()
  expect([paused.told.stoodDown, paused.told.snapshots.length]).toEqual([1, 2])
  await paused.monitor.runOnce()
  expect([paused.told.stoodDown, paused.told.snapshots.length]).toEqual([1, 3])
})

test("of two monitors that see a free lease at once, one becomes the leader", async () => {
  const { monitor } = await site()
  const both = [monitor("first"), monitor("second")]
  await Promise.all(both.map((one) => one.monitor.runOnce()))
  expect(both.filter((one) => one.monitor.isLeader)).toHaveLength(1)
  expect(both.flatMap((one) => one.told.snapshots)).toHaveLength(1)
})

test("a store that fails is reported with the word of whether this process was the leader", async () => {
  const { store, monitor } = await site()
  let isBroken = false
  const broken: Store = {
    ...store,
    async getEntry(...args) {
      if (isBroken) throw new PosthornError("store_unavailable", "the store is away")
      return store.getEntry(...args)
    },
  }
  const { told, monitor: watching } = monitor("first", broken)
  await watching.runOnce()
  isBroken = true
  await watching.runOnce()
  expect(told.failures).toEqual([["the store is away", true]])
  isBroken = false
  await watching.runOnce()
  expect(told.snapshots).toHaveLength(2)
})

test("a slow snapshot is taken less often, at least each minute, and by one process", async () => {
  const { clock, store, monitor } = await site()
  let surveys = 0
  const slow: Store = {
    ...store,
    async survey(...args) {
      surveys++
      clock.advance(10_000)
      // The others look meanwhile: the lease was taken before.
      await other.monitor.runOnce()
      return store.survey(...args)
    },
  }
  const [first, other] = [monitor("first", slow), monitor("other")]
  await first.monitor.runOnce()
  first.monitor.start()
  clock.advance(59_000)
  await other.monitor.runOnce()
  expect([other.monitor.isLeader, first.told.snapshots.length, surveys]).toEqual([false, 1, 1])
  clock.advance(1000)
  await first.monitor.runOnce()
  expect([first.told.snapshots.length, other.told.snapshots.length]).toEqual([2, 0])
  await first.monitor.stop()
})

test("a survey that fails is reported to the leader each time, and is tried by one process", async () => {
  const { clock, store, monitor } = await site()
  let surveys = 0
  const failing: Store = {
    ...store,
    async survey() {
      surveys++
      throw new PosthornError("store_unavailable", "the count took too long")
    },
  }
  const [first, other] = [monitor("first", failing), monitor("other", failing)]
  for (let tick = 0; tick < 3; tick++) {
    await first.monitor.runOnce()
    await other.monitor.runOnce()
    clock.advance(MONITOR_INTERVAL_MS)
  }
  expect(surveys).toBe(3)
  expect(first.told.failedSurveys).toEqual(Array(3).fill("the count took too long"))
  expect(other.told.failedSurveys).toEqual([])
  expect([...first.told.failures, ...other.told.failures]).toEqual([])
})

test("a survey that fails after the lease has run out is not reported by a process that leads no more", async () => {
  const { clock, store, monitor } = await site()
  const failing: Store = {
    ...store,
    async survey() {
      clock.advance(60_000)
      await other.monitor.runOnce()
      throw new PosthornError("store_unavailable", "the count took too long")
    },
  }
  const [first, other] = [monitor("first", failing), monitor("other")]
  await first.monitor.runOnce()
  expect([other.monitor.isLeader, first.monitor.isLeader]).toEqual([true, false])
  expect(first.told.failedSurveys).toEqual([])
})

test("a stop during a snapshot gives the lease back, and does not wait for a store that hangs", async () => {
  const { clock, store, monitor } = await site()
  const surveyed = Promise.withResolvers<void>()
  const goOn = Promise.withResolvers<void>()
  const slow: Store = {
    ...store,
    async survey(...args) {
      surveyed.resolve()
      await goOn.promise
      return store.survey(...args)
    },
  }
  const [first, second] = [monitor("first", slow), monitor("second")]
  const running = first.monitor.runOnce()
  await surveyed.promise
  const stopped = first.monitor.stop()
  goOn.resolve()
  await Promise.all([running, stopped])
  expect(first.told.snapshots).toEqual([])
  await second.monitor.runOnce()
  expect(second.monitor.isLeader).toBe(true)
  await second.monitor.stop()

  const hangs: Store = { ...store, survey: () => new Promise(() => surveyed.resolve()) }
  const third = monitor("third", hangs)
  void third.monitor.runOnce()
  await expect.poll(() => third.monitor.isLeader).toBe(true)
  const late = third.monitor.stop()
  clock.advance(2000)
  await late
})

test("a lease that an operator typed over is taken", async () => {
  const { store, clock, monitor } = await site()
  const { monitor: first } = monitor("first")
  await first.runOnce()
  const entry = await store.getEntry("lease", null, "monitor", clock.now())
  await store.saveEntryIfUnchanged({ ...entry!, body: "never mind", version: entry!.version + 1 })
  await first.runOnce()
  expect(first.isLeader).toBe(true)
})

test("a snapshot has the endpoints by health, those that are open or failing first", async () => {
  const { store, application, monitor } = await site()
  const add = async (more: Parameters<typeof sample.endpoint>[1]) => {
    const made = sample.endpoint(application.id, more)
    await store.createEndpoint(made)
    return made.id
  }
  const failing = {
    ...HEALTHY,
    isFailing: true,
    failures: 9,
    failingSince: NOW - 1000,
    lastError: "HTTP 500",
  }
  const disabled = await add({ disabled: true })
  const paused = await add({ paused: true })
  const bad = await add({ protection: failing })
  const open = await add({ protection: { ...failing, phase: "open", since: NOW, until: NOW + 30_000 } })
  const shadow = sample.application({ orgId: `${ORG}:operational` })
  await store.createApplication(shadow)
  await store.createEndpoint(sample.endpoint(shadow.id, { orgId: shadow.orgId, protection: failing }))
  const { told, monitor: first } = monitor("first")
  await first.runOnce()
  const [snapshot] = told.snapshots
  const counts = { healthy: 1, degraded: 0, failing: 1, open: 1, offline: 0, paused: 1, disabled: 1 }
  expect(snapshot!.endpoints).toEqual(counts)
  const ids = snapshot!.troubled.map(({ endpointId }) => endpointId)
  expect(ids.slice(0, 2)).toEqual([open, bad])
  expect(new Set(ids.slice(2))).toEqual(new Set([disabled, paused]))
  const fiveDays = 5 * 24 * 3_600_000
  expect(snapshot!.troubled[1]).toMatchObject({
    orgId: ORG,
    health: "failing",
    since: NOW - 1000,
    disablesAt: NOW - 1000 + fiveDays,
  })
  expect(snapshot!.troubled.find(({ endpointId }) => endpointId === disabled)!.disablesAt).toBeNull()
})
