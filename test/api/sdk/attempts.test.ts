/** Svix's client and our attempts: what became of messages, and sending them again. */
import type { Svix } from "svix"
import { expect, onTestFinished, test } from "vitest"
import { freshGround } from "../../support/combination.ts"
import { Receiver } from "../../support/receiver.ts"
import { refusal, svixFor } from "../support/sdk.ts"
import { ApiServer, type ApiServerOptions } from "../support/server.ts"

interface World {
  readonly server: ApiServer
  readonly svix: Svix
  readonly receiver: Receiver
  /** Sends one and waits until it was delivered or given up. */
  send(eventType: string): Promise<string>
}

async function start(options: ApiServerOptions = {}): Promise<World> {
  const receiver = await Receiver.start()
  onTestFinished(() => receiver.close())
  const server = await ApiServer.start(options)
  const svix = svixFor(server)
  await svix.application.create({ name: "Acme", uid: "acme" })
  const retry = { delays: [60], maxAttempts: 1 }
  await server.call("POST", "/app/acme/endpoint", {
    body: { url: receiver.url("/hook"), uid: "hook", retry },
  })
  const send = async (eventType: string) => {
    const over = new Promise<void>((resolve) => {
      for (const name of ["delivery.delivered", "delivery.dead"] as const)
        server.posthorn.on(name, () => resolve())
    })
    const { id } = await svix.message.create("acme", { eventType, payload: { eventType }, tags: [eventType] })
    await over
    return id
  }
  return { server, svix, receiver, send }
}

test("an attempt says how long its phases took", async () => {
  const { server, send } = await start()
  await send("a")
  await send("b")
  const { body } = await server.call("GET", "/app/acme/attempt")
  const ms = expect.any(Number)
  expect(body.data.map(({ timing }: { timing: object }) => timing)).toEqual([
    { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: ms },
    { dnsMs: ms, connectMs: ms, tlsMs: null, firstByteMs: ms },
  ])
})

test("attempts are listed by endpoint and by message, and one by one", async () => {
  const { svix, receiver, send } = await start()
  receiver.queue("/hook", 200, 404, 503)
  const ids = [await send("a"), await send("b"), await send("c")]
  const list = (options = {}) => svix.messageAttempt.listByEndpoint("acme", "hook", options)
  const all = await list({ withContent: true, withMsg: true })
  expect(
    all.data.map(({ msgId, status, statusText, responseStatusCode, triggerType }) => [
      ids.indexOf(msgId),
      status,
      statusText,
      responseStatusCode,
      triggerType,
    ]),
  ).toEqual([
    [2, 2, "fail", 503, 0],
    [1, 2, "fail", 404, 0],
    [0, 0, "success", 200, 0],
  ])
  expect(all.data[0]).toMatchObject({
    response: "answer 503",
    url: receiver.url("/hook"),
    msg: { eventType: "c" },
  })
  expect((await list()).data[0]!.response).toBe("{}")
  const found = async (options: object) => (await list(options)).data.map(({ msgId }) => ids.indexOf(msgId))
  expect(await found({ status: 0 })).toEqual([0])
  expect(await found({ status: 2 })).toEqual([2, 1])
  expect(await found({ status: 1 })).toEqual([])
  expect(await found({ statusCodeClass: 400 })).toEqual([1])
  expect(await found({ eventTypes: ["a", "c"] })).toEqual([2, 0])
  expect(await found({ tag: "b" })).toEqual([1])
  expect(await found({ before: new Date(0) })).toEqual([])
  const page = await list({ limit: 2 })
  const next = await list({ limit: 2, iterator: page.iterator })
  expect([page.done, next.done, next.data.length]).toEqual([false, true, 1])
  expect((await list({ limit: 2, iterator: next.prevIterator! })).data).toEqual(page.data)
  const [attempt] = (await svix.messageAttempt.listByMsg("acme", ids[1]!)).data
  expect(await svix.messageAttempt.get("acme", ids[1]!, attempt!.id)).toMatchObject({
    response: "answer 404",
  })
  await svix.messageAttempt.expungeContent("acme", ids[1]!, attempt!.id)
  expect(await svix.messageAttempt.get("acme", ids[1]!, attempt!.id)).toMatchObject({ response: "EXPUNGED" })
  expect(await refusal(svix.messageAttempt.get("acme", ids[0]!, attempt!.id))).toMatchObject({ status: 404 })
})

test("messages of an endpoint and endpoints of a message say what became of them", async () => {
  const { svix, receiver, send } = await start()
  receiver.queue("/hook", 200, 500)
  const [good, bad] = [await send("a"), await send("b")]
  const messages = await svix.messageAttempt.listAttemptedMessages("acme", "hook", { withContent: true })
  expect(messages.data.map(({ id, statusText, payload }) => [id, statusText, payload])).toEqual([
    [bad, "fail", { eventType: "b" }],
    [good, "success", { eventType: "a" }],
  ])
  const failed = await svix.messageAttempt.listAttemptedMessages("acme", "hook", { status: 2 })
  expect(failed.data.map(({ id }) => id)).toEqual([bad])
  const endpoints = await svix.messageAttempt.listAttemptedDestinations("acme", bad)
  expect(endpoints.data).toMatchObject([{ uid: "hook", status: 2, statusText: "fail", nextAttempt: null }])
  expect(await svix.endpoint.getStats("acme", "hook")).toEqual({
    success: 1,
    pending: 0,
    sending: 0,
    fail: 1,
    canceled: 0,
  })
  const range = { since: new Date(0), until: new Date() }
  expect(await refusal(svix.endpoint.getStats("acme", "hook", range))).toMatchObject({
    status: 400,
    body: { code: "invalid_range" },
  })
})

test("a message is sending from the moment it is accepted until its last attempt", async () => {
  const { svix, server, receiver } = await start()
  await server.call("PATCH", "/app/acme/endpoint/hook", {
    body: { retry: { delays: [3600], maxAttempts: 2 } },
  })
  receiver.queue("/hook", 500)
  const failed = new Promise<void>((resolve) => server.posthorn.on("delivery.attempt", () => resolve()))
  const { id: retrying } = await svix.message.create("acme", { eventType: "a", payload: {} })
  await failed
  const { id: later } = await svix.message.create("acme", {
    eventType: "a",
    payload: {},
    deliverAt: new Date("2031-05-18T10:00:00Z"),
  })
  const found = async (options: { status?: 0 | 1 | 2 | 3 } = {}) =>
    (await svix.messageAttempt.listAttemptedMessages("acme", "hook", options)).data
  expect((await found()).map(({ id, status, statusText }) => [id, status, statusText])).toEqual([
    [later, 3, "sending"],
    [retrying, 3, "sending"],
  ])
  expect((await found({ status: 3 })).map(({ id }) => id)).toEqual([later, retrying])
  for (const status of [0, 1, 2] as const) expect(await found({ status })).toEqual([])
  const [destination] = (await svix.messageAttempt.listAttemptedDestinations("acme", retrying)).data
  expect(destination).toMatchObject({ status: 3, statusText: "sending", nextAttempt: expect.any(Date) })
  expect(await svix.endpoint.getStats("acme", "hook")).toMatchObject({ pending: 0, sending: 2 })
  const replayed = async (status: 1 | 3) => {
    const { id } = await svix.endpoint.bulkReplay("acme", "hook", { since: new Date(0), status })
    await expect.poll(async () => (await svix.backgroundTask.get(id)).status).toBe("finished")
    return (await svix.backgroundTask.get(id)).data
  }
  expect(await replayed(1)).toMatchObject({ total: 0 })
  expect(await replayed(3)).toMatchObject({ total: 2, changed: 2 })
})

test("an attempt of unknown outcome is shown, found and counted as failed", async () => {
  const { options } = await freshGround({ migrated: true })
  const { server: first, svix, receiver } = await start({ options })
  receiver.queue("/hook", () => {})
  const { id } = await svix.message.create("acme", { eventType: "a", payload: {} })
  await receiver.arrived("/hook", 1)
  // The shutdown cuts the attempt off; the next server repeats it.
  await first.app.close()
  const server = await ApiServer.start({ options })
  const stats = async () => (await server.call("GET", "/app/acme/endpoint/hook/attempt-stats")).body
  await expect.poll(stats).toEqual({ success: 1, fail: 1, canceled: 0 })
  for (const path of ["", "/endpoint/hook", `/msg/${id}`]) {
    const found = async (status: number) =>
      (await server.call("GET", `/app/acme/attempt${path}?status=${status}`)).body.data
    expect(await found(2)).toMatchObject([{ status: 2, responseStatusCode: 0 }])
    expect(await found(0)).toMatchObject([{ status: 0, responseStatusCode: 200 }])
    for (const never of [1, 3, 4]) expect(await found(never)).toEqual([])
  }
})

test("attempts are counted in whole hours", async () => {
  const { server, receiver, send } = await start()
  receiver.queue("/hook", 200, 404, 503)
  for (const type of ["a", "b", "c"]) await send(type)
  const stats = (query = "") => server.call("GET", `/app/acme/endpoint/hook/attempt-stats${query}`)
  expect((await stats()).body).toEqual({ success: 1, fail: 2, canceled: 0 })
  const [last] = (await server.call("GET", "/app/acme/attempt/endpoint/hook")).body.data
  const inItsHour = await stats(`?since=${last.timestamp}&until=${last.timestamp}`)
  expect(inItsHour.body.fail).toBeGreaterThan(0)
  const day = (ago: number) => new Date(Date.now() - ago * 86_400_000).toISOString()
  expect((await stats(`?since=${day(2)}&until=${day(1)}`)).body).toEqual({ success: 0, fail: 0, canceled: 0 })
  for (const wrong of [`?since=${day(40)}`, `?since=${day(1)}&until=${day(2)}`])
    expect(await stats(wrong)).toMatchObject({ status: 400, body: { code: "invalid_range" } })
})

test("an endpoint's series has its attempts by the hour", async () => {
  const { server, receiver, send } = await start()
  receiver.queue("/hook", 200, 404)
  for (const type of ["a", "b"]) await send(type)
  const series = (query = "") => server.call("GET", `/app/acme/endpoint/hook/series${query}`)
  const { body } = await series()
  expect(body.hours).toHaveLength(24)
  expect(body.hours.reduce((all: number, one: { attempts: number }) => all + one.attempts, 0)).toBe(2)
  expect(body.statusCodes).toEqual([
    { status: 200, count: 1 },
    { status: 404, count: 1 },
  ])
  const past = await series("?since=2026-01-01T00:30:00Z&until=2026-01-01T02:00:00Z")
  expect(past.body).toMatchObject({ hours: [{ attempts: 0 }, { attempts: 0 }], sampled: 0 })
  expect(await series("?since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z")).toMatchObject({
    status: 422,
    body: { detail: [{ loc: ["query", "since"] }] },
  })
})

test("an endpoint that was deleted stays among the destinations of its messages", async () => {
  const { svix, send } = await start()
  const id = await send("a")
  const destinations = async () => (await svix.messageAttempt.listAttemptedDestinations("acme", id)).data
  const before = await destinations()
  expect(before).toMatchObject([{ uid: "hook", statusText: "success" }])
  await svix.endpoint.delete("acme", "hook")
  expect(await destinations()).toEqual(before)
})

test("a cancelled delivery is canceled for clients that know the word, and a success for the others", async () => {
  const { svix, server } = await start()
  await svix.endpoint.patch("acme", "hook", {})
  const { id } = await svix.message.create("acme", {
    eventType: "a",
    payload: {},
    deliverAt: new Date("2031-05-18T10:00:00Z"),
  })
  const status = async (expanded: boolean) =>
    (await server.call("GET", `/app/acme/endpoint/hook/msg?expanded_statuses=${expanded}`)).body.data[0]
      .statusText
  expect(await status(true)).toBe("sending")
  const cancel = { createdBefore: new Date(Date.now() + 60_000).toISOString() }
  expect((await server.call("POST", "/app/acme/endpoint/hook/cancel-msgs", { body: cancel })).status).toBe(
    204,
  )
  await expect.poll(() => status(true)).toBe("canceled")
  expect(await status(false)).toBe("success")
  expect((await svix.messageAttempt.listAttemptedDestinations("acme", id)).data).toHaveLength(1)
})

test("messages are sent again: one, those that were given up, those that are missing, whatever fits", async () => {
  const { svix, server, receiver, send } = await start()
  receiver.queue("/hook", 500, 500)
  const since = new Date(Date.now() - 60_000)
  const [one, two] = [await send("a"), await send("b")]
  await svix.messageAttempt.resend("acme", one, "hook")
  await receiver.arrived("/hook", 3)
  await expect
    .poll(async () =>
      (await svix.messageAttempt.listByMsg("acme", one)).data.map(({ triggerType }) => triggerType),
    )
    .toEqual([1, 0])
  const finished = async (task: { id: string }) => {
    await expect.poll(async () => (await svix.backgroundTask.get(task.id)).status).toBe("finished")
    return (await svix.backgroundTask.get(task.id)).data
  }
  const recover = await svix.endpoint.recover("acme", "hook", { since })
  expect(recover.task).toBe("endpoint.recover")
  expect(await finished(recover)).toMatchObject({ changed: 1 })
  await receiver.arrived("/hook", 4)
  await svix.endpoint.create("acme", { url: receiver.url("/late"), uid: "late", eventTypes: ["b"] })
  expect(await finished(await svix.endpoint.replayMissing("acme", "late", { since }))).toMatchObject({
    changed: 1,
  })
  expect((await receiver.arrived("/late", 1))[0]!.id).toBe(two)
  const replay = await svix.endpoint.bulkReplay("acme", "late", { since, status: 0, eventTypes: ["b"] })
  expect(await finished(replay)).toMatchObject({ changed: 1 })
  await receiver.arrived("/late", 2)
  await svix.endpoint.patch("acme", "late", { disabled: true })
  expect(await refusal(svix.messageAttempt.resend("acme", two, "late"))).toMatchObject({ status: 409 })
  const long = { since: new Date(Date.now() - 15 * 86_400_000) }
  expect(await refusal(svix.endpoint.recover("acme", "hook", long))).toMatchObject({ status: 422 })
  await svix.message.expungeContent("acme", one)
  expect(await refusal(svix.messageAttempt.resend("acme", one, "hook"))).toMatchObject({
    status: 400,
    body: { code: "missing_payload" },
  })
  expect((await server.call("GET", "/dead-letter/count")).body.count).toBe(0)
})
