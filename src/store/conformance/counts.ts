/** Counts by status, error, application and event type, and the state of each lane. */

import { describe, expect, test } from "vitest"
import { HEALTHY } from "../../core/protection.ts"
import { lanesOf } from "./lanes.ts"
import { claimed, laneFetch, NOW, newest, ORG, OTHER_ORG, sample } from "./samples.ts"
import { calledOff, revived, type SetUp } from "./stage.ts"
import { makeWorld } from "./world.ts"

export function counts(name: string, setUp: SetUp): void {
  describe(`${name}: counts`, () => {
    test("deliveries are counted by status, and called-off ones separately", async () => {
      const { store, application, endpoint, second } = await makeWorld(setUp)
      const ours = { pending: 2, failed: 1, delivered: 1, dead: 3, calledOff: 2 }
      const none = { pending: 0, failed: 0, delivered: 0, dead: 0, calledOff: 0 }
      expect(await store.countByStatus({})).toEqual({ ...ours, pending: 3 })
      expect(await store.countByStatus({ orgId: ORG })).toEqual(ours)
      expect(await store.countByStatus({ appId: application.id })).toEqual(ours)
      expect(await store.countByStatus({ endpointId: endpoint.id })).toEqual({ ...ours, pending: 1 })
      expect(await store.countByStatus({ endpointId: second })).toEqual({ ...none, pending: 1 })
      const span = { orgId: ORG, since: NOW + 2, until: NOW + 4 }
      expect(await store.countByStatus(span)).toEqual({ ...none, dead: 2, calledOff: 1 })
    })

    test("dead letters are grouped by endpoint, reason and error, the largest group first", async () => {
      const { store, application, endpoint, send, attemptAll, killOff } = await setUp()
      const group = { appId: application.id, endpointId: endpoint.id, deadReason: "exhausted" }
      await killOff(2)
      await send({ maxAttempts: 1, receivedAt: NOW + 7, eventType: "order.sent" })
      await attemptAll(500, NOW + 7)
      const [timedOut] = [await send({ maxAttempts: 1 }), await attemptAll(null)]
      await send()
      const failed = { ...group, errorDetail: "HTTP 500", count: 3, oldestAt: NOW, newestAt: NOW + 7 }
      const silent = { ...group, errorDetail: "timeout", count: 1, oldestAt: NOW, newestAt: NOW }
      expect(await store.groupDead({ orgId: ORG }, 9)).toEqual([failed, silent])
      expect(await store.groupDead({}, 1)).toEqual([failed])
      expect(await store.groupDead({ messageId: timedOut!.messageId }, 9)).toEqual([silent])
      expect(await store.groupDead({ eventTypes: ["order.sent"] }, 9)).toMatchObject([{ count: 1 }])
      expect(await store.groupDead({ orgId: OTHER_ORG }, 9)).toEqual([])
      const [oldest] = await store.listDeliveries({ status: "dead" }, { ...newest(1), order: "ascending" })
      await store.amendIfUnchanged([
        calledOff(oldest!, { deadReason: "exhausted", errorDetail: "HTTP 500: ten: rows" }),
      ])
      expect(await store.groupDead({}, 9)).toHaveLength(3)
      expect(await store.groupDead({}, 9, "cause")).toEqual([failed, silent])
      expect(await store.groupDead({ status: "pending" }, 9)).toEqual([])
    })

    test("the newest attempts of an endpoint are counted by status code, without those of unknown outcome", async () => {
      const { store, lanes, endpoint, send, fetch, attemptAll } = await setUp()
      const attempt = async (status: number | null, at: number) => [
        await send(),
        await attemptAll(status, at),
      ]
      await attempt(200, NOW)
      await attempt(null, NOW + 1)
      await attempt(200, NOW + 2)
      const of = { endpointId: endpoint.id }
      const all = [
        { status: 200, count: 2 },
        { status: 0, count: 1 },
      ]
      expect(await store.countStatusCodes(of, 3)).toEqual(all)
      expect(await store.countStatusCodes(of, 1)).toEqual([{ status: 200, count: 1 }])
      expect(await store.countStatusCodes({ ...of, since: NOW + 1, until: NOW + 2 }, 3)).toEqual([
        { status: 0, count: 1 },
      ])
      expect(await store.countStatusCodes({ endpointId: "ep_x" }, 3)).toEqual([])
      await send()
      const [delivery] = (await fetch(1000)).deliveries
      const unknown = sample.attempt({ status: "unknown", responseStatus: null })
      await lanes.giveBack([{ ...claimed(endpoint.id, 1000, delivery!), attempt: unknown }])
      expect(await store.countStatusCodes(of, 4)).toEqual(all)
    })

    test("messages and their endpoints are counted by application, within a tenant and a span", async () => {
      const { store, application, foreignApplication } = await makeWorld(setUp)
      const other = sample.application()
      await store.createApplication(other)
      await store.acceptMany([sample.message(other.id)])
      const usage = async (...args: Parameters<typeof store.usage>) =>
        Object.fromEntries(
          (await store.usage(...args)).map((one) => [one.appId, [one.messages, one.destinations]]),
        )
      const ours = await store.countDeliveries({ appId: application.id })
      expect(await usage(ORG, null, {})).toEqual({ [application.id]: [7, ours], [other.id]: [1, 0] })
      expect(await usage(OTHER_ORG, null, {})).toEqual({ [foreignApplication]: [1, 1] })
      expect(await usage(ORG, [other.id, foreignApplication], {})).toEqual({ [other.id]: [1, 0] })
      expect(await usage(ORG, [], {})).toEqual({})
      const span = { since: NOW + 2, until: NOW + 4 }
      expect(await usage(ORG, null, span)).toEqual({ [application.id]: [2, 2] })
    })
  })

  describe(`${name}: what stands in the lanes`, () => {
    test("a lane shows its waiting and sending deliveries, the oldest, and the next due times", async () => {
      const { store, application, endpoint, send, fetch, attemptAll } = await setUp()
      const empty = sample.endpoint(application.id, { eventTypes: ["other"] })
      await store.createEndpoint(empty)
      await send({ receivedAt: NOW - 5 })
      await attemptAll(500)
      await send({ receivedAt: NOW + 1 })
      await send({ receivedAt: NOW + 2 })
      await send({ deliverAt: NOW + 90_000 })
      await fetch(200, 1, NOW + 2)
      const lane = {
        endpointId: endpoint.id,
        appId: application.id,
        waiting: 3,
        retrying: 1,
        sending: 1,
        isLowerBound: false,
        oldestAt: NOW - 5,
        first: [
          { nextRetryAt: null, deferred: false, dated: false },
          { nextRetryAt: NOW + 90_000, deferred: true, dated: true },
        ],
      }
      expect(await store.listLanes({}, newest(9))).toEqual([lane])
      for (const filter of [{ orgId: ORG }, { appId: application.id }, { endpointId: endpoint.id }])
        expect(await store.listLanes(filter, newest(9))).toEqual([lane])
      for (const filter of [{ orgId: OTHER_ORG }, { appId: "app_x" }, { endpointId: empty.id }])
        expect(await store.listLanes(filter, newest(9))).toEqual([])
    })

    test("a limited read counts the first deliveries of each queue, and says when there are more", async () => {
      const { store, endpoint, send, attemptAll } = await setUp()
      for (let i = 0; i < 3; i++) await send()
      await attemptAll(500)
      for (let i = 0; i < 5; i++) await send()
      const read = async (most?: number) => {
        const [lane] = await store.listLanes({ endpointId: endpoint.id }, newest(9), most)
        return lane
      }
      const whole = { waiting: 5, retrying: 3, isLowerBound: false }
      expect(await read()).toMatchObject(whole)
      expect(await read(6)).toEqual(await read())
      const { waiting, retrying, ...exact } = (await read())!
      expect(await read(2)).toEqual({ ...exact, waiting: 2, retrying: 2, isLowerBound: true })
    })

    test("a limited read finds the head of an ordered lane that waits for its retry behind due deliveries", async () => {
      const { store, send, attemptAll } = await setUp({ ordered: true })
      await send()
      await attemptAll(500)
      for (let i = 0; i < 5; i++) await send()
      const lanes = await store.listLanes({}, newest(9), 2)
      expect(lanes).toMatchObject([
        { isLowerBound: true, oldestAt: NOW, first: [{ nextRetryAt: NOW + 30_000 }] },
      ])
    })

    test("a fetched delivery that has not started does not count as sending", async () => {
      const { store, endpoint, send } = await setUp()
      for (let i = 0; i < 5; i++) await send()
      await lanesOf(store).fetch(laneFetch(endpoint.id, 1, { starting: 2 }), NOW)
      expect(await store.listLanes({}, newest(9))).toMatchObject([{ waiting: 5, sending: 2 }])
    })

    test("a gate shows why an endpoint's deliveries wait, and the head of an ordered lane", async () => {
      const { store, application, endpoint, send, attemptAll } = await setUp({ ordered: true })
      const open = {
        deleted: false,
        disabled: false,
        paused: false,
        holdUntil: null,
        protection: HEALTHY,
        head: null,
      }
      expect(await store.getGates([endpoint.id, "ep_nobody"])).toEqual([
        { ...open, endpointId: endpoint.id, url: endpoint.url },
      ])
      await send({ deliverAt: NOW + 5 })
      const { messageId } = await send()
      await send()
      await attemptAll(500)
      const [head] = await store.listDeliveries({ messageId }, newest(1))
      const { seq, nextRetryAt } = head!
      await store.updateEndpoint(endpoint.id, { paused: true, holdUntil: NOW + 9 }, NOW)
      const other = sample.endpoint(application.id, { disabled: true })
      await store.createEndpoint(other)
      const gates = await store.getGates([endpoint.id, other.id])
      expect(gates.find(({ endpointId }) => endpointId === endpoint.id)).toEqual({
        ...open,
        endpointId: endpoint.id,
        url: endpoint.url,
        paused: true,
        holdUntil: NOW + 9,
        head: { seq, nextRetryAt },
      })
      expect(gates.find(({ endpointId }) => endpointId === other.id)).toMatchObject({
        disabled: true,
        head: null,
      })
      await store.deleteEndpoint(other.id, sample.task({ action: "cancel" }))
      expect(await store.getGates([other.id])).toMatchObject([{ deleted: true }])
    })

    test("an ordered lane is due when its head is", async () => {
      const { store, send, attemptAll } = await setUp({ ordered: true })
      await send()
      await send()
      await attemptAll(500)
      expect(await store.listLanes({}, newest(9))).toMatchObject([
        { waiting: 1, retrying: 1, first: [{ nextRetryAt: NOW + 30_000 }] },
      ])
    })

    test("a revived delivery is in its lane again, also that of a deleted endpoint", async () => {
      const { store, endpoint, killOff } = await setUp()
      const [dead] = await killOff(1)
      expect(await store.listLanes({}, newest(9))).toEqual([])
      await store.amendIfUnchanged([revived(dead!, NOW + 5)])
      await store.deleteEndpoint(endpoint.id, sample.task({ action: "cancel" }))
      expect(await store.listLanes({}, newest(9))).toMatchObject([
        { waiting: 1, sending: 0, first: [{ nextRetryAt: null }] },
      ])
      const work = await lanesOf(store).fetch(laneFetch(endpoint.id, 200), NOW + 5)
      expect(work).toMatchObject({ gate: { deleted: true }, deliveries: [{ id: dead!.id }] })
    })
  })
}
