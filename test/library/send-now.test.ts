/** "The receiver is back": what waits is sent now; and one delivery is given another time. */
import type { ServerResponse } from "node:http"
import { expect, test } from "vitest"
import { Harness } from "../support/harness.ts"
import type { Received } from "../support/receiver.ts"

const HOUR = { retry: { delays: [3600], maxAttempts: 5 } }
const LATER = (_request: Received, response: ServerResponse) =>
  void response.writeHead(503, { "retry-after": "7200" }).end()

async function finished(harness: Harness, id: string) {
  const { tasks } = harness.posthorn
  await expect.poll(async () => (await tasks.get(id)).status).toBe("finished")
  return tasks.get(id)
}

test("every delivery that waits for an endpoint is sent now, and no attempt is counted for it", async () => {
  const harness = await Harness.start()
  const id = await harness.endpoint(HOUR, "/down")
  const { deliveries } = harness.posthorn
  harness.receiver.always("/down", 500)
  for (let n = 0; n < 3; n++) await harness.send({ n })
  await harness.published("delivery.attempt", 3)
  await harness.quiet()
  harness.receiver.always("/down", 200)
  const query = { app: "acme", endpoint: id }
  expect(await deliveries.countWaiting(query)).toBe(3)
  const task = await deliveries.sendNow(query)
  expect(task).toMatchObject({ type: "delivery.send-now", total: 3 })
  await harness.published("delivery.delivered", 3)
  expect(await finished(harness, task.id)).toMatchObject({ done: 3, changed: 3 })
  const { data } = await deliveries.list({ status: "delivered" })
  expect(data.map(({ attemptCount }) => attemptCount)).toEqual([2, 2, 2])
  expect(await deliveries.countWaiting(query)).toBe(0)
})

test("a delivery that still fails waits by its schedule again, and is tried once for each call", async () => {
  const harness = await Harness.start()
  await harness.endpoint(HOUR, "/down")
  const { deliveries } = harness.posthorn
  harness.receiver.always("/down", 500)
  await harness.send()
  await harness.published("delivery.attempt", 1)
  await harness.quiet()
  await finished(harness, (await deliveries.sendNow({ app: "acme" })).id)
  await harness.published("delivery.attempt", 2)
  await harness.quiet()
  const [delivery] = (await deliveries.list()).data
  expect(delivery).toMatchObject({ status: "failed", attemptCount: 2 })
  expect(delivery!.nextRetryAt!.getTime()).toBe(harness.clock.now() + 3_600_000)
  expect(harness.receiver.to("/down")).toHaveLength(2)
})

test("a Retry-After of the lanes concerned ends, and that of others goes on", async () => {
  const harness = await Harness.start()
  const back = await harness.endpoint({ uid: "back", eventTypes: ["back"] }, "/back")
  const away = await harness.endpoint({ uid: "away", eventTypes: ["away"] }, "/away")
  const { deliveries, endpoints } = harness.posthorn
  for (const path of ["/back", "/away"]) harness.receiver.always(path, LATER)
  for (const eventType of ["back", "away"]) await harness.send({}, { eventType })
  await harness.published("delivery.attempt", 2)
  await harness.quiet()
  // Due at once, and held with the lane.
  for (const eventType of ["back", "away"]) await harness.send({}, { eventType })
  await harness.quiet()
  harness.receiver.always("/back", 200)
  const task = await deliveries.sendNow({ app: "acme", eventType: "back" })
  expect(task.total).toBe(2)
  await harness.published("delivery.delivered", 2)
  expect(await finished(harness, task.id)).toMatchObject({ changed: 1 })
  await harness.quiet()
  expect((await endpoints.get("acme", back)).holdUntil).toBe(null)
  expect((await endpoints.get("acme", away)).holdUntil).not.toBe(null)
  expect(harness.receiver.to("/away")).toHaveLength(1)
})

test("an ordered endpoint keeps its order", async () => {
  const harness = await Harness.start()
  const id = await harness.endpoint({ ...HOUR, ordered: true }, "/line")
  const { deliveries } = harness.posthorn
  harness.receiver.always("/line", 500)
  const sent: string[] = []
  for (let n = 0; n < 4; n++) sent.push(await harness.send({ n }))
  await harness.published("delivery.attempt", 1)
  await harness.quiet()
  harness.receiver.always("/line", 200)
  const task = await deliveries.sendNow({ endpoint: id })
  expect(task.total).toBe(4)
  await harness.published("delivery.delivered", 4)
  expect(harness.receiver.to("/line").map((request) => request.id)).toEqual([sent[0], ...sent])
})

test("send now takes the deliveries of its filter, and a first attempt that was set for later keeps its time", async () => {
  const harness = await Harness.start()
  await harness.endpoint(HOUR, "/down")
  const { deliveries } = harness.posthorn
  harness.receiver.always("/down", 500)
  await harness.send({}, { eventType: "a" })
  await harness.send({}, { eventType: "b" })
  await harness.send({}, { eventType: "a", delaySeconds: 60 })
  await harness.published("delivery.attempt", 2)
  await harness.quiet()
  expect(await deliveries.countWaiting()).toBe(2)
  expect(await deliveries.countWaiting({ status: "pending" })).toBe(0)
  expect(await deliveries.countWaiting({ responseClass: 400 })).toBe(0)
  await finished(harness, (await deliveries.sendNow({ eventType: "a", responseClass: 500 })).id)
  await harness.published("delivery.attempt", 3)
  await harness.quiet()
  const counts = (await deliveries.list()).data.map((one) => [one.eventType, one.attemptCount])
  expect(counts).toEqual([
    ["a", 0],
    ["b", 1],
    ["a", 2],
  ])
})

test("a date is one of the wall clock, also after that was set back", async () => {
  const harness = await Harness.start()
  await harness.endpoint()
  const { deliveries } = harness.posthorn
  await harness.send({}, { deliverAt: new Date(harness.clock.wallNow() + 600_000) })
  harness.clock.jumpWall(-3_600_000)
  harness.clock.advance(1_200_000)
  expect(await deliveries.countWaiting()).toBe(0)
  expect(await deliveries.sendNow({})).toMatchObject({ total: 0 })
  harness.clock.advance(3_000_000)
  await harness.published("delivery.delivered", 1)
})

test("paused and disabled endpoints keep their deliveries, and these are neither counted nor taken", async () => {
  const harness = await Harness.start()
  const ids = []
  for (const path of ["/open", "/paused", "/disabled"]) {
    ids.push(await harness.endpoint(HOUR, path))
    harness.receiver.always(path, 500)
  }
  const { deliveries, endpoints } = harness.posthorn
  await harness.send()
  await harness.published("delivery.attempt", 3)
  await harness.quiet()
  await endpoints.pause("acme", ids[1]!)
  await endpoints.update("acme", ids[2]!, { disabled: true })
  expect(await deliveries.countWaiting({ app: "acme" })).toBe(1)
  expect(await deliveries.countWaiting()).toBe(1)
  const task = await deliveries.sendNow({ app: "acme" })
  expect(task.total).toBe(1)
  await harness.published("delivery.attempt", 4)
  expect(await finished(harness, task.id)).toMatchObject({ done: 1, changed: 1 })
  await harness.quiet()
  const { data } = await deliveries.list()
  expect(new Map(data.map((one) => [one.endpointId, one.attemptCount]))).toEqual(
    new Map([
      [ids[0], 2],
      [ids[1], 1],
      [ids[2], 1],
    ]),
  )
})

test("a delivery that cannot be sent now says why", async () => {
  const harness = await Harness.start()
  const id = await harness.endpoint()
  const { deliveries, endpoints } = harness.posthorn
  const refused = (query: object) => ({
    async toMatchObject(error: object) {
      await expect(deliveries.sendNow(query)).rejects.toMatchObject(error)
      await expect(deliveries.countWaiting(query)).rejects.toMatchObject(error)
    },
  })
  await refused({ status: "dead" }).toMatchObject({ code: "invalid_input", field: "status" })
  await refused({ deadReason: "gone" }).toMatchObject({ code: "invalid_input", field: "deadReason" })
  await refused({ app: "nobody" }).toMatchObject({ code: "not_found" })
  await endpoints.pause("acme", id)
  await refused({ endpoint: id }).toMatchObject({
    code: "conflict",
    message: `endpoint "${id}" is paused; resume it before sending`,
  })
  await endpoints.update("acme", id, { disabled: true })
  await refused({ app: "acme", endpoint: id }).toMatchObject({
    code: "conflict",
    message: expect.stringContaining("disabled"),
  })
})

test("a delivery that waits is rescheduled, sooner or later, without an attempt", async () => {
  const harness = await Harness.start()
  await harness.endpoint(HOUR, "/down")
  const { deliveries, attempts } = harness.posthorn
  harness.receiver.always("/down", 500)
  await harness.send()
  await harness.published("delivery.attempt", 1)
  await harness.quiet()
  const [waiting] = (await deliveries.list()).data
  const soon = await deliveries.reschedule(waiting!.id, { delaySeconds: 90 })
  expect(soon).toMatchObject({ status: "failed", attemptCount: 1, errorDetail: "HTTP 500: answer 500" })
  expect(soon.nextRetryAt!.getTime()).toBe(harness.clock.now() + 90_000)
  const at = new Date(harness.clock.now() + 7_200_000)
  expect((await deliveries.reschedule(waiting!.id, { at })).nextRetryAt).toEqual(at)
  harness.receiver.always("/down", 200)
  await harness.attemptAfter(7_200_000)
  await harness.published("delivery.delivered", 1)
  expect(await deliveries.get(waiting!.id)).toMatchObject({ status: "delivered", attemptCount: 2 })
  expect((await attempts.list({ delivery: waiting!.id })).data.map(({ manual }) => manual)).toEqual([
    true,
    false,
  ])
})

test("a first attempt is rescheduled too, also to at once", async () => {
  const harness = await Harness.start()
  await harness.endpoint({}, "/hook")
  await harness.send({}, { delaySeconds: 3600 })
  const { deliveries } = harness.posthorn
  const [waiting] = (await deliveries.list()).data
  await deliveries.reschedule(waiting!.id, { delaySeconds: 0 })
  await harness.published("delivery.delivered", 1)
})

test("a reschedule that makes no sense says why", async () => {
  const harness = await Harness.start()
  await harness.endpoint({ retry: { delays: [60], maxAge: 600 } }, "/down")
  const { deliveries } = harness.posthorn
  harness.receiver.queue("/down", 500)
  await harness.send()
  await harness.published("delivery.attempt", 1)
  await harness.quiet()
  const { id } = (await deliveries.list()).data[0]!
  const refused = (input: object) => expect(deliveries.reschedule(id, input)).rejects
  await refused({}).toMatchObject({ field: "at" })
  await refused({ at: 0, delaySeconds: 1 }).toMatchObject({ field: "at" })
  await refused({ delaySeconds: -1 }).toMatchObject({ field: "delaySeconds" })
  await refused({ delay: 1 }).toMatchObject({ field: "delay" })
  await refused({ delaySeconds: 601 }).toMatchObject({
    field: "delaySeconds",
    message: expect.stringContaining("when the delivery expires"),
  })
  await deliveries.reschedule(id, { delaySeconds: 0 })
  await harness.published("delivery.delivered", 1)
  await harness.quiet()
  await refused({ delaySeconds: 1 }).toMatchObject({
    code: "conflict",
    message: `delivery "${id}" is delivered already`,
  })
})

test("the recent failures of an application are listed without naming an endpoint", async () => {
  const harness = await Harness.start()
  await harness.endpoint({ ...HOUR, eventTypes: ["a"] }, "/one")
  await harness.endpoint({ ...HOUR, eventTypes: ["b"] }, "/two")
  const { attempts, applications, endpoints } = harness.posthorn
  await applications.create({ uid: "other", name: "Other" })
  await endpoints.create("other", { url: harness.receiver.url("/one") })
  harness.receiver.queue("/one", 500, 200)
  harness.receiver.queue("/two", 503)
  for (const [app, eventType] of [
    ["acme", "a"],
    ["acme", "b"],
    ["acme", "a"],
    ["other", "a"],
  ] as const) {
    await harness.posthorn.send(app, { eventType, payload: {} })
    await harness.quiet()
  }
  const { data } = await attempts.list({ app: "acme", status: "failed" })
  expect(data.map(({ responseStatus }) => responseStatus)).toEqual([503, 500])
  expect((await attempts.list({ app: "acme" })).data).toHaveLength(3)
  await expect(attempts.list({ app: "nobody" })).rejects.toMatchObject({ code: "not_found" })
})
