/** Roll-ups: each settled attempt is in the sums of its hour, once. */
import { describe, expect, test } from "vitest"
import { bytesOfText } from "../../core/bytes.ts"
import type { Outcome } from "../../core/outcome.ts"
import { PRESETS } from "../../core/presets.ts"
import { settle } from "../../core/settle.ts"
import { HOUR_MS, ROLLUP_KEPT_MS } from "../rollups.ts"
import type { ClaimedDelivery, NewAttempt, NewMessage, RollupDimension, RollupFilter } from "../store.ts"
import { claimed, laneFetch, NOW, ORG, OTHER_ORG, sample, settlement } from "./samples.ts"
import { calledOff, type SetUp, type Stage } from "./stage.ts"

const HOUR = NOW - (NOW % HOUR_MS)

/** Sends messages and settles each with a status; null: no response. `attempt` replaces fields of the attempts. */
async function attempts(
  { store, lanes, endpoint }: Stage,
  statuses: readonly (number | null)[],
  { of = endpoint, ...more }: Partial<NewMessage> & { readonly of?: Stage["endpoint"] } = {},
  attempt: Partial<NewAttempt> = {},
) {
  const message = { orgId: of.orgId, to: of.id, maxAttempts: 1, ...more }
  await store.acceptMany(statuses.map(() => sample.message(of.appId, message)))
  const lane = { ...laneFetch(of.id, 7, { limit: 100 }), appId: of.appId }
  const { deliveries } = await lanes.fetch(lane, NOW)
  const settlements = deliveries.map((delivery, i) => {
    const settled = settlement(of.id, 7, delivery, statuses[i]!)
    return { ...settled, attempt: { ...settled.attempt!, ...attempt } }
  })
  return { settlements, results: await lanes.settle(settlements) }
}

export function rollups(name: string, setUp: SetUp): void {
  describe(`${name}: roll-ups`, () => {
    test("sums attempts by every dimension", async () => {
      const stage = await setUp()
      const { store, application, endpoint } = stage
      const second = sample.endpoint(application.id)
      await store.createEndpoint(second)
      await attempts(stage, [200, 500, null], { eventType: "a" })
      await attempts(stage, [200], { eventType: "b" }, { attemptNumber: 2, startedAt: NOW + HOUR_MS })
      await attempts(stage, [200, 200], { eventType: "a", of: second })
      const read = async (by: readonly RollupDimension[], filter: RollupFilter = {}) => {
        const sums = await store.sumRollups({ appId: application.id, ...filter }, by)
        return sums.map(({ attempts, succeeded, dead, noResponse, ...sum }) => {
          const { appId, endpointId, eventType, hour, attemptNumber } = sum
          const group = [appId, endpointId, eventType, hour, attemptNumber].filter((one) => one !== undefined)
          return [...group, attempts, succeeded, dead, noResponse]
        })
      }
      expect(await read([])).toEqual([[6, 4, 2, 1]])
      expect(await read(["application"])).toEqual([[application.id, 6, 4, 2, 1]])
      expect(await read(["endpoint"])).toEqual([
        [endpoint.id, 4, 2, 2, 1],
        [second.id, 2, 2, 0, 0],
      ])
      expect(await read(["eventType"])).toEqual([
        ["a", 5, 3, 2, 1],
        ["b", 1, 1, 0, 0],
      ])
      expect(await read(["hour"])).toEqual([
        [HOUR, 5, 3, 2, 1],
        [HOUR + HOUR_MS, 1, 1, 0, 0],
      ])
      expect(await read(["attemptNumber"])).toEqual([
        [1, 5, 3, 2, 1],
        [2, 1, 1, 0, 0],
      ])
      expect(await read(["eventType", "endpoint"], { until: HOUR + HOUR_MS })).toEqual([
        [endpoint.id, "a", 3, 1, 2, 1],
        [second.id, "a", 2, 2, 0, 0],
      ])
      expect(await read([], { endpointIds: [second.id, "ep_none"] })).toEqual([[2, 2, 0, 0]])
      expect(await read([], { endpointIds: [] })).toEqual([])
      expect(await read([], { eventType: "b", since: HOUR + HOUR_MS })).toEqual([[1, 1, 0, 0]])
      expect(await read([], { since: HOUR + 2 * HOUR_MS })).toEqual([])
    })

    test("sums bytes and durations, counts latencies, and keeps the time of the last success", async () => {
      const stage = await setUp()
      const { store } = stage
      const sums = async () => (await store.sumRollups({ orgId: ORG }, []))[0]
      await attempts(stage, [500], { payload: "{}" }, { durationMs: 49, responseBody: null })
      expect(await sums()).toEqual({
        attempts: 1,
        succeeded: 0,
        dead: 1,
        noResponse: 0,
        bytesOut: 2,
        bytesIn: 0,
        durationMs: 49,
        latencies: [1, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        lastSuccessAt: null,
      })
      await attempts(stage, [200], { payload: bytesOfText("é") }, { durationMs: 50, responseBody: "abc" })
      const slow = { durationMs: 30_000, responseBody: bytesOfText("é"), startedAt: NOW - 40_000 }
      await attempts(stage, [200, 200], { payload: Buffer.alloc(70_000) }, slow)
      expect(await sums()).toEqual({
        attempts: 4,
        succeeded: 3,
        dead: 1,
        noResponse: 0,
        bytesOut: 2 + 2 + 2 * 70_000,
        bytesIn: 3 + 2 * 2,
        durationMs: 49 + 50 + 2 * 30_000,
        latencies: [1, 1, 0, 0, 0, 0, 0, 0, 0, 2],
        lastSuccessAt: NOW + 50,
      })
    })

    test("an attempt belongs to the hour in which its outcome was known", async () => {
      const stage = await setUp()
      await attempts(stage, [200], {}, { startedAt: HOUR - 5, durationMs: 4 })
      await attempts(stage, [200], {}, { startedAt: HOUR - 5, durationMs: 5 })
      const hours = await stage.store.sumRollups({ endpointIds: [stage.endpoint.id] }, ["hour"])
      expect(hours.map(({ hour }) => hour)).toEqual([HOUR - HOUR_MS, HOUR])
    })

    test("the 20th attempt and all later ones share a number", async () => {
      const stage = await setUp()
      for (const attemptNumber of [19, 20, 21, 500]) await attempts(stage, [500], {}, { attemptNumber })
      const sums = await stage.store.sumRollups({ orgId: ORG }, ["attemptNumber"])
      expect(sums.map(({ attemptNumber, attempts }) => [attemptNumber, attempts])).toEqual([
        [19, 1],
        [20, 3],
      ])
    })

    test("retries of any number are one group on demand", async () => {
      const stage = await setUp()
      for (const attemptNumber of [1, 2, 3, 20]) await attempts(stage, [500], {}, { attemptNumber })
      const sums = await stage.store.sumRollups({ orgId: ORG }, ["endpoint", "retries"])
      expect(sums.map(({ attemptNumber, attempts }) => [attemptNumber, attempts])).toEqual([
        [1, 1],
        [2, 3],
      ])
    })

    test("sums are found by the age of their deliveries when the attempts started", async () => {
      const stage = await setUp()
      const { store } = stage
      const tried = async (eventType: string, ...agesMs: number[]) => {
        for (const age of agesMs) await attempts(stage, [500], { eventType }, { startedAt: NOW + age })
      }
      await tried("young", 0, 40, 99)
      await tried("both", 99, 100)
      await tried("old", 250, 100, 170)
      await tried("early", -5)
      const types = async (filter: RollupFilter) =>
        (await store.sumRollups({ orgId: ORG, ...filter }, ["eventType"])).map(({ eventType }) => eventType)
      expect(await types({ olderThanMs: 100 })).toEqual(["old"])
      expect(await types({ maybeOlderThanMs: 100 })).toEqual(["both", "old"])
      expect(await types({ olderThanMs: 101 })).toEqual([])
      expect(await types({ maybeOlderThanMs: 250 })).toEqual(["old"])
      expect(await types({ maybeOlderThanMs: 251 })).toEqual([])
      expect(await types({ olderThanMs: 0 })).toEqual(["both", "early", "old", "young"])
    })

    test("an outcome that is written again counts once", async () => {
      const stage = await setUp()
      const { settlements, results } = await attempts(stage, [200, 500, null])
      expect(results).toEqual(["applied", "applied", "applied"])
      expect(await stage.lanes.settle(settlements)).toEqual(["stale", "stale", "stale"])
      expect(await stage.store.sumRollups({}, [])).toMatchObject([{ attempts: 3, succeeded: 1, dead: 2 }])
    })

    test("an outcome for a delivery that was called off counts once, and not as dead", async () => {
      const { store, lanes, endpoint, send, fetch } = await setUp()
      await send({ maxAttempts: 1 })
      const [delivery] = (await fetch(7)).deliveries
      await store.amendIfUnchanged([calledOff((await store.getDelivery(ORG, delivery!.id))!)])
      const outcome = settlement(endpoint.id, 7, delivery!, 500)
      expect(outcome.change.status).toBe("dead")
      expect(await lanes.settle([outcome])).toEqual(["superseded"])
      expect(await lanes.settle([outcome])).toEqual(["stale"])
      expect(await store.sumRollups({ orgId: ORG }, [])).toMatchObject([{ attempts: 1, dead: 0, bytesIn: 3 }])
    })

    test("attempts of unknown outcome do not count, nor does an outcome of a lost claim", async () => {
      const { store, lanes, endpoint, send, fetch } = await setUp()
      await send()
      const [lost] = (await fetch(1)).deliveries
      const [taken] = (await fetch(2)).deliveries
      expect(await lanes.settle([settlement(endpoint.id, 1, lost!, 200)])).toEqual(["stale"])
      const attempt = sample.attempt({ status: "unknown" })
      await lanes.giveBack([{ ...claimed(endpoint.id, 2, taken!), attempt }])
      expect(await store.countAttempts({})).toMatchObject({ unknown: 2 })
      expect(await store.sumRollups({}, [])).toEqual([])
    })

    test("a delivery that is given up without an attempt counts as dead in the hour of its settle", async () => {
      const { store, lanes, endpoint, send, fetch } = await setUp()
      const settledAt = HOUR + 3 * HOUR_MS + 5
      const end = (delivery: ClaimedDelivery, outcome: Outcome, attemptCount = 0) => {
        const counted = { ...delivery, attemptCount }
        const change = settle(counted, outcome, PRESETS.relay, settledAt, () => 0.5)
        return { ...claimed(endpoint.id, 1, delivery), change, attempt: null, settledAt, gate: null }
      }
      for (let i = 0; i < 6; i++) await send({ eventType: "a" })
      const [overdue, later, stalled, cancelled, expunged, back] = (await fetch(1)).deliveries
      const settlements = [
        end(overdue!, { kind: "overdue" }),
        end(later!, { kind: "overdue" }, 30),
        end(stalled!, { kind: "stalled" }),
        end(cancelled!, { kind: "cancelled" }),
        end(expunged!, { kind: "expunged" }),
        end(back!, { kind: "fault", detail: "a bug" }),
      ]
      expect(await lanes.settle(settlements)).toEqual(settlements.map(() => "applied"))
      expect(await lanes.settle(settlements)).toEqual(settlements.map(() => "stale"))
      const sums = await store.sumRollups({ orgId: ORG }, ["eventType", "hour", "attemptNumber"])
      const none = { attempts: 0, succeeded: 0, noResponse: 0, bytesOut: 0, bytesIn: 0, durationMs: 0 }
      const group = {
        eventType: "a",
        hour: HOUR + 3 * HOUR_MS,
        lastSuccessAt: null,
        latencies: Array(10).fill(0),
      }
      expect(sums).toEqual([
        { ...group, ...none, attemptNumber: 0, dead: 2 },
        { ...group, ...none, attemptNumber: 20, dead: 1 },
      ])
    })

    test("a delivery that an amendment gives up counts as dead, and one that it calls off does not", async () => {
      const { store, send, fetch } = await setUp()
      for (let i = 0; i < 3; i++) await send({ eventType: "a" })
      const at = HOUR + 3 * HOUR_MS + 5
      const amendments = (await fetch(1)).deliveries.map((delivery, i) => {
        const outcome = { kind: i < 2 ? "overdue" : "cancelled" } as const
        const change = settle(delivery, outcome, PRESETS.relay, at, () => 0.5)
        const { seq, status, attemptCount } = delivery
        return { seq, expectedStatus: status, expectedAttemptCount: attemptCount, change }
      })
      expect(await store.amendIfUnchanged(amendments)).toEqual([true, true, true])
      expect(await store.amendIfUnchanged(amendments)).toEqual([false, false, false])
      const sums = await store.sumRollups({ orgId: ORG }, ["eventType", "hour", "attemptNumber"])
      expect(sums).toMatchObject([
        {
          eventType: "a",
          hour: HOUR + 3 * HOUR_MS,
          attemptNumber: 0,
          dead: 2,
          attempts: 0,
          lastSuccessAt: null,
        },
      ])
    })

    test("a delivery that was called off before it was given up does not count", async () => {
      const { store, lanes, endpoint, send, fetch } = await setUp()
      await send()
      const [delivery] = (await fetch(1)).deliveries
      await store.amendIfUnchanged([calledOff((await store.getDelivery(ORG, delivery!.id))!)])
      const outcome = settlement(endpoint.id, 1, delivery!, 500)
      const change = { ...outcome.change, status: "dead", deadReason: "expired" } as const
      expect(await lanes.settle([{ ...outcome, change, attempt: null }])).toEqual(["superseded"])
      expect(await store.sumRollups({}, [])).toEqual([])
    })

    test("outcomes that are written at the same time are all in the sums", async () => {
      const stage = await setUp()
      const { store, application } = stage
      const others = Array.from({ length: 5 }, () => sample.endpoint(application.id))
      for (const other of others) await store.createEndpoint(other)
      await Promise.all(others.map((of) => attempts(stage, [200, 500, 200, null], { of })))
      const sums = await store.sumRollups({ appId: application.id }, ["endpoint"])
      expect(sums.map(({ attempts, succeeded }) => [attempts, succeeded])).toEqual(others.map(() => [4, 2]))
    })

    test("tenants do not see each other's sums", async () => {
      const stage = await setUp()
      const { store, endpoint } = stage
      const foreign = sample.application({ orgId: OTHER_ORG })
      await store.createApplication(foreign)
      const of = sample.endpoint(foreign.id, { orgId: OTHER_ORG })
      await store.createEndpoint(of)
      await attempts(stage, [200])
      await attempts(stage, [500, 500], { of })
      const count = async (filter: RollupFilter) => (await store.sumRollups(filter, []))[0]?.attempts ?? 0
      expect(await count({ orgId: ORG })).toBe(1)
      expect(await count({ orgId: OTHER_ORG })).toBe(2)
      const shadow = sample.application({ orgId: `${ORG}:operational` })
      await store.createApplication(shadow)
      const own = sample.endpoint(shadow.id, { orgId: shadow.orgId })
      await store.createEndpoint(own)
      await attempts(stage, [500, 500, 500, 500], { of: own })
      expect(await count({ withShadows: false })).toBe(3)
      expect(await count({ orgId: ORG, appId: foreign.id })).toBe(0)
      expect(await count({ orgId: ORG, endpointIds: [endpoint.id, of.id] })).toBe(1)
      expect(await count({})).toBe(7)
    })

    test("sums outlive their endpoint, and are removed after 90 days, no more in a call than the limit", async () => {
      const stage = await setUp()
      const { store, endpoint } = stage
      for (const eventType of ["a", "b", "c"]) await attempts(stage, [200], { eventType })
      await attempts(stage, [200], {}, { startedAt: NOW + HOUR_MS })
      await store.deleteEndpoint(
        endpoint.id,
        sample.task({ action: "cancel", filter: {}, status: "finished" }),
      )
      const end = HOUR + ROLLUP_KEPT_MS
      // Deliveries and messages are removed before.
      while ((await store.purge(end - 1, 100)) > 0) {}
      const count = async () => (await store.sumRollups({ orgId: ORG }, []))[0]!.attempts
      expect(await count()).toBe(4)
      for (const removed of [2, 1, 0]) expect(await store.purge(end, 2)).toBe(removed)
      expect(await count()).toBe(1)
    })
  })
}
