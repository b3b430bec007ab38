/** The survey of the whole store. */
import { describe, expect, test } from "vitest"
import { NOTIFICATIONS_ORG } from "../../core/org.ts"
import { PRESETS } from "../../core/presets.ts"
import { HEALTHY } from "../../core/protection.ts"
import { type LiveDelivery, settle } from "../../core/settle.ts"
import type { Endpoint } from "../store.ts"
import { NOW, ORG, OTHER_ORG, sample, settlement } from "./samples.ts"
import { amendment, calledOff, revived, type SetUp } from "./stage.ts"

const DAY = 86_400_000
const LATER = NOW + DAY
const NOTHING = { due: 0, scheduled: 0, retrying: 0, held: 0 }

export function survey(name: string, setUp: SetUp): void {
  describe(`${name}: survey`, () => {
    test("an empty store has nothing to count", async () => {
      const { store } = await setUp()
      const found = { deliveries: NOTHING, oldestDue: null, deadLetters: [], endpoints: 1, waiting: {} }
      expect(await store.survey(NOW)).toEqual(found)
    })

    for (const ordered of [false, true])
      test(`deliveries are counted by state, ${ordered ? "ordered" : "in any order"}`, async () => {
        const { store, endpoint, send, attemptAll } = await setUp({ ordered })
        const states = async (now = NOW) => (await store.survey(now)).deliveries
        const oldest = async (now = NOW) => (await store.survey(now)).oldestDue
        await send({ receivedAt: NOW - 9, deliverAt: NOW + 50, dated: false })
        await send({ receivedAt: NOW - 9, deliverAt: NOW + 60, dated: true })
        expect(await states()).toEqual({ ...NOTHING, scheduled: 2 })
        expect(await oldest()).toBeNull()
        expect(await states(NOW + 60)).toEqual({ ...NOTHING, due: 2 })
        expect(await oldest(NOW + 60)).toEqual({ at: NOW + 50, endpointId: endpoint.id })

        await send({ receivedAt: NOW - 8 })
        await send({ receivedAt: NOW - 7 })
        expect(await states()).toEqual({ ...NOTHING, due: 2, scheduled: 2 })
        expect(await oldest()).toEqual({ at: NOW - 8, endpointId: endpoint.id })
        await attemptAll(500)
        // In the ordered line one delivery was tried, and the other waits behind it.
        expect(await states()).toEqual({ ...NOTHING, retrying: 2, scheduled: 2 })
        expect(await oldest()).toBeNull()
        const retried = await states(NOW + 3_600_000)
        expect(retried).toEqual({ ...NOTHING, due: 4 })
      })

    test.each<[string, Partial<Endpoint>]>([
      ["paused", { paused: true }],
      ["disabled", { disabled: true }],
      ["held by Retry-After", { holdUntil: NOW + 1 }],
      ["open", { protection: { ...HEALTHY, phase: "open", until: NOW + 1 } }],
    ])("deliveries of an endpoint that is %s are held", async (_why, patch) => {
      const { store, endpoint, send } = await setUp()
      await send()
      await store.updateEndpoint(endpoint.id, patch, NOW)
      const { deliveries, oldestDue } = await store.survey(NOW)
      expect(deliveries).toEqual({ ...NOTHING, held: 1 })
      expect(oldestDue).toBeNull()
    })

    test("deliveries to an agent are held while it is absent, and due since it connected", async () => {
      const { store, application, endpoint, send } = await setUp()
      const relayed = sample.endpoint(application.id, { url: "relay://hub" })
      await store.createEndpoint(relayed)
      await send({ receivedAt: NOW - 9000, to: relayed.id })
      await send({ receivedAt: NOW - 5, to: endpoint.id })
      const found = async (at: number | null) => {
        const { deliveries, oldestDue } = await store.survey(NOW, { [relayed.id]: at, ep_nobody: null })
        return [deliveries.due, deliveries.held, oldestDue]
      }
      expect(await found(null)).toEqual([1, 1, { at: NOW - 5, endpointId: endpoint.id }])
      expect(await found(NOW - 7)).toEqual([2, 0, { at: NOW - 7, endpointId: relayed.id }])
      expect(await found(NOW - 9999)).toEqual([2, 0, { at: NOW - 9000, endpointId: relayed.id }])
    })

    test("a delivery is due for no longer than its endpoint can be sent to", async () => {
      const { store, endpoint, send } = await setUp()
      await send({ receivedAt: NOW - 9000 })
      await store.updateEndpoint(endpoint.id, { holdUntil: NOW - 5 }, NOW)
      expect((await store.survey(NOW)).oldestDue).toEqual({ at: NOW - 5, endpointId: endpoint.id })
      await store.updateEndpoint(endpoint.id, { paused: true }, NOW - 4)
      await store.updateEndpoint(endpoint.id, { paused: false }, NOW - 3)
      expect((await store.survey(NOW)).oldestDue).toEqual({ at: NOW - 3, endpointId: endpoint.id })
    })

    test("waiting deliveries are counted by endpoint for the endpoints that are named", async () => {
      const { store, application, endpoint, send, attemptAll } = await setUp()
      const [paused, idle, other] = [1, 2, 3].map(() => sample.endpoint(application.id))
      for (const one of [paused!, idle!, other!]) await store.createEndpoint(one)
      await send({ to: endpoint.id })
      await attemptAll(500)
      await send({ to: endpoint.id })
      for (let i = 0; i < 3; i++) await send({ to: paused!.id })
      await send({ to: other!.id })
      await store.updateEndpoint(paused!.id, { paused: true }, NOW)
      const named = [endpoint.id, paused!.id, idle!.id, "ep_nobody"]
      expect((await store.survey(NOW, {}, named)).waiting).toEqual({ [endpoint.id]: 2, [paused!.id]: 3 })
      expect((await store.survey(NOW)).waiting).toEqual({})
    })

    test("an endpoint that fails is not the one with the oldest due delivery", async () => {
      const { store, application, endpoint, send } = await setUp()
      const fine = sample.endpoint(application.id)
      await store.createEndpoint(fine)
      await send({ receivedAt: NOW - 9, to: endpoint.id })
      await send({ receivedAt: NOW - 5, to: fine.id })
      const oldest = async () => (await store.survey(NOW)).oldestDue
      expect(await oldest()).toEqual({ at: NOW - 9, endpointId: endpoint.id })
      for (const state of [{ isFailing: true }, { phase: "ramping" as const }]) {
        await store.updateEndpoint(endpoint.id, { protection: { ...HEALTHY, ...state } }, NOW)
        expect(await oldest()).toEqual({ at: NOW - 5, endpointId: fine.id })
      }
      expect((await store.survey(NOW)).deliveries).toEqual({ ...NOTHING, due: 2 })
    })

    test("a delivery that was sent again does not hide one that is due for longer", async () => {
      const { store, endpoint, send, killOff } = await setUp()
      const [dead] = await killOff(1)
      await send({ receivedAt: NOW - 900_000 })
      await store.amendIfUnchanged([revived(dead!, NOW)])
      const found = await store.survey(NOW)
      expect(found.deliveries).toEqual({ ...NOTHING, due: 2 })
      expect(found.oldestDue).toEqual({ at: NOW - 900_000, endpointId: endpoint.id })
    })

    test("retries that wait for their budget are due, and not late", async () => {
      const { store, endpoint, send, attemptAll } = await setUp()
      await send()
      await attemptAll(500)
      const later = NOW + 3_600_000
      const spent = { ...HEALTHY, retriesAt: later + 1 }
      await store.updateEndpoint(endpoint.id, { protection: spent }, NOW)
      const found = await store.survey(later)
      expect([found.deliveries, found.oldestDue]).toEqual([{ ...NOTHING, due: 1 }, null])
      expect((await store.survey(later + 1)).oldestDue).not.toBeNull()
    })

    test("dead letters are counted by reason, without those that were called off or discarded", async () => {
      const { store, send, killOff } = await setUp()
      const [first] = await killOff(3)
      await store.amendIfUnchanged([
        {
          seq: first!.seq,
          expectedStatus: "dead",
          expectedAttemptCount: first!.attemptCount,
          change: { discardedAt: NOW },
        },
      ])
      await send()
      const page = { limit: 9, order: "ascending", from: null, back: false } as const
      const [waiting] = await store.listDeliveries({ orgId: ORG, live: true }, page)
      await store.amendIfUnchanged([calledOff(waiting!)])
      const { deadLetters } = await store.survey(NOW)
      expect(deadLetters).toEqual([{ reason: "exhausted", count: 2, oldestAt: NOW }])
    })

    test("a dead letter is as old as its death, also without an attempt, and dies anew after a retry", async () => {
      const { store, lanes, endpoint, send, fetch, attemptAll } = await setUp()
      const oldestAt = async () => {
        const { deadLetters } = await store.survey(LATER)
        return Object.fromEntries(deadLetters.map((one) => [one.reason, one.oldestAt]))
      }
      await send({ receivedAt: NOW - 9 * DAY, maxAttempts: 1 })
      const [exhausted] = await attemptAll(500)
      for (let i = 0; i < 2; i++) await send({ receivedAt: NOW - 9 * DAY })
      const [first, second] = (await fetch(101)).deliveries
      const expired = (delivery: LiveDelivery, now: number) =>
        settle(delivery, { kind: "overdue" }, PRESETS.relay, now, () => 0)
      const outcome = settlement(endpoint.id, 101, first!, 500)
      await lanes.settle([{ ...outcome, change: expired(first!, NOW + 1), attempt: null }])
      expect(await oldestAt()).toEqual({ exhausted: NOW, expired: NOW + 1 })

      const read = async ({ id }: { readonly id: string }) => (await store.getDelivery(ORG, id))!
      const ended = await read(second!)
      const amendments = [
        revived(await read(first!)),
        amendment(ended, expired(ended as LiveDelivery, NOW + 2)),
      ]
      await store.amendIfUnchanged(amendments)
      expect(await oldestAt()).toEqual({ exhausted: NOW, expired: NOW + 2 })

      await store.amendIfUnchanged([revived(exhausted!)])
      await attemptAll(400, LATER)
      expect((await oldestAt()).exhausted).toBe(LATER)
    })

    test("tenants of Posthorn's own are left out, all others are counted", async () => {
      const { store, killOff, send, attemptAll } = await setUp()
      for (const orgId of [OTHER_ORG, `${ORG}:operational`, NOTIFICATIONS_ORG]) {
        const other = sample.application({ orgId })
        await store.createApplication(other)
        const endpoint = sample.endpoint(other.id, { orgId })
        await store.createEndpoint(endpoint)
        const accept = (more: object) => store.acceptMany([sample.message(other.id, { orgId, ...more })])
        await accept({ maxAttempts: 1 })
        await attemptAll(500, NOW, endpoint)
        await accept({ receivedAt: orgId === OTHER_ORG ? NOW : NOW - 9 })
      }
      await killOff(2)
      await send()
      const { deliveries, oldestDue, deadLetters, endpoints } = await store.survey(NOW)
      expect([deliveries, oldestDue?.at, endpoints]).toEqual([{ ...NOTHING, due: 2 }, NOW, 2])
      expect(deadLetters).toMatchObject([{ reason: "exhausted", count: 3 }])
    })
  })
}
