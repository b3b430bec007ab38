/** Fetching: which deliveries a lane returns, in which order, and with which data. */
import { describe, expect, test } from "vitest"
import { lanesOf } from "./lanes.ts"
import { claimed as claimOf, laneFetch, NOW, sample, settlement } from "./samples.ts"
import type { SetUp } from "./stage.ts"

export function fetching(name: string, setUp: SetUp): void {
  describe(`${name}: fetching`, () => {
    test("returns due deliveries with payload and endpoint, once for each claim", async () => {
      const { endpoint, send, fetch } = await setUp()
      await send()
      await send({ deliverAt: NOW + 60_000 })
      const work = await fetch(1)
      expect(work.deliveries).toHaveLength(1)
      expect(Buffer.from(work.deliveries[0]!.payload!).toString()).toBe('{"n":1}')
      expect(work.endpoint).toMatchObject({ id: endpoint.id, headers: { "x-a": "b" } })
      expect(work.nextDueAt).toBe(NOW + 60_000)
      expect((await fetch(1)).deliveries).toHaveLength(0)
      expect((await fetch(1, 10, NOW + 60_000)).deliveries).toHaveLength(1)
    })

    test.each([
      ["trace context", { traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01" }],
      ["inbound request", { inbound: '{"method":"PUT"}' }],
    ])("returns the %s of each message, at every claim", async (_what, said) => {
      const { send, fetch } = await setUp()
      await send(said)
      await send()
      for (const token of [1, 2])
        expect((await fetch(token)).deliveries).toMatchObject([said, { traceparent: null, inbound: null }])
    })

    test("returns the endpoint only when the caller has an older version", async () => {
      const { store, endpoint, send } = await setUp()
      await send()
      const ask = async (knownVersion: number | null) =>
        await lanesOf(store).fetch(laneFetch(endpoint.id, 1, { limit: 1, knownVersion }), NOW)
      expect((await ask(1)).endpoint).toBeNull()
      await store.updateEndpoint(endpoint.id, { url: "http://127.0.0.1:9/new" }, NOW)
      expect((await ask(1)).endpoint).toMatchObject({ url: "http://127.0.0.1:9/new", version: 2 })
    })

    test("returns the application's limit with the endpoint, and a new version when it changes", async () => {
      const { store, application, endpoint, send } = await setUp()
      await send()
      const ask = async (knownVersion: number) =>
        (await lanesOf(store).fetch(laneFetch(endpoint.id, 1, { knownVersion }), NOW)).endpoint
      await store.updateApplication(application.id, { name: "New" }, NOW)
      expect(await ask(1)).toBeNull()
      await store.updateApplication(application.id, { rateLimit: 7 }, NOW)
      expect(await ask(1)).toMatchObject({ appRateLimit: 7, version: 2 })
      expect(await store.getEndpoint(application.id, endpoint.id)).toMatchObject({ appRateLimit: 7 })
      await store.updateApplication(application.id, { rateLimit: 7 }, NOW)
      expect(await ask(2)).toBeNull()
    })

    test("returns nothing for a paused, disabled or held endpoint, and reports a deleted one", async () => {
      const { store, endpoint, send, fetch } = await setUp()
      await send()
      await store.updateEndpoint(endpoint.id, { paused: true }, NOW)
      expect(await fetch(1)).toMatchObject({ gate: { paused: true }, deliveries: [] })
      await store.updateEndpoint(endpoint.id, { paused: false, holdUntil: NOW + 500 }, NOW)
      expect(await fetch(1)).toMatchObject({
        gate: { paused: false, holdUntil: NOW + 500 },
        deliveries: [],
      })
      expect((await fetch(1, 10, NOW + 500)).deliveries).toHaveLength(1)
      await store.updateEndpoint(endpoint.id, { disabled: true }, NOW)
      expect(await fetch(2, 10, NOW + 500)).toMatchObject({ gate: { disabled: true }, deliveries: [] })
      await store.deleteEndpoint(
        endpoint.id,
        sample.task({ action: "cancel", filter: { endpointId: endpoint.id, live: true } }),
      )
      expect(await fetch(3, 10, NOW + 500)).toMatchObject({
        gate: { deleted: true },
        deliveries: [{ stalls: 1 }],
      })
    })

    test("orders by priority, then first attempts before retries, with a share for retries", async () => {
      const { store, endpoint, send, fetch } = await setUp()
      const retried = await send({ metadata: { name: "retried" } })
      const [claimed] = (await fetch(1)).deliveries
      await lanesOf(store).settle([settlement(endpoint.id, 1, claimed!, 500)])
      const later = NOW + 40_000
      const low = await send({ priority: "low", receivedAt: later })
      const normal = await send({ receivedAt: later })
      const high = await send({ priority: "high", receivedAt: later })
      const names = new Map([
        [retried.messageId, "retried"],
        [low.messageId, "low"],
        [normal.messageId, "normal"],
        [high.messageId, "high"],
      ])
      const order = async (limit: number, retryShare: number) => {
        const { deliveries } = await fetch(1, limit, later, retryShare)
        await lanesOf(store).giveBack(
          deliveries.map((one) => ({ ...claimOf(endpoint.id, 1, one), attempt: null })),
        )
        for (const { messageId, priority } of deliveries)
          expect(priority).toBe(names.get(messageId)!.replace("retried", "normal"))
        return deliveries.map(({ messageId }) => names.get(messageId))
      }
      expect(await order(9, 0)).toEqual(["high", "normal", "retried", "low"])
      expect(await order(2, 0)).toEqual(["high", "normal"])
      // The share selects deliveries; it does not order them.
      expect(await order(2, 1)).toEqual(["high", "retried"])
      expect(await order(9, 9)).toEqual(["high", "normal", "retried", "low"])
    })

    test("a fetch returns no more retries than the lane asks for, and all first attempts", async () => {
      const { store, endpoint, send, fetch } = await setUp()
      for (let i = 0; i < 3; i++) await send({ priority: i === 0 ? "high" : "normal" })
      const lanes = lanesOf(store)
      const failed = (await fetch(1)).deliveries
      await lanes.settle(failed.map((one) => settlement(endpoint.id, 1, one, 500)))
      const later = NOW + 40_000
      for (let i = 0; i < 2; i++) await send({ receivedAt: later })
      const counts = async (retries: number, limit = 9) => {
        const want = { limit, retryShare: 2, retries }
        const { deliveries, nextDueAt } = await lanes.fetch(laneFetch(endpoint.id, 1, want), later)
        await lanes.giveBack(deliveries.map((one) => ({ ...claimOf(endpoint.id, 1, one), attempt: null })))
        return [...deliveries.map(({ attemptCount }) => attemptCount), nextDueAt]
      }
      expect(await counts(0)).toEqual([0, 0, null])
      expect(await counts(1)).toEqual([1, 0, 0, null])
      expect(await counts(2)).toEqual([1, 0, 0, 1, null])
      expect(await counts(3)).toEqual([1, 0, 0, 1, 1, null])
      expect(await counts(1, 2)).toEqual([1, 0, later])
    })

    test("the head of an ordered lane waits in the store while the lane asks for no retries", async () => {
      const { store, endpoint, send, fetch } = await setUp({ ordered: true })
      await send()
      const lanes = lanesOf(store)
      const want = (retries: number) => laneFetch(endpoint.id, 1, { retries })
      const [first] = (await lanes.fetch(want(0), NOW)).deliveries
      await lanes.settle([settlement(endpoint.id, 1, first!, 500)])
      await send()
      const later = NOW + 40_000
      expect(await lanes.fetch(want(0), later)).toMatchObject({ deliveries: [], nextDueAt: null })
      expect((await fetch(1, 9, later)).deliveries.map(({ id }) => id)).toEqual([first!.id])
    })

    test("an ordered lane returns only its head, also while the head waits", async () => {
      const { store, endpoint, send, fetch } = await setUp({ ordered: true })
      const [first, second] = [await send(), await send()]
      const work = await fetch(1)
      expect(work.deliveries.map(({ messageId }) => messageId)).toEqual([first.messageId])
      expect((await fetch(1)).deliveries).toEqual([])
      await lanesOf(store).settle([settlement(endpoint.id, 1, work.deliveries[0]!, 500)])
      expect(await fetch(1)).toMatchObject({ deliveries: [], nextDueAt: NOW + 30_000 })
      const [head] = (await fetch(1, 9, NOW + 30_000)).deliveries
      expect(head!.messageId).toBe(first.messageId)
      await lanesOf(store).settle([settlement(endpoint.id, 1, head!, 200, NOW + 30_000)])
      expect((await fetch(1, 9, NOW + 30_000)).deliveries[0]!.messageId).toBe(second.messageId)
    })

    test("a deferred message joins the ordered lane when it is due, and blocks nothing before", async () => {
      const { store, endpoint, send, fetch } = await setUp({ ordered: true })
      const deferred = await send({ deliverAt: NOW + 5000 })
      const next = await send()
      const last = await send()
      const [head] = (await fetch(1)).deliveries
      expect(head!.messageId).toBe(next.messageId)
      await lanesOf(store).settle([settlement(endpoint.id, 1, head!, 200)])
      expect((await fetch(2, 9, NOW + 5000)).deliveries[0]!.messageId).toBe(deferred.messageId)
      expect((await fetch(2, 9, NOW + 5000)).deliveries).toEqual([])
      expect(last.matched).toBe(1)
    })

    test("deferred messages that are due are sent in the order of acceptance", async () => {
      const { store, endpoint, send, fetch } = await setUp({ ordered: true })
      const early = await send({ deliverAt: NOW + 2000 })
      const head = await send()
      await send({ deliverAt: NOW + 1000 })
      const [claimed] = (await fetch(1)).deliveries
      expect(claimed!.messageId).toBe(head.messageId)
      await lanesOf(store).settle([settlement(endpoint.id, 1, claimed!, 500)])
      expect((await fetch(1, 9, NOW + 5000)).deliveries.map(({ messageId }) => messageId)).toEqual([
        early.messageId,
      ])
    })

    test.each([
      false,
      true,
    ])("a date is due by the wall clock, a delay and a retry by the steady one (ordered: %s)", async (ordered) => {
      const { store, endpoint, send } = await setUp({ ordered })
      const dated = await send({ deliverAt: NOW + 5000 })
      const delayed = await send({ deliverAt: NOW + 5000, dated: false })
      const fetch = async (token: number, now: number, wall: number) =>
        await lanesOf(store).fetch(laneFetch(endpoint.id, token), now, wall)
      const nothing = await fetch(1, NOW + 4999, NOW + 4999)
      expect(nothing).toMatchObject({ deliveries: [], nextDueAt: NOW + 5000 })
      // The wall clock was set back: the delay has passed, and the date has not come.
      const [first] = (await fetch(1, NOW + 5000, NOW - 3_600_000)).deliveries
      expect(first).toMatchObject({ messageId: delayed.messageId, ageFrom: NOW + 5000 })
      const later = settlement(endpoint.id, 1, first!, 500, NOW + 5000)
      await lanesOf(store).settle([later])
      expect(await fetch(1, NOW + 5001, NOW - 3_599_999)).toMatchObject({
        deliveries: [],
        nextDueAt: later.change.nextRetryAt,
      })
      // It was set forward: the date has come, long before the steady clock says so.
      const [second] = (await fetch(1, NOW + 5002, NOW + 9000)).deliveries
      expect(second).toMatchObject({
        messageId: dated.messageId,
        nextRetryAt: null,
        ageFrom: NOW + 5002 - 4000,
      })
    })

    test.each([
      false,
      true,
    ])("the next date is converted to the steady clock, for a fetch and for the scan (ordered: %s)", async (ordered) => {
      const { store, application, endpoint, send } = await setUp({ ordered })
      await send({ deliverAt: NOW + 50_000 })
      const back = NOW - 40_000
      const work = await lanesOf(store).fetch(laneFetch(endpoint.id, 1), NOW, back)
      // 90 s, of which the steady clock, which is ahead, may count only 95 %.
      expect(work).toMatchObject({ deliveries: [], nextDueAt: NOW + 85_500 })
      expect(await store.scanLanes(null, 9, { now: NOW, wall: back })).toEqual([
        { endpointId: endpoint.id, appId: application.id, dueAt: NOW + 85_500, transport: "http" },
      ])
      expect(await store.scanLanes(null, 9, { now: NOW, wall: NOW + 40_000 })).toMatchObject([
        { dueAt: NOW + 10_000 },
      ])
      expect(await store.scanLanes(null, 9, { now: NOW, wall: NOW + 60_000 })).toMatchObject([{ dueAt: NOW }])
    })

    test("a dated delivery keeps waiting when its endpoint becomes ordered or unordered, and joins by the new order", async () => {
      const { store, endpoint, send, fetch } = await setUp()
      const dated = await send({ deliverAt: NOW + 5000 })
      await store.updateEndpoint(endpoint.id, { ordered: true }, NOW)
      await store.updateEndpoint(endpoint.id, { ordered: false }, NOW)
      const others = [await send(), await send()]
      expect((await fetch(1)).deliveries.map(({ messageId }) => messageId)).toEqual(
        others.map(({ messageId }) => messageId),
      )
      expect((await fetch(1, 9, NOW + 5000)).deliveries.map(({ messageId }) => messageId)).toEqual([
        dated.messageId,
      ])
    })

    test("a lane with live deliveries is found by the scan with its earliest due time, page by page", async () => {
      const { store, application, endpoint, send } = await setUp()
      const second = sample.endpoint(application.id)
      await store.createEndpoint(second)
      await send({ deliverAt: NOW + 9000 })
      await send({ deliverAt: NOW + 4000 })
      const [first] = await store.scanLanes(null, 1)
      expect(first).toEqual({
        endpointId: endpoint.id,
        appId: application.id,
        dueAt: NOW + 4000,
        transport: "http",
      })
      expect(await store.scanLanes(first!.endpointId, 5)).toMatchObject([{ endpointId: second.id }])
    })
  })
}
