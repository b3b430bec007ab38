/** Retention: which rows are removed, when, and how many in a call. */
import { describe, expect, test } from "vitest"
import { lanesOf } from "./lanes.ts"
import { laneFetch, NOW, newest, ORG, sample, settlement } from "./samples.ts"
import { amendment, type SetUp } from "./stage.ts"

export function retention(name: string, setUp: SetUp): void {
  describe(`${name}: retention`, () => {
    test("removes finished deliveries, then messages without deliveries", async () => {
      const { store, application, endpoint, send, fetch, retentionGrainMs = 0 } = await setUp()
      const other = sample.endpoint(application.id)
      await store.createEndpoint(other)
      const { messageId } = await send()
      const [claimed] = (await fetch(1)).deliveries
      await lanesOf(store).settle([settlement(endpoint.id, 1, claimed!, 200)])
      const purgeAt = NOW + 30 * 86_400_000
      expect(await store.purge(purgeAt - 1, 100)).toBe(0)
      expect(await store.purge(purgeAt + retentionGrainMs, 100)).toBe(1)
      expect(await store.getDelivery(ORG, claimed!.id)).toBeNull()
      expect(await store.listAttempts({ deliveryId: claimed!.id }, newest(9))).toEqual([])
      expect(await store.getMessage(application.id, messageId)).not.toBeNull()
      const work = await lanesOf(store).fetch(laneFetch(other.id, 2), NOW)
      await lanesOf(store).settle([settlement(other.id, 2, work.deliveries[0]!, 200)])
      expect(await store.purge(purgeAt + retentionGrainMs, 100)).toBe(1)
      expect(await store.getMessage(application.id, messageId)).toBeNull()
    })

    test("an unmatched message is removed at its own time", async () => {
      const { store, application, send } = await setUp({ eventTypes: ["other"] })
      const { messageId, matched } = await send()
      expect(matched).toBe(0)
      expect(await store.purge(NOW + 999, 10)).toBe(0)
      expect(await store.purge(NOW + 1000, 10)).toBe(1)
      expect(await store.getMessage(application.id, messageId)).toBeNull()
    })

    test("a payload is removed at its own time, delivered or not", async () => {
      const { store, application, send, attemptAll } = await setUp()
      const delivered = await send({ payloadUntil: NOW + 1000 })
      await attemptAll(200)
      const waiting = await send({ payloadUntil: NOW + 1000, inbound: '{"query":"?name=Jane"}' })
      const kept = await send()
      expect(await store.purge(NOW + 999, 10)).toBe(0)
      expect(await store.purge(NOW + 1000, 10)).toBe(2)
      expect(await store.purge(NOW + 1000, 10)).toBe(0)
      for (const { messageId } of [delivered, waiting])
        expect(await store.getMessage(application.id, messageId)).toMatchObject({
          payload: null,
          inbound: null,
          expunged: true,
        })
      expect(await store.getMessage(application.id, kept.messageId)).toMatchObject({ expunged: false })
    })

    test("an expired entry is removed", async () => {
      const { store } = await setUp()
      await store.saveEntryIfUnchanged(sample.entry({ name: "mortal", expiresAt: NOW + 1000 }))
      await store.saveEntryIfUnchanged(sample.entry({ name: "eternal" }))
      expect(await store.purge(NOW + 999, 10)).toBe(0)
      expect(await store.purge(NOW + 1000, 10)).toBe(1)
      expect(await store.getEntry("key", ORG, "mortal", NOW)).toBeNull()
      expect(await store.getEntry("key", ORG, "eternal", NOW)).not.toBeNull()
    })

    test("removes no more rows in a call than the limit, over all kinds", async () => {
      const { store, send } = await setUp({ eventTypes: ["other"] })
      for (let i = 0; i < 2; i++) {
        await send({ payloadUntil: NOW + 1000, purgeUnmatchedAt: NOW + 5000 })
        await send()
        await store.saveEntryIfUnchanged(sample.entry({ expiresAt: NOW + 1000 }))
      }
      for (const removed of [5, 1, 0]) expect(await store.purge(NOW + 1000, 5)).toBe(removed)
    })

    test("a discarded dead letter is no longer listed as one and keeps its record", async () => {
      const { store, killOff } = await setUp()
      const [, row] = await killOff(2)
      expect(await store.amendIfUnchanged([amendment(row!, { discardedAt: NOW })])).toEqual([true])
      expect(await store.countDeliveries({ status: "dead", undiscarded: true })).toBe(1)
      expect(await store.getDelivery(ORG, row!.id)).toMatchObject({ status: "dead", discardedAt: NOW })
    })
  })
}
