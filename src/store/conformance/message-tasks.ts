/** Tasks over messages: replaying them to an endpoint, and expunging them. */
import { describe, expect, test } from "vitest"
import { AT, NOW, newest, ORG, sample } from "./samples.ts"
import type { SetUp } from "./stage.ts"

export function messageTasks(name: string, setUp: SetUp): void {
  describe(`${name}: tasks over messages`, () => {
    test("read the matching messages, oldest first, without payloads and without newer messages", async () => {
      const { store, application, send } = await setUp()
      const other = sample.application()
      await store.createApplication(other)
      await store.acceptMany([sample.message(other.id)])
      const [first] = [await send(), await send({ eventType: "other" })]
      const [second, third] = [await send(), await send()]
      const filter = { appId: application.id, eventTypes: ["invoice.paid"] }
      const task = await store.createTask(sample.task({ action: "expunge", filter }))
      await send()
      const messages = await store.readTaskMessages(task.id, 2)
      expect(messages).toMatchObject([
        { id: first!.messageId, payload: null, expunged: false },
        { id: second!.messageId, payload: null },
      ])
      await store.stepTaskIfCurrent(sample.step(task.id, { looked: 2, cursor: messages.at(-1)!.seq }))
      expect(await store.readTaskMessages(task.id, 9)).toMatchObject([{ id: third!.messageId }])
      await store.cancelTask(ORG, task.id, NOW)
      expect(await store.readTaskMessages(task.id, 9)).toEqual([])
    })

    test("a step adds deliveries and removes payloads with its progress, and counts what it changed", async () => {
      const { store, application, send } = await setUp()
      const late = sample.endpoint(application.id)
      const sent = [await send(), await send(), await send()].map(({ messageId }) => messageId)
      await store.createEndpoint(late)
      const missing = (messageId: string) => ({ messageId, endpointId: late.id, manual: true })
      await store.addIfMissing([missing(sent[0]!)], AT)
      await store.expungeMessage(application.id, sent[2]!)
      const task = await store.createTask(
        sample.task({ action: "replay", filter: { appId: application.id, endpointId: late.id } }),
      )
      const messages = await store.readTaskMessages(task.id, 9)
      expect(messages.map(({ id }) => id)).toEqual(sent)
      const changes = await store.stepTaskIfCurrent(
        sample.step(task.id, {
          additions: sent.map(missing),
          expunged: [sent[0]!, sent[2]!],
          looked: 3,
          cursor: messages.at(-1)!.seq,
        }),
      )
      expect(changes).toEqual({ amended: [], added: [false, true, false] })
      // One delivery was added, and one of two payloads removed.
      expect(await store.getTask(ORG, task.id)).toMatchObject({ done: 3, changed: 2, status: "running" })
      expect(await store.listDeliveries({ endpointId: late.id }, newest(9))).toHaveLength(2)
      expect(await store.getMessage(application.id, sent[0]!)).toMatchObject({
        expunged: true,
        payload: null,
      })
    })

    test("a late step adds nothing and removes nothing", async () => {
      const { store, application, send } = await setUp({ eventTypes: ["other"] })
      const { messageId } = await send()
      const late = sample.endpoint(application.id)
      await store.createEndpoint(late)
      const task = await store.createTask(
        sample.task({ action: "replay", filter: { appId: application.id } }),
      )
      const step = sample.step(task.id, {
        expectedCursor: 5,
        additions: [{ messageId, endpointId: late.id, manual: true }],
        expunged: [messageId],
      })
      expect(await store.readTaskMessages(task.id, 9)).toMatchObject([{ id: messageId }])
      expect(await store.stepTaskIfCurrent(step)).toBeNull()
      expect(await store.listDeliveries({ messageId }, newest(9))).toEqual([])
      expect(await store.getMessage(application.id, messageId)).toMatchObject({ expunged: false })
    })
  })
}
