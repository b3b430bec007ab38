/** Additions: deliveries of older messages to an endpoint. */
import { describe, expect, test } from "vitest"
import { lanesOf } from "./lanes.ts"
import { AT, laneFetch, NOW, newest, sample } from "./samples.ts"
import type { SetUp, Stage } from "./stage.ts"

const LATER = NOW + 60_000
const LATER_AT = { now: LATER, wall: LATER }

export function additions(name: string, setUp: SetUp): void {
  const lateEndpoint = async ({ store, application }: Stage, ordered = false) => {
    const endpoint = sample.endpoint(application.id, { ordered, url: "http://127.0.0.1:9/late" })
    await store.createEndpoint(endpoint)
    return endpoint
  }

  describe(`${name}: adding deliveries`, () => {
    test("adds the delivery as accepting would have, due now and with its age from now", async () => {
      const stage = await setUp()
      const { store, application, send } = stage
      const said = { sessionId: "s1", maxAttempts: 4, priority: "high" as const, eventType: "order.shipped" }
      const { messageId } = await send(said)
      const late = await lateEndpoint(stage)
      expect(await store.addIfMissing([{ messageId, endpointId: late.id, manual: true }], LATER_AT)).toEqual([
        true,
      ])
      expect(await store.listDeliveries({ endpointId: late.id }, newest(9))).toMatchObject([
        {
          ...said,
          messageId,
          appId: application.id,
          targetUrl: late.url,
          status: "pending",
          attemptCount: 0,
          receivedAt: NOW,
          nextRetryAt: null,
          ageFrom: LATER,
          manual: true,
        },
      ])
      expect(await store.getMessage(application.id, messageId)).toMatchObject({ matched: 2 })
    })

    test("makes its lane due", async () => {
      const stage = await setUp({ eventTypes: ["other"] })
      const { store, application, send } = stage
      const { messageId } = await send()
      const late = await lateEndpoint(stage)
      await store.addIfMissing([{ messageId, endpointId: late.id, manual: false }], LATER_AT)
      expect(await store.scanLanes(null, 9)).toEqual([
        { endpointId: late.id, appId: application.id, dueAt: 0, transport: "http" },
      ])
      const work = await lanesOf(store).fetch(laneFetch(late.id, 1), LATER)
      expect(work.deliveries).toMatchObject([{ messageId, manual: false }])
      expect(Buffer.from(work.deliveries[0]!.payload!).toString()).toBe('{"n":1}')
    })

    test("adds a delivery once, also when a call names it twice", async () => {
      const stage = await setUp()
      const { store, endpoint, send } = stage
      const { messageId } = await send()
      const late = await lateEndpoint(stage)
      const addition = { messageId, endpointId: late.id, manual: true }
      expect(
        await store.addIfMissing([{ ...addition, endpointId: endpoint.id }, addition, addition], LATER_AT),
      ).toEqual([false, true, false])
      expect(await store.addIfMissing([addition], LATER_AT)).toEqual([false])
      expect(await store.listDeliveries({ messageId }, newest(9))).toHaveLength(2)
    })

    test("adds nothing for another application's endpoint, a deleted one, or a message without payload", async () => {
      const stage = await setUp({ eventTypes: ["other"] })
      const { store, application, endpoint, send } = stage
      const { messageId } = await send()
      const other = sample.application()
      await store.createApplication(other)
      const strange = sample.endpoint(other.id)
      await store.createEndpoint(strange)
      const deleted = await lateEndpoint(stage)
      await store.deleteEndpoint(deleted.id, sample.task({ action: "cancel" }))
      const expunged = await send()
      await store.expungeMessage(application.id, expunged.messageId)
      const asked = [
        { messageId, endpointId: strange.id },
        { messageId, endpointId: deleted.id },
        { messageId: expunged.messageId, endpointId: endpoint.id },
        { messageId: "msg_nobody", endpointId: endpoint.id },
      ]
      expect(
        await store.addIfMissing(
          asked.map((one) => ({ ...one, manual: true })),
          LATER_AT,
        ),
      ).toEqual([false, false, false, false])
      expect(await store.countDeliveries({})).toBe(0)
    })

    test("waits for the message's date if that is in the future", async () => {
      const stage = await setUp()
      const { store, send } = stage
      const deferred = await send({ deliverAt: LATER + 5000 })
      const late = await lateEndpoint(stage, true)
      await store.addIfMissing(
        [{ messageId: deferred.messageId, endpointId: late.id, manual: true }],
        LATER_AT,
      )
      expect(await store.listDeliveries({ endpointId: late.id }, newest(1))).toMatchObject([
        { nextRetryAt: LATER + 5000, ageFrom: LATER + 5000 },
      ])
      // It does not delay deliveries that joined later.
      const next = await send({ receivedAt: LATER })
      const now = await lanesOf(store).fetch(laneFetch(late.id, 1), LATER)
      expect(now.deliveries.map(({ messageId }) => messageId)).toEqual([next.messageId])
    })

    test.each([
      -3_600_000, 3_600_000,
    ])("compares the message's date with the wall clock, %i ms off the steady clock", async (offMs) => {
      const stage = await setUp()
      const { store, send } = stage
      const wall = LATER + offMs
      const [past, future] = [await send({ deliverAt: wall }), await send({ deliverAt: wall + 5000 })]
      const late = await lateEndpoint(stage)
      const additions = [past, future].map(({ messageId }) => ({
        messageId,
        endpointId: late.id,
        manual: true,
      }))
      await store.addIfMissing(additions, { now: LATER, wall })
      expect(await store.listDeliveries({ endpointId: late.id }, newest(9))).toMatchObject([
        { messageId: future.messageId, nextRetryAt: wall + 5000 },
        { messageId: past.messageId, nextRetryAt: null, ageFrom: LATER },
      ])
      const fetched = async (ms: number, token: number) => {
        const work = await lanesOf(store).fetch(laneFetch(late.id, token), LATER + ms, wall + ms)
        return work.deliveries.map(({ messageId, ageFrom }) => [messageId, ageFrom])
      }
      expect(await fetched(4999, 1)).toEqual([[past.messageId, LATER]])
      expect(await fetched(5000, 2)).toContainEqual([future.messageId, LATER + 5000])
    })

    test("joins an ordered lane at its end", async () => {
      const stage = await setUp()
      const { store, send, attemptAll } = stage
      const missed = [await send(), await send()]
      const late = await lateEndpoint(stage, true)
      const head = await send()
      const additions = missed.map(({ messageId }) => ({ messageId, endpointId: late.id, manual: true }))
      await store.addIfMissing(additions, AT)
      for (const { messageId } of [head, ...missed])
        expect(await attemptAll(200, NOW, late)).toMatchObject([{ messageId, status: "delivered" }])
    })

    test("keeps the message from being removed as unmatched", async () => {
      const stage = await setUp({ eventTypes: ["other"] })
      const { store, application, send, retentionGrainMs = 0 } = stage
      const { messageId } = await send()
      const late = await lateEndpoint(stage)
      await store.addIfMissing([{ messageId, endpointId: late.id, manual: true }], AT)
      expect(await store.purge(NOW + 5000, 10)).toBe(0)
      const [delivered] = await stage.attemptAll(200, NOW, late)
      expect(delivered).toMatchObject({ status: "delivered" })
      expect(await store.purge(NOW + 30 * 86_400_000 + retentionGrainMs, 10)).toBe(1)
      expect(await store.getMessage(application.id, messageId)).toBeNull()
    })
  })
}
