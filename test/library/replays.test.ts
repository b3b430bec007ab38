import { expect, test } from "vitest"
import { Harness } from "../support/harness.ts"

test("a message is sent again to an endpoint that has it, and to one that never got it", async () => {
  const harness = await Harness.start()
  const first = await harness.endpoint({}, "/first")
  const message = await harness.send({ n: 1 })
  await harness.published("delivery.delivered", 1)
  const late = await harness.endpoint({ eventTypes: ["another.type"] }, "/late")
  const { replays, attempts, messages } = harness.posthorn
  await replays.resend("acme", message, first)
  await replays.resend("acme", message, late)
  await harness.published("delivery.delivered", 3)
  expect(harness.receiver.to("/first").map(({ id }) => id)).toEqual([message, message])
  expect(harness.receiver.to("/late").map(({ id }) => id)).toEqual([message])
  const made = (await attempts.list({ message, endpoint: first })).data
  expect(made.map(({ manual }) => manual)).toEqual([true, false])
  expect((await messages.get("acme", message)).matched).toBe(2)
})

test("recover sends what was given up again, and not what was called off", async () => {
  const harness = await Harness.start()
  const id = await harness.endpoint({ retry: { delays: [60], maxAttempts: 1 } }, "/down")
  const { replays, tasks, deliveries, dead } = harness.posthorn
  harness.receiver.always("/down", 500)
  const since = harness.clock.now()
  for (let i = 0; i < 3; i++) await harness.send({ i })
  await harness.published("delivery.dead", 3)
  await harness.send({ i: 3 }, { delaySeconds: 60 })
  const [waiting] = (await deliveries.list({ status: "pending" })).data
  await deliveries.cancel(waiting!.id)
  harness.receiver.always("/down", 200)
  const task = await replays.recover("acme", id, { since })
  expect(task).toMatchObject({ type: "endpoint.recover", status: "running", total: 3 })
  await harness.published("delivery.delivered", 3)
  await expect.poll(() => tasks.get(task.id)).toMatchObject({ status: "finished", done: 3, changed: 3 })
  expect((await dead.list()).data.map(({ deadReason }) => deadReason)).toEqual(["cancelled"])
})

test("replaying what is missing adds what the endpoint would have got, once", async () => {
  const harness = await Harness.start()
  await harness.endpoint({}, "/old")
  const since = harness.clock.now()
  for (const eventType of ["a", "b", "a"]) await harness.send({}, { eventType })
  await harness.published("delivery.delivered", 3)
  const late = await harness.endpoint({ eventTypes: ["a"] }, "/late")
  const { replays, tasks } = harness.posthorn
  const task = await replays.replayMissing("acme", late, { since })
  await harness.published("delivery.delivered", 5)
  await expect.poll(() => tasks.get(task.id)).toMatchObject({ status: "finished", total: 3, changed: 2 })
  const again = await replays.replayMissing("acme", late, { since })
  await expect.poll(() => tasks.get(again.id)).toMatchObject({ status: "finished", changed: 0 })
  await harness.quiet()
  expect(harness.receiver.to("/late")).toHaveLength(2)
})

test("a bulk replay takes what fits: by type, by status, by the class of the answer", async () => {
  const harness = await Harness.start()
  const id = await harness.endpoint({ retry: { delays: [60], maxAttempts: 1 } }, "/hook")
  harness.receiver.queue("/hook", 200, 404, 503)
  const since = harness.clock.now()
  for (const eventType of ["a", "b", "c"]) {
    await harness.send({}, { eventType })
    await harness.quiet()
  }
  const { replays, tasks } = harness.posthorn
  const replay = async (query: object) => {
    const { id: task } = await replays.replay("acme", id, { since, ...query })
    await expect.poll(async () => (await tasks.get(task)).status).toBe("finished")
    await harness.quiet()
    return (await tasks.get(task)).changed
  }
  expect(await replay({ responseClass: 400 })).toBe(1)
  expect(await replay({ status: "dead" })).toBe(1)
  expect(await replay({ eventType: ["a", "b"] })).toBe(2)
  expect(await replay({})).toBe(3)
  expect(harness.receiver.to("/hook")).toHaveLength(3 + 1 + 1 + 2 + 3)
})

test("the deliveries that wait for an endpoint can be cancelled", async () => {
  const harness = await Harness.start()
  const id = await harness.endpoint()
  for (let i = 0; i < 3; i++) await harness.send({ i }, { delaySeconds: 60 })
  const { replays, tasks } = harness.posthorn
  const task = await replays.cancelWaiting("acme", id)
  await expect.poll(() => tasks.get(task.id)).toMatchObject({ status: "finished", changed: 3 })
  const dead = await harness.published("delivery.dead", 3)
  expect(new Set(dead.map(({ reason }) => reason))).toEqual(new Set(["cancelled"]))
})

test("sending again to a disabled endpoint says so, and so does a window without a beginning", async () => {
  const harness = await Harness.start()
  const id = await harness.endpoint()
  const message = await harness.send()
  await harness.published("delivery.delivered", 1)
  const { replays, endpoints } = harness.posthorn
  await expect(replays.recover("acme", id, {})).rejects.toMatchObject({ field: "since" })
  await expect(replays.replay("acme", id, { since: 0, status: "lost" as never })).rejects.toMatchObject({
    field: "status",
  })
  await endpoints.update("acme", id, { disabled: true })
  const disabled = { code: "conflict", message: expect.stringContaining("disabled") }
  await expect(replays.resend("acme", message, id)).rejects.toMatchObject(disabled)
  await expect(replays.recover("acme", id, { since: 0 })).rejects.toMatchObject(disabled)
  await expect(replays.replayMissing("acme", id, { since: 0 })).rejects.toMatchObject(disabled)
})
