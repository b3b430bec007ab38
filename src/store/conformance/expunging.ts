/** Expunging: removes payloads and responses, and keeps the records. */
import { describe, expect, test } from "vitest"
import { toBuffer } from "../../core/bytes.ts"
import { lanesOf } from "./lanes.ts"
import { claimed, NOW, newest, sample } from "./samples.ts"
import type { SetUp } from "./stage.ts"

const bytes = (value: Uint8Array | null) => (value === null ? null : Buffer.from(value).toString())

export function expunging(name: string, setUp: SetUp): void {
  describe(`${name}: expunging`, () => {
    test("removes a message's payload and request; waiting deliveries find nothing to send", async () => {
      const { store, application, send, fetch } = await setUp()
      const { messageId } = await send({ payloadUntil: NOW + 5, inbound: '{"query":"?name=Jane"}' })
      const untouched = await send()
      await store.expungeMessage("app_x", messageId)
      expect(await store.getMessage(application.id, messageId)).toMatchObject({ expunged: false })
      // Repeated, as after a lost reply.
      for (let i = 0; i < 2; i++) await store.expungeMessage(application.id, messageId)
      expect(await store.getMessage(application.id, messageId)).toMatchObject({
        payload: null,
        inbound: null,
        expunged: true,
        matched: 1,
        eventType: "invoice.paid",
      })
      const { deliveries } = await fetch(1)
      expect(deliveries.map((one) => [one.messageId, one.payload && String(toBuffer(one.payload))])).toEqual([
        [messageId, null],
        [untouched.messageId, '{"n":1}'],
      ])
      // Retention finds nothing to remove.
      expect(await store.purge(NOW + 5, 10)).toBe(0)
    })

    test("payloads are read only on demand", async () => {
      const { store, application, send } = await setUp()
      const [first, second] = [await send(), await send({ payload: Buffer.from("two") })]
      const ids = [first!.messageId, second!.messageId]
      const payloads = async (withPayload: boolean) => {
        const found = await store.getMessages([...ids, "msg_nobody"], withPayload)
        const byId = new Map(found.map((one) => [one.id, bytes(one.payload)]))
        const listed = await store.listMessages({ appId: application.id }, newest(9), withPayload)
        expect(listed.reverse().map((one) => [one.id, bytes(one.payload)])).toEqual([...byId].sort())
        expect(found.every(({ expunged }) => !expunged)).toBe(true)
        return ids.map((id) => byId.get(id))
      }
      expect(await payloads(true)).toEqual(['{"n":1}', "two"])
      expect(await payloads(false)).toEqual([null, null])
      expect(await store.getMessages([], true)).toEqual([])
    })

    test("the sizes of payloads are known without reading them; a removed payload has none", async () => {
      const { store, application, send } = await setUp()
      const payload = Buffer.from(JSON.stringify("é".repeat(100_000)))
      const [first, second] = [await send(), await send({ payload })]
      const ids = [first!.messageId, second!.messageId]
      const sizes = async (of: readonly string[]) =>
        new Map((await store.getPayloadSizes(of)).map(({ messageId, bytes }) => [messageId, bytes]))
      expect(await sizes([...ids, "msg_nobody"])).toEqual(
        new Map([
          [ids[0], 7],
          [ids[1], 200_002],
        ]),
      )
      await store.expungeMessage(application.id, ids[0]!)
      expect(await sizes([ids[0]!])).toEqual(new Map([[ids[0], 0]]))
      expect(await sizes([])).toEqual(new Map())
    })

    test("an attempt is found through its message, and its response can be removed", async () => {
      const { store, send, attemptAll } = await setUp()
      const [{ messageId }, other] = [await send(), await send()]
      await attemptAll(500)
      const [attempt] = await store.listAttempts({ messageId }, newest(1))
      expect(await store.getAttempt(messageId, attempt!.id)).toEqual(attempt)
      expect(await store.getAttempt(other.messageId, attempt!.id)).toBeNull()
      await store.expungeAttempt(other.messageId, attempt!.id)
      expect(await store.getAttempt(messageId, attempt!.id)).toEqual(attempt)
      await store.expungeAttempt(messageId, attempt!.id)
      const expunged = (await store.getAttempt(messageId, attempt!.id))!
      expect(bytes(expunged.responseBody)).toBe("EXPUNGED")
      expect({ ...expunged, responseBody: null }).toEqual({ ...attempt, responseBody: null })
      const [kept] = await store.listAttempts({ messageId: other.messageId }, newest(1))
      expect(Buffer.from(kept!.responseBody!)).toEqual(Buffer.from([0, 255, 1]))
    })

    test("a truncated response is not marked as truncated after it was removed", async () => {
      const { store, endpoint, send, fetch } = await setUp()
      const { messageId } = await send()
      const [one] = (await fetch(1)).deliveries
      const attempt = sample.attempt({ responseTruncated: true })
      await lanesOf(store).giveBack([{ ...claimed(endpoint.id, 1, one!), attempt }])
      await store.expungeAttempt(messageId, attempt.id)
      expect(await store.getAttempt(messageId, attempt.id)).toMatchObject({ responseTruncated: false })
    })
  })
}
