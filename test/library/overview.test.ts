/** The overview of the whole store: the leader saves it from each snapshot, and it follows the hours. */
import { expect, test } from "vitest"
import { DEFAULT_ORG } from "../../src/core/org.ts"
import { totalsByNumber, totalsOfHours } from "../../src/monitor/overview.ts"
import type { RollupFilter, Store } from "../../src/store/store.ts"
import { START, TestClock } from "../support/clock.ts"
import { Harness } from "../support/harness.ts"
import { VirtualReceiver } from "../support/virtual-receiver.ts"

const HOUR = 3_600_000
const ONCE = { delays: [60], maxAttempts: 1, breaker: false } as const
const TWICE = { ...ONCE, maxAttempts: 2, jitter: "none", adaptive: false, budget: false } as const

/** In the middle of an hour. Tests make the snapshots. */
async function start() {
  const clock = new TestClock(START - (START % HOUR) + HOUR / 2)
  const receiver = new VirtualReceiver(clock)
  const sums: RollupFilter[] = []
  const harness = await Harness.start({
    ...{ clock, transport: receiver, monitorIntervalMs: 1000 * HOUR, random: () => 0.5 },
    wrapStore: (store: Store) => ({
      ...store,
      sumRollups(filter, by) {
        sums.push(filter)
        return store.sumRollups(filter, by)
      },
    }),
  })
  let attempts = 0
  const attempt = async (path: string, answer: number) => {
    receiver.always(path, answer)
    await harness.send()
    await harness.published("delivery.attempt", ++attempts)
    await harness.calm()
  }
  const later = async (ms: number) => {
    clock.advance(ms)
    await harness.calm()
  }
  const survey = async () => {
    sums.length = 0
    await harness.posthorn.monitor!.runOnce()
    return (await harness.posthorn.overview())!
  }
  /** How far back the overview had to read roll-ups; null: not at all. */
  const readBack = () => {
    const of = sums.filter(
      ({ since, endpointIds }) => endpointIds === undefined && since !== hourOf(clock.now()) - HOUR,
    )
    return of.length === 0 ? null : (hourOf(clock.now()) - of[0]!.since!) / HOUR
  }
  return { harness, clock, receiver, attempt, later, survey, readBack }
}

const hourOf = (at: number) => at - (at % HOUR)

test("the first who asks has a new store surveyed, and sees that nothing waits", async () => {
  const { harness, clock } = await start()
  const overview = await harness.posthorn.overview()
  expect(overview).toEqual({
    surveyedAt: clock.now(),
    deliveries: { due: 0, scheduled: 0, retrying: 0, held: 0 },
    oldestDue: null,
    endpoints: { healthy: 0, degraded: 0, failing: 0, open: 0, offline: 0, paused: 0, disabled: 0 },
    troubled: [],
    deadLetters: [],
    hours: [],
  })
  clock.advance(1000)
  expect((await harness.posthorn.overview())!.surveyedAt).toBe(overview!.surveyedAt)
})

test("endpoints in trouble with their application and what waits, dead letters, and the oldest that is due", async () => {
  const { harness, clock, attempt, survey } = await start()
  const bad = await harness.endpoint({ uid: "bad", retry: ONCE }, "/bad")
  for (let i = 0; i < 5; i++) await attempt("/bad", 500)
  const paused = await harness.endpoint({ uid: "paused" }, "/paused")
  await harness.posthorn.endpoints.pause("acme", "bad")
  await harness.posthorn.endpoints.pause("acme", "paused")
  for (let i = 0; i < 3; i++) await harness.send()
  await harness.posthorn.endpoints.resume("acme", "bad")
  await harness.quiet()
  const { id: appId } = await harness.posthorn.applications.get("acme")
  const overview = await survey()
  expect(overview.deliveries).toEqual({ due: 0, scheduled: 0, retrying: 0, held: 3 })
  expect(overview.endpoints).toMatchObject({ failing: 1, paused: 1, healthy: 0 })
  expect(overview.troubled).toMatchObject([
    { endpointId: bad, orgId: DEFAULT_ORG, appId, appName: "Acme", health: "failing", waiting: 0 },
    { endpointId: paused, appName: "Acme", health: "paused", since: clock.now(), waiting: 3 },
  ])
  expect(overview.deadLetters).toEqual([{ reason: "exhausted", count: 8, oldestAt: clock.now() }])
})

test("the oldest due delivery has its application", async () => {
  const { harness, clock, receiver, survey } = await start()
  receiver.always("/", 200, 20_000)
  const id = await harness.endpoint()
  const sentAt = clock.now()
  await harness.send()
  await harness.calm()
  clock.advance(5000)
  const { id: appId } = await harness.posthorn.applications.get("acme")
  const { deliveries, oldestDue } = await survey()
  expect([deliveries.due, oldestDue]).toEqual([1, { at: sentAt, endpointId: id, appId }])
  clock.advance(15_000)
  await harness.quiet()
})

test("the hours follow the attempts, and old hours are not read again", async () => {
  const { harness, clock, attempt, later, survey, readBack } = await start()
  await harness.endpoint({ retry: TWICE })
  const first = hourOf(clock.now())
  await attempt("/", 200)
  await attempt("/", 500)
  await survey()
  expect(readBack()).toBe(23)
  await later(60_000)
  await harness.published("delivery.attempt", 3)
  await harness.calm()
  const { hours } = await survey()
  expect(readBack()).toBeNull()
  expect(totalsOfHours(hours, clock.now()).at(-1)).toEqual({
    ...{ hour: first, attempts: 3, succeeded: 1, dead: 1, retries: 1 },
  })
  expect(totalsByNumber(hours, clock.now())).toEqual([
    { number: 1, attempts: 2, succeeded: 1 },
    { number: 2, attempts: 1, succeeded: 0 },
  ])
})

test("hours in which nobody made a snapshot are read by the next one, and the oldest go", async () => {
  const { harness, clock, later, survey, readBack } = await start()
  await harness.endpoint()
  const first = hourOf(clock.now())
  const deliver = async (count: number) => {
    await harness.send()
    await harness.published("delivery.attempt", count)
    await harness.calm()
  }
  await deliver(1)
  await survey()
  await deliver(2)
  await later(2 * HOUR)
  await deliver(3)
  await later(3 * HOUR)
  const { hours } = await survey()
  expect(readBack()).toBe(6)
  expect(hours.map(({ hour, byNumber }) => [(hour - first) / HOUR, byNumber[0]!.attempts])).toEqual([
    [0, 2],
    [2, 1],
  ])
  expect(totalsOfHours(hours, clock.now())).toHaveLength(24)
  expect(totalsOfHours(hours, clock.now()).at(-6)).toMatchObject({ hour: first, attempts: 2 })
  await later(19 * HOUR)
  expect((await survey()).hours.map(({ hour }) => (hour - first) / HOUR)).toEqual([2])
})

test("an overview that an operator typed over is replaced", async () => {
  const { harness, survey } = await start()
  await survey()
  for (const text of ['{"surveyedAt": "never"}', "never mind"]) {
    await harness.sql("UPDATE entries SET body = ? WHERE kind = 'overview'", text)
    expect((await survey()).troubled).toEqual([])
  }
})
