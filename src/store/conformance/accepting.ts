/** Accepting: the rows of a message, and the endpoints that get it. */
import { describe, expect, test } from "vitest"
import { NOW, newest, sample } from "./samples.ts"
import type { SetUp } from "./stage.ts"

export function accepting(name: string, setUp: SetUp): void {
  describe(`${name}: accepting`, () => {
    test("gives every subscribed endpoint a delivery that is due now", async () => {
      const { store, application, endpoint, send } = await setUp({ eventTypes: ["invoice.paid"] })
      await store.createEndpoint(sample.endpoint(application.id, { eventTypes: ["other"] }))
      await store.createEndpoint(sample.endpoint(application.id, { disabled: true }))
      const accepted = await send()
      expect(accepted).toMatchObject({
        matched: 1,
        duplicate: false,
        lanes: [{ endpointId: endpoint.id, dueAt: NOW }],
      })
      const rows = await store.listDeliveries({ messageId: accepted.messageId }, newest(9))
      expect(rows).toMatchObject([
        { endpointId: endpoint.id, status: "pending", attemptCount: 0, nextRetryAt: null, receivedAt: NOW },
      ])
      expect(await store.getMessage(application.id, accepted.messageId)).toMatchObject({
        matched: 1,
        eventType: "invoice.paid",
      })
    })

    test("matches a message with the endpoints' filters at the time of the call", async () => {
      const { store, endpoint, send } = await setUp({ eventTypes: ["other", "invoice.paid"] })
      const matched = async () => (await send()).matched
      expect(await matched()).toBe(1)
      const patches = [
        [{ eventTypes: ["other"] }, 0],
        [{ eventTypes: null }, 1],
        [{ disabled: true }, 0],
        [{ eventTypes: ["invoice.paid"] }, 0],
        [{ disabled: false }, 1],
        [{ channels: ["eu"] }, 0],
      ] as const
      for (const [patch, expected] of patches) {
        await store.updateEndpoint(endpoint.id, patch, NOW)
        expect(await matched()).toBe(expected)
      }
      expect((await send({ channels: ["eu"] })).matched).toBe(1)
      await store.deleteEndpoint(endpoint.id, sample.task({ action: "cancel" }))
      expect((await send({ channels: ["eu"] })).matched).toBe(0)
    })

    test("stores every field of a message", async () => {
      const { store, application, send } = await setUp()
      const said = {
        eventId: "order-1",
        channels: ["eu", "vip"],
        tags: ["urgent"],
        sessionId: "s1",
        metadata: { a: "b" },
        maxAttempts: 7,
        deliverAt: NOW + 5,
        traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        inbound: '{"method":"PUT","headers":[["X-Grüße","\\u0000"]]}',
      }
      const { messageId } = await send(said)
      const message = { ...said, id: messageId, appId: application.id, expunged: false, matched: 1 }
      expect(await store.getMessage(application.id, messageId)).toMatchObject(message)
      expect(await store.getMessage(application.id, "order-1")).toMatchObject(message)
    })

    test("gives a message for one endpoint to that endpoint alone, regardless of its filters", async () => {
      const { store, application, endpoint, send } = await setUp({ eventTypes: ["other"], channels: ["c"] })
      await store.createEndpoint(sample.endpoint(application.id))
      const accepted = await send({ to: endpoint.id })
      expect(accepted).toMatchObject({ matched: 1, lanes: [{ endpointId: endpoint.id }] })
      expect(await store.listDeliveries({ messageId: accepted.messageId }, newest(9))).toMatchObject([
        { endpointId: endpoint.id },
      ])
    })

    test("gives a message to no disabled endpoint, nor to one of another application, even if it is named", async () => {
      const { store, endpoint, send } = await setUp({ disabled: true })
      const other = sample.application()
      await store.createApplication(other)
      const strange = sample.endpoint(other.id)
      await store.createEndpoint(strange)
      for (const to of [endpoint.id, strange.id])
        expect(await send({ to })).toMatchObject({ matched: 0, lanes: [] })
    })

    test("refuses a priority for an ordered endpoint, if the message is for that endpoint", async () => {
      const { store, application, endpoint, send } = await setUp({ ordered: true })
      const unordered = sample.endpoint(application.id)
      await store.createEndpoint(unordered)
      for (const to of [null, endpoint.id])
        await expect(send({ to, priority: "high" })).rejects.toMatchObject({ field: "priority" })
      expect(await send({ to: unordered.id, priority: "high" })).toMatchObject({ matched: 1 })
    })

    test("never misses an endpoint that another program created before the call", async () => {
      const { application, beside, send } = await setUp()
      expect((await send()).matched).toBe(1)
      const other = await beside()
      for (let i = 2; i < 6; i++) {
        await other.createEndpoint(sample.endpoint(application.id))
        expect((await send()).matched).toBe(i)
      }
      await other.close()
    })

    test("repeats the result of an idempotency key, and refuses another body with a conflict", async () => {
      const { store, application, send } = await setUp()
      const idempotency = { key: Buffer.alloc(16, 1), digest: Buffer.alloc(16, 2) }
      const first = await send({ idempotency })
      expect(await send({ idempotency })).toMatchObject({
        messageId: first.messageId,
        appId: application.id,
        matched: 1,
        duplicate: true,
        lanes: [],
      })
      await expect(
        send({ idempotency: { ...idempotency, digest: Buffer.alloc(16, 3) } }),
      ).rejects.toMatchObject({ code: "conflict" })
      expect(await store.listMessages({ appId: application.id }, newest(9), false)).toHaveLength(1)
    })

    test("accepts one message for a key that is sent many times at once", async () => {
      const { send } = await setUp()
      const idempotency = { key: Buffer.alloc(16, 9), digest: Buffer.alloc(16, 2) }
      const results = await Promise.all(Array.from({ length: 50 }, () => send({ idempotency })))
      expect(new Set(results.map(({ messageId }) => messageId)).size).toBe(1)
      expect(results.filter(({ duplicate }) => !duplicate)).toHaveLength(1)
    })

    test("keeps a key for at least a day, through its generations, and then forgets it", async () => {
      const { store, send } = await setUp()
      const idempotency = { key: Buffer.alloc(16, 5), digest: Buffer.alloc(16, 2) }
      const first = await send({ idempotency })
      for (const hours of [6, 12, 18, 24]) {
        await store.purge(NOW + hours * 3_600_000, 100)
        expect(await send({ idempotency, receivedAt: NOW + hours * 3_600_000 })).toMatchObject({
          messageId: first.messageId,
        })
      }
      await store.purge(NOW + 49 * 3_600_000, 100)
      expect((await send({ idempotency, receivedAt: NOW + 49 * 3_600_000 })).duplicate).toBe(false)
    })

    test("writes a batch whole or not at all; a refused batch does not affect concurrent sends", async () => {
      const { store, application, send } = await setUp()
      await send({ eventId: "e1" })
      const good = [1, 2, 3].map(() => send())
      const bad = store.acceptMany([
        sample.message(application.id),
        sample.message(application.id, { eventId: "e1" }),
      ])
      const more = [4, 5].map(() => send())
      await expect(bad).rejects.toMatchObject({ code: "conflict", field: "eventId" })
      await Promise.all([...good, ...more])
      expect(await store.listMessages({ appId: application.id }, newest(99), false)).toHaveLength(6)
      await expect(store.acceptMany([sample.message("nobody")])).rejects.toMatchObject({ code: "not_found" })
    })

    test("numbers deliveries in call order", async () => {
      const { store, endpoint, send } = await setUp()
      const accepted = await Promise.all(Array.from({ length: 100 }, () => send()))
      const rows = await store.listDeliveries({ endpointId: endpoint.id }, newest(100))
      expect(rows.reverse().map(({ messageId }) => messageId)).toEqual(
        accepted.map(({ messageId }) => messageId),
      )
    })

    test("survives a crash right after it resolved", async () => {
      const { application, send, reopen } = await setUp()
      const { messageId } = await send()
      const again = await reopen()
      expect(await again.getMessage(application.id, messageId)).toMatchObject({ id: messageId })
      expect(await again.scanLanes(null, 10)).toHaveLength(1)
    })
  })
}
