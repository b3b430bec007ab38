import { expect, test } from "vitest"
import { Harness } from "../support/harness.ts"

test("an expunged payload is gone, and what waits to be sent ends as dead with that reason", async () => {
  const harness = await Harness.start()
  await harness.endpoint()
  const message = await harness.send({ secret: 1 }, { delaySeconds: 60 })
  const { messages, deliveries, replays } = harness.posthorn
  await messages.expunge("acme", message)
  expect(await messages.get("acme", message)).toMatchObject({ payload: null, expunged: true })
  const [dead] = await harness.published("delivery.dead", 1)
  expect(dead).toMatchObject({ reason: "expunged", message_id: message })
  const [delivery] = (await deliveries.list()).data
  await expect(deliveries.retry(delivery!.id)).rejects.toMatchObject({ code: "conflict" })
  await expect(replays.resend("acme", message, delivery!.endpointId)).rejects.toMatchObject({
    code: "payload_gone",
  })
  harness.clock.advance(61_000)
  await harness.quiet()
  expect(harness.receiver.requests).toEqual([])
})

test("a payload that is expunged while it is being sent is not sent again", async () => {
  const harness = await Harness.start()
  await harness.endpoint({ retry: { delays: [1], maxAttempts: 5 } }, "/hook")
  const answer = harness.receiver.hold("/hook")
  const message = await harness.send()
  await harness.receiver.arrived("/hook", 1)
  await harness.sql(`UPDATE messages SET payload = NULL, expunged = TRUE WHERE id = '${message}'`)
  answer(500)
  await harness.published("delivery.attempt", 1)
  await harness.quiet()
  harness.clock.advance(1000)
  expect((await harness.published("delivery.dead", 1))[0]).toMatchObject({ reason: "expunged" })
  expect(harness.receiver.to("/hook")).toHaveLength(1)
})

test("many payloads are expunged by a task, by type and by time", async () => {
  const harness = await Harness.start()
  await harness.endpoint({ disabled: true })
  for (const eventType of ["a", "b", "a"]) await harness.send({}, { eventType })
  const { messages, tasks } = harness.posthorn
  const task = await messages.expungeMany("acme", { eventType: "a" })
  expect(task).toMatchObject({ type: "application.purge_content", total: 2 })
  await expect.poll(() => tasks.get(task.id)).toMatchObject({ status: "finished", changed: 2 })
  const { data } = await messages.list("acme")
  expect(data.map(({ eventType, expunged }) => [eventType, expunged])).toEqual([
    ["a", true],
    ["b", false],
    ["a", true],
  ])
})

test.each([
  { payloadRetentionDays: 5 },
  { payloadRetentionHours: 120 },
])("a payload with a retention of its own goes when its time is over: %o", async (retention) => {
  const harness = await Harness.start({ maintenanceIntervalMs: 3_600_000 })
  await harness.endpoint()
  const kept = await harness.send({ n: 1 })
  const short = await harness.send({ n: 2 }, retention)
  await harness.published("delivery.delivered", 2)
  const { messages } = harness.posthorn
  const expunged = async () => [
    (await messages.get("acme", kept)).expunged,
    (await messages.get("acme", short)).expunged,
  ]
  harness.clock.advance(5 * 86_400_000 - 1)
  await harness.posthorn.engine!.maintainOnce()
  expect(await expunged()).toEqual([false, false])
  harness.clock.advance(1)
  // The days that passed set off a run by themselves: on PostgreSQL the one who comes second has nothing to do.
  const maintained = async () => {
    await harness.posthorn.engine!.maintainOnce()
    return expunged()
  }
  await expect.poll(maintained).toEqual([false, true])
})
