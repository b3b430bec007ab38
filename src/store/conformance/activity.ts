/** What the health of endpoints needs: since when deliveries wait, the last success, and who may be in trouble. */
import { describe, expect, test } from "vitest"
import { HEALTHY } from "../../core/protection.ts"
import { HOUR_MS } from "../rollups.ts"
import { NOW, newest, ORG, sample } from "./samples.ts"
import type { SetUp } from "./stage.ts"

const HOUR = NOW - (NOW % HOUR_MS)

export function activity(name: string, setUp: SetUp): void {
  describe(`${name}: activity`, () => {
    for (const ordered of [false, true])
      test(`the oldest delivery that waits is found, ${ordered ? "ordered" : "in any order"}`, async () => {
        const { store, application, endpoint, send, attemptAll } = await setUp({ ordered })
        const idle = sample.endpoint(application.id, { eventTypes: ["none"] })
        await store.createEndpoint(idle)
        const oldest = async (now = NOW) => {
          const found = await store.getActivity([endpoint.id, idle.id, "ep_nobody"], now)
          expect(found).toHaveLength(2)
          expect(found.find(({ endpointId }) => endpointId === idle.id)).toEqual({
            endpointId: idle.id,
            oldestWaitingAt: null,
            lastSuccessAt: null,
          })
          return found.find(({ endpointId }) => endpointId === endpoint.id)!.oldestWaitingAt
        }
        expect(await oldest()).toBeNull()

        await send({ receivedAt: NOW - 9, deliverAt: NOW + 50, dated: false })
        await send({ receivedAt: NOW - 9, deliverAt: NOW + 60, dated: true })
        expect(await oldest(NOW + 49)).toBeNull()
        expect(await oldest(NOW + 60)).toBe(NOW + 50)

        const priority = ordered ? {} : ({ priority: "low" } as const)
        await send({ receivedAt: NOW - 8, ...priority })
        await send({ receivedAt: NOW - 7 })
        if (!ordered) await send({ receivedAt: NOW - 6, priority: "high" })
        expect(await oldest()).toBe(NOW - 8)
        await attemptAll(500)
        await send({ receivedAt: NOW - 5 })
        expect(await oldest()).toBe(NOW - 8)
      })

    test("a delivery that has ended does not wait", async () => {
      const { store, endpoint, send, attemptAll } = await setUp()
      const oldest = async () => (await store.getActivity([endpoint.id], NOW))[0]!.oldestWaitingAt
      await send({ receivedAt: NOW - 8, maxAttempts: 1 })
      await attemptAll(500)
      expect(await oldest()).toBeNull()
      await send({ receivedAt: NOW - 7 })
      expect(await oldest()).toBe(NOW - 7)
      await attemptAll(200)
      expect(await oldest()).toBeNull()
    })

    test("the last success is found, also behind hours of failures", async () => {
      const { store, endpoint, send, attemptAll } = await setUp()
      const last = async () => (await store.getActivity([endpoint.id], NOW))[0]!.lastSuccessAt
      const attempt = async (status: number, hour: number, eventType: string) => {
        await send({ eventType, maxAttempts: 1 })
        await attemptAll(status, NOW + hour * HOUR_MS)
      }
      await attempt(500, 0, "a")
      expect(await last()).toBeNull()
      await attempt(200, 1, "b")
      await attempt(200, 1, "a")
      const [{ lastSuccessAt } = { lastSuccessAt: null }] = await store.sumRollups(
        { endpointIds: [endpoint.id] },
        [],
      )
      await attempt(500, 2, "a")
      await attempt(500, 3, "a")
      expect(await last()).toBe(lastSuccessAt)
      expect(lastSuccessAt).toBeGreaterThanOrEqual(NOW + HOUR_MS)
    })

    test("a pause is stored with its time, which a second pause keeps", async () => {
      const { store, endpoint } = await setUp()
      const pausedAt = async () => (await store.getEndpoints([endpoint.id]))[0]!.pausedAt
      await store.updateEndpoint(endpoint.id, { paused: true }, NOW + 1)
      await store.updateEndpoint(endpoint.id, { paused: true }, NOW + 2)
      expect(await pausedAt()).toBe(NOW + 1)
      await store.updateEndpoint(endpoint.id, { paused: false }, NOW + 3)
      expect(await pausedAt()).toBeNull()
    })

    test("endpoints that may be in trouble are listed without the others", async () => {
      const { store, application, send, attemptAll } = await setUp()
      const add = async (more: Parameters<typeof sample.endpoint>[1] = {}) => {
        const made = sample.endpoint(application.id, { eventTypes: ["none"], ...more })
        await store.createEndpoint(made)
        return made
      }
      const fine = await add()
      await send({ to: fine.id })
      await attemptAll(200, NOW, fine)
      const disabled = await add({ disabled: true })
      const paused = await add({ paused: true })
      const relayed = await add({ url: "relay://hub" })
      const learned = await add({ protection: { ...HEALTHY, failures: 1 } })
      const failed = await add()
      const failedBefore = await add()
      for (const [of, now] of [
        [failed, NOW],
        [failedBefore, HOUR - 60_000],
      ] as const) {
        await send({ to: of.id, maxAttempts: 1, receivedAt: now })
        await attemptAll(500, now, of)
        // The next attempt succeeds: nothing is learned, and the roll-up alone shows the failure.
        await store.updateEndpoint(of.id, { protection: HEALTHY }, now)
      }
      const list = async (of: { readonly orgId?: string; readonly appId?: string }) => {
        const page = { ...newest(9), order: "ascending", from: null } as const
        return (await store.listEndpoints({ ...of, troubledSince: HOUR }, page)).map(({ id }) => id)
      }
      const troubled = [disabled, paused, relayed, learned, failed].map(({ id }) => id).sort()
      expect(await list({ appId: application.id })).toEqual(troubled)
      expect(await list({ orgId: ORG })).toEqual(troubled)
    })
  })
}
