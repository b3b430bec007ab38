/** Resources that Svix does not have: policies, deliveries, dead letters, lanes. */
import { expect, onTestFinished, test } from "vitest"
import { Receiver } from "../../support/receiver.ts"
import { ApiServer } from "../support/server.ts"

const RETRY = { delays: [3600], maxAttempts: 2 }

async function start() {
  const receiver = await Receiver.start()
  onTestFinished(() => receiver.close())
  const server = await ApiServer.start()
  await server.call("POST", "/app", { body: { name: "Acme", uid: "acme" } })
  const endpoint = async (uid: string, more = {}) =>
    (
      await server.call("POST", "/app/acme/endpoint", {
        body: { url: receiver.url(`/${uid}`), uid, ...more },
      })
    ).body.id
  const send = async (more = {}) =>
    (await server.call("POST", "/app/acme/msg", { body: { eventType: "a", payload: {}, ...more } })).body.id
  const dead = (count: number) =>
    expect.poll(async () => (await server.call("GET", "/dead-letter/count")).body.count).toBe(count)
  return { server, receiver, endpoint, send, dead }
}

test("a policy by name is put, read, previewed, used and deleted", async () => {
  const { server, endpoint } = await start()
  const put = await server.call("PUT", "/retry-policy/gentle", { body: { delays: [1, 10], maxAttempts: 4 } })
  expect(put).toMatchObject({
    status: 200,
    body: { name: "gentle", preset: false, policy: { maxAttempts: 4 } },
  })
  expect((await server.call("GET", "/retry-policy/gentle")).body).toEqual(put.body)
  const again = await server.call("PUT", "/retry-policy/gentle", { body: put.body.policy })
  expect(again.body).toEqual(put.body)
  const { body: list } = await server.call("GET", "/retry-policy")
  expect(list.data.map(({ name }: { name: string }) => name)).toContain("gentle")
  const preview = await server.call("POST", "/retry-policy/preview", { body: { policy: "gateway" } })
  expect(preview.body.seconds).toEqual([0, 30, 150, 750, 4350])
  expect(preview.body.times).toHaveLength(5)
  expect(preview.body.protection).toMatchObject({
    breaker: { settings: false, text: expect.stringMatching(/^off: /) },
    autoDisable: { settings: false, text: expect.stringMatching(/^off: /) },
  })
  const standard = await server.call("POST", "/retry-policy/preview", { body: { policy: "standard" } })
  expect(standard.body.protection).toMatchObject({
    breaker: { settings: { failures: 5, maxOpen: 600 }, text: expect.stringContaining("open 30 s, 60 s …") },
    adaptive: { settings: { timeout: 60, "404": 600 } },
    autoDisable: { text: expect.stringContaining("disabled after 5 days") },
  })
  const own = { policy: { delays: [5], maxAttempts: 3, jitter: "none" }, attempts: 2 }
  expect((await server.call("POST", "/retry-policy/preview", { body: own })).body.seconds).toEqual([0, 5])
  await endpoint("hook", { retry: "gentle" })
  expect(await server.call("DELETE", "/retry-policy/gentle")).toMatchObject({ status: 409 })
  await server.call("PATCH", "/app/acme/endpoint/hook", { body: { retry: null } })
  expect(await server.call("DELETE", "/retry-policy/gentle")).toMatchObject({ status: 204 })
  const wrong = await server.call("PUT", "/retry-policy/wrong", { body: { delays: [-1], maxAttempts: 4 } })
  expect(wrong).toMatchObject({ status: 422, body: { detail: [{ msg: expect.stringContaining("delays") }] } })
})

test("a delivery shows its attempts and when the next is due, and can be sent now or called off", async () => {
  const { server, receiver, endpoint, send } = await start()
  receiver.queue("/hook", 500)
  const endpointId = await endpoint("hook", { retry: RETRY })
  const msgId = await send()
  await expect
    .poll(async () => (await server.call("GET", "/delivery?status=failed")).body.data.length)
    .toBe(1)
  const { id } = (await server.call("GET", `/delivery?app_id=acme&endpoint_id=hook&msg_id=${msgId}`)).body
    .data[0]
  const { body } = await server.call("GET", `/delivery/${id}`)
  expect(body).toMatchObject({
    endpointId,
    msgId,
    status: "failed",
    attemptCount: 1,
    error: "HTTP 500: answer 500",
  })
  expect(body.attempts).toMatchObject([{ responseStatusCode: 500, response: "answer 500" }])
  expect(Date.parse(body.nextAttempt) - Date.parse(body.lastAttemptedAt)).toBeGreaterThan(2_000_000)
  expect((await server.call("POST", `/delivery/${id}/retry`)).body).toMatchObject({ status: "pending" })
  await receiver.arrived("/hook", 2)
  await expect.poll(async () => (await server.call("GET", `/delivery/${id}`)).body.status).toBe("delivered")
  expect(await server.call("POST", `/delivery/${id}/cancel`)).toMatchObject({ status: 409 })
  expect(await server.call("GET", "/delivery/dlv_nothing")).toMatchObject({ status: 404 })
})

test("an attempt says why it failed beside the status of an answer that broke off", async () => {
  const { server, receiver, endpoint, send } = await start()
  await endpoint("hook", { retry: RETRY })
  receiver.always("/hook", (_request, response) => {
    response.writeHead(200, { "content-length": "100" }).flushHeaders()
    response.socket!.end()
  })
  await send()
  const attempts = async () => (await server.call("GET", "/app/acme/attempt")).body.data
  await expect
    .poll(attempts)
    .toMatchObject([{ status: 2, responseStatusCode: 200, response: "", error: "connection_reset" }])
  receiver.always("/hook", 500)
  await send()
  await expect
    .poll(async () => (await attempts())[0])
    .toMatchObject({
      responseStatusCode: 500,
      response: "answer 500",
      error: null,
    })
})

test("deliveries that wait are counted, and sent now when the receiver is back", async () => {
  const { server, receiver, endpoint, send } = await start()
  receiver.queue("/hook", 500, 500)
  await endpoint("hook", { retry: RETRY })
  for (let i = 0; i < 2; i++) await send()
  const waiting = async (query: string) =>
    (await server.call("GET", `/delivery/count-waiting?${query}`)).body.count
  await expect.poll(() => waiting("app_id=acme&endpoint_id=hook&status=failed")).toBe(2)
  expect(await waiting("app_id=acme&event_types=b")).toBe(0)
  const body = { app_id: "acme", endpoint_id: "hook", event_types: ["a"] }
  const started = await server.call("POST", "/delivery/send-now", { body })
  expect(started).toMatchObject({ status: 202, body: { task: "delivery.send-now" } })
  await receiver.arrived("/hook", 4)
  await expect.poll(() => waiting("app_id=acme")).toBe(0)
  for (const wrong of [{ status: "dead" }, { dead_reason: "gone" }])
    expect(await server.call("POST", "/delivery/send-now", { body: wrong })).toMatchObject({ status: 422 })
  expect(await server.call("POST", "/delivery/send-now", { body: { app_id: "nobody" } })).toMatchObject({
    status: 404,
  })
})

test("a delivery that waits is rescheduled, and an application's failures are listed", async () => {
  const { server, receiver, endpoint, send } = await start()
  receiver.queue("/hook", 500)
  await endpoint("hook", { retry: RETRY })
  await send()
  const failures = async () => (await server.call("GET", "/app/acme/attempt?status=2")).body.data
  await expect.poll(failures).toMatchObject([{ responseStatusCode: 500, url: receiver.url("/hook") }])
  const [{ deliveryId }] = await failures()
  const reschedule = (body: object) => server.call("POST", `/delivery/${deliveryId}/reschedule`, { body })
  const at = new Date(Date.now() + 60_000).toISOString()
  expect(await reschedule({ at })).toMatchObject({
    status: 200,
    body: { status: "failed", nextAttempt: at, attemptCount: 1 },
  })
  expect(await reschedule({})).toMatchObject({ status: 422 })
  expect(await reschedule({ at, delaySeconds: 1 })).toMatchObject({ status: 422 })
  expect(await reschedule({ delaySeconds: 0 })).toMatchObject({ status: 200 })
  await receiver.arrived("/hook", 2)
  await expect
    .poll(async () => (await server.call("GET", `/delivery/${deliveryId}`)).body.status)
    .toBe("delivered")
  expect(await reschedule({ delaySeconds: 1 })).toMatchObject({ status: 409 })
  expect(await server.call("GET", "/app/acme/attempt")).toMatchObject({ body: { data: { length: 2 } } })
})

test("dead letters are listed, grouped, counted, retried and discarded", async () => {
  const { server, receiver, endpoint, send, dead } = await start()
  receiver.always("/one", 500)
  receiver.always("/two", 404)
  await endpoint("one", { retry: { ...RETRY, maxAttempts: 1 }, eventTypes: ["a"] })
  await endpoint("two", { retry: { ...RETRY, maxAttempts: 1 } })
  for (let i = 0; i < 3; i++) await send()
  await send({ eventType: "b" })
  await dead(7)
  const { body: groups } = await server.call("GET", "/dead-letter/group")
  expect(groups.data.map(({ count, error }: { count: number; error: string }) => [count, error])).toEqual([
    [4, "HTTP 404: answer 404"],
    [3, "HTTP 500: answer 500"],
  ])
  const { body: causes } = await server.call("GET", "/dead-letter/group?by=cause")
  expect(causes.data.map(({ count, error }: { count: number; error: string }) => [count, error])).toEqual([
    [4, "HTTP 404"],
    [3, "HTTP 500"],
  ])
  const countOf = async (cause: string) =>
    (await server.call("GET", `/dead-letter/count?cause=${encodeURIComponent(cause)}`)).body.count
  expect([await countOf("HTTP 500"), await countOf("HTTP 50"), await countOf("none")]).toEqual([3, 0, 0])
  const filter = "app_id=acme&endpoint_id=two&event_types=a&dead_reason=exhausted"
  expect((await server.call("GET", `/dead-letter/count?${filter}`)).body).toEqual({ count: 3 })
  const page = (await server.call("GET", "/dead-letter?limit=4")).body
  expect([page.data.length, page.done]).toEqual([4, false])
  receiver.always("/two", 200)
  const body = { app_id: "acme", endpoint_id: "two", event_types: ["a"] }
  const task = await server.call("POST", "/dead-letter/retry", { body })
  expect(task).toMatchObject({ status: 202, body: { task: "dead.retry" } })
  await dead(4)
  const [{ id }] = (await server.call("GET", "/dead-letter?endpoint_id=two&app_id=acme")).body.data
  expect((await server.call("POST", `/dead-letter/${id}/discard`)).body.discardedAt).not.toBeNull()
  await dead(3)
  await server.call("POST", "/dead-letter/discard", { body: { app_id: "acme" } })
  await dead(0)
  expect(await server.call("POST", "/dead-letter/retry", { body: { nothing: 1 } })).toMatchObject({
    status: 422,
  })
})

test("behind a Retry-After every answer has the same next attempt and the same reason", async () => {
  const { server, receiver, endpoint, send } = await start()
  receiver.queue("/hook", (_, response) => response.writeHead(429, { "retry-after": "600" }).end())
  await endpoint("hook", { retry: { delays: [60], maxAttempts: 5, retryAfter: 86_400 } })
  await send()
  await expect
    .poll(async () => (await server.call("GET", "/lane")).body.data)
    .toMatchObject([{ retrying: 1, sending: 0 }])
  await send()
  const [lane] = (await server.call("GET", "/lane")).body.data
  expect(lane.nextDueAt).toBe(lane.heldUntil)
  const { data } = (await server.call("GET", "/delivery")).body
  expect(data).toMatchObject([
    { nextAttempt: lane.heldUntil, waitReason: "held" },
    { nextAttempt: lane.heldUntil },
  ])
  for (const { id, msgId, nextAttempt, waitReason } of data) {
    expect((await server.call("GET", `/delivery/${id}`)).body).toMatchObject({ nextAttempt, waitReason })
    const destinations = await server.call("GET", `/app/acme/msg/${msgId}/endpoint`)
    expect(destinations.body.data).toMatchObject([{ nextAttempt, waitReason }])
  }
})

test("lanes say what waits and why", async () => {
  const { server, endpoint, send } = await start()
  const id = await endpoint("hook")
  await server.call("POST", "/app/acme/endpoint/hook/pause")
  await send()
  const { body } = await server.call("GET", "/lane?app_id=acme")
  expect(body.data).toMatchObject([{ endpointId: id, reason: "paused", waiting: 1, retrying: 0, sending: 0 }])
  await server.call("POST", "/app/acme/endpoint/hook/resume")
  await expect.poll(async () => (await server.call("GET", "/lane")).body.data).toEqual([])
})
