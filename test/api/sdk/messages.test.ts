/** Svix's client and our messages, from the send to what the receiver verifies. */
import { Webhook as StandardWebhook } from "standardwebhooks"
import { type Svix, Webhook } from "svix"
import { expect, onTestFinished, test } from "vitest"
import { Receiver } from "../../support/receiver.ts"
import { refusal, svixFor } from "../support/sdk.ts"
import { ApiServer } from "../support/server.ts"

interface World {
  readonly server: ApiServer
  readonly svix: Svix
  readonly receiver: Receiver
}

async function start(): Promise<World> {
  const receiver = await Receiver.start()
  onTestFinished(() => receiver.close())
  const server = await ApiServer.start()
  const svix = svixFor(server)
  await svix.application.create({ name: "Acme", uid: "acme" })
  return { server, svix, receiver }
}

test("a message arrives signed, and both libraries verify it", async () => {
  const { svix, receiver } = await start()
  await svix.endpoint.create("acme", { url: receiver.url("/hook"), uid: "hook" })
  const message = await svix.message.create("acme", { eventType: "invoice.paid", payload: { invoice: 17 } })
  const [request] = await receiver.arrived("/hook", 1)
  expect(request!.id).toBe(message.id)
  const { key } = await svix.endpoint.getSecret("acme", "hook")
  const headers = request!.headers as Record<string, string>
  new Webhook(key).verify(request!.body, headers)
  expect(JSON.parse(`${request!.body}`)).toEqual({ invoice: 17 })
  new StandardWebhook(key).verify(`${request!.body}`, headers)
  expect(() => new Webhook(key).verify("forged", headers)).toThrow()
})

test("a message has what was sent with it, with and without its content", async () => {
  const { svix, server } = await start()
  const sent = {
    eventType: "a.b",
    payload: { deep: [1, null, "ü"] },
    eventId: "evt-1",
    channels: ["one", "two"],
    tags: ["tag/1"],
    deliverAt: new Date("2031-05-18T10:00:00.000Z"),
  }
  const made = await svix.message.create("acme", sent, { withContent: true })
  expect(made).toMatchObject(sent)
  expect((await svix.message.create("acme", { eventType: "a", payload: { b: 1 } })).payload).toEqual({})
  const { priority: _priority, ...read } = (await server.call("GET", "/app/acme/msg/evt-1?with_content=true"))
    .body
  expect(read).toMatchObject({
    id: made.id,
    payload: sent.payload,
    matched: 0,
    timestamp: made.timestamp.toISOString(),
  })
  expect((await svix.message.get("acme", made.id)).payload).toEqual({})
  expect(await refusal(svix.message.create("acme", { ...sent, payload: { other: 1 } }))).toMatchObject({
    status: 409,
  })
})

test("lists are narrowed by type, channel, tag and time, the newest first", async () => {
  const { svix } = await start()
  const send = (eventType: string, more = {}) =>
    svix.message.create("acme", { eventType, payload: {}, ...more })
  const first = await send("a", { tags: ["t"] })
  const second = await send("b", { channels: ["c"] })
  const third = await send("a")
  const ids = async (options: object) => (await svix.message.list("acme", options)).data.map(({ id }) => id)
  expect(await ids({})).toEqual([third.id, second.id, first.id])
  expect(await ids({ eventTypes: ["a"] })).toEqual([third.id, first.id])
  expect(await ids({ channel: "c" })).toEqual([second.id])
  expect(await ids({ tag: "t" })).toEqual([first.id])
  expect(await ids({ before: new Date(0) })).toEqual([])
  expect(await ids({ after: new Date(Date.now() + 60_000) })).toEqual([])
  const page = await svix.message.list("acme", { limit: 2 })
  const next = await svix.message.list("acme", { limit: 2, iterator: page.iterator! })
  expect([page.done, next.done, next.data[0]!.id]).toEqual([false, true, first.id])
  const back = await svix.message.list("acme", { limit: 2, iterator: next.prevIterator! })
  expect(back.data.map(({ id }) => id)).toEqual([third.id, second.id])
})

test("a payload arrives in the bytes in which it came, numbers that JavaScript rounds too", async () => {
  const { server, svix, receiver } = await start()
  await svix.endpoint.create("acme", { url: receiver.url("/hook") })
  const payload = '{"n":12345678901234567890, "f":1.0,"e":1e400,"t":"\\u00fc"}'
  const raw = `{"eventType":"a", "payload" : ${payload} }`
  const left = await server.call("POST", "/app/acme/msg?with_content=false", { raw })
  expect(left).toMatchObject({ status: 202, body: { eventType: "a", payload: {} } })
  expect(`${(await receiver.arrived("/hook", 1))[0]!.body}`).toBe(payload)
  const data = await server.call("POST", "/app/acme/msg", { body: { eventType: "a", data: { b: 2 } } })
  expect(data.body.payload).toEqual({ b: 2 })
  expect(`${(await receiver.arrived("/hook", 2))[1]!.body}`).toBe('{"b":2}')
  const shown = await server.call("POST", "/app/acme/msg", { raw })
  expect(shown.text).toContain(`"payload":${payload},`)
  const nothing = await server.call("POST", "/app/acme/msg", { body: { eventType: "a", payload: null } })
  expect(nothing).toMatchObject({ status: 422, body: { detail: [{ loc: ["body", "payload"] }] } })
})

test("numbers that JavaScript rounds are shown as they were sent", async () => {
  const { server } = await start()
  const raw = '{"eventType":"a","eventId":"evt-1","payload":{"id":12345678901234567890,"list":[1e400,0.5]}}'
  await server.call("POST", "/app/acme/msg", { raw })
  const payload = '"payload":{"id":12345678901234567890,"list":[1e400,0.5]}'
  expect((await server.call("GET", "/app/acme/msg/evt-1")).text).toContain(payload)
  expect((await server.call("GET", "/app/acme/msg")).text).toContain(payload)
})

test("a raw payload that is no JSON is sent as it is, and does not break the list", async () => {
  const { server, svix, receiver } = await start()
  await svix.endpoint.create("acme", { url: receiver.url("/hook") })
  const transformationsParams = { rawPayload: "a=1&b=2", headers: { "content-type": "text/plain" } }
  await server.call("POST", "/app/acme/msg", { body: { eventType: "a", payload: {}, transformationsParams } })
  const [request] = await receiver.arrived("/hook", 1)
  expect([`${request!.body}`, request!.headers["content-type"]]).toEqual(["a=1&b=2", "text/plain"])
  await server.call("POST", "/app/acme/msg", {
    body: { eventType: "a", payload: {}, transformationsParams: { rawPayload: "no json" } },
  })
  expect((await server.call("GET", "/app/acme/msg")).status).toBe(200)
})

test("first messages at the same moment bring one application along, and all are accepted", async () => {
  const { server } = await start()
  const body = { eventType: "a", payload: {}, application: { name: "New", uid: "new" } }
  const all = await Promise.all(
    Array.from({ length: 12 }, () => server.call("POST", "/app/new/msg", { body })),
  )
  expect(all.map(({ status }) => status)).toEqual(Array(12).fill(202))
})

test("a message can bring its application along", async () => {
  const { svix } = await start()
  const body = { eventType: "a", payload: {}, application: { name: "New", uid: "new" } }
  await svix.message.create("new", body)
  await svix.message.create("new", body)
  expect(await svix.application.get("new")).toMatchObject({ name: "New" })
  expect(await refusal(svix.message.create("other", body))).toMatchObject({
    status: 422,
    body: { detail: [{ loc: ["body", "application", "uid"] }] },
  })
  const without = { eventType: "a", payload: {} }
  expect(await refusal(svix.message.create("nobody", without))).toMatchObject({ status: 404 })
})

test("the same key and message is one message, another under the same key is a conflict", async () => {
  const { svix, receiver } = await start()
  await svix.endpoint.create("acme", { url: receiver.url("/hook") })
  const send = (n: number) =>
    svix.message.create("acme", { eventType: "a", payload: { n } }, { idempotencyKey: "once" })
  const all = await Promise.all(Array.from({ length: 10 }, () => send(1)))
  expect(new Set(all.map(({ id }) => id)).size).toBe(1)
  expect(new Set(all.map(({ timestamp }) => timestamp.getTime())).size).toBe(1)
  expect(await refusal(send(2))).toMatchObject({ status: 409, body: { code: "conflict" } })
  await receiver.arrived("/hook", 1)
  expect((await svix.message.list("acme")).data).toHaveLength(1)
})

test("an idempotency key that cannot be one is found in the header", async () => {
  const { server } = await start()
  for (const key of ["", "k".repeat(257)])
    expect(
      await server.call("POST", "/app/acme/msg", {
        body: { eventType: "a", payload: {} },
        headers: { "idempotency-key": key },
      }),
    ).toMatchObject({ status: 422, body: { detail: [{ loc: ["header", "idempotency-key"] }] } })
})

test("how long a payload is kept is said in days or in hours", async () => {
  const { svix, server } = await start()
  const send = (more: object) =>
    server.call("POST", "/app/acme/msg", { body: { eventType: "a", payload: {}, ...more } })
  for (const good of [{ payloadRetentionPeriod: 1 }, { payloadRetentionHours: 2160 }])
    expect(await send(good)).toMatchObject({ status: 202 })
  await svix.message.create("acme", { eventType: "a", payload: {}, payloadRetentionHours: 1 })
  const both = { payloadRetentionPeriod: 5, payloadRetentionHours: 5 }
  for (const wrong of [both, { payloadRetentionHours: 0 }, { payloadRetentionHours: 2161 }])
    expect(await send(wrong)).toMatchObject({
      status: 422,
      body: { detail: [{ loc: ["body", "payloadRetentionHours"] }] },
    })
})

test("payloads are expunged one by one, some, and all", async () => {
  const { svix, server } = await start()
  const send = async () => (await svix.message.create("acme", { eventType: "a", payload: { secret: 1 } })).id
  const [one, two, three] = [await send(), await send(), await send()]
  await svix.message.expungeContent("acme", one)
  expect((await server.call("GET", `/app/acme/msg/${one}?with_content=true`)).body.payload).toEqual({
    expired: true,
  })
  const ids = [two, "nothing", "__proto__", "constructor"]
  const bulk = await server.call("POST", "/app/acme/msg/bulk-expunge", { body: { ids } })
  expect(Object.entries(bulk.body.results)).toEqual(
    ids.map((id) => [id, id === two ? "expunged" : "not-found"]),
  )
  for (const body of [{}, { ids: null }, { ids: [] }])
    expect(await server.call("POST", "/app/acme/msg/bulk-expunge", { body })).toMatchObject({
      status: 200,
      body: { results: {} },
    })
  const task = await svix.message.expungeAllContents("acme")
  expect(task).toMatchObject({ task: "application.purge_content" })
  await expect
    .poll(async () => (await server.call("GET", `/app/acme/msg/${three}?with_content=true`)).body.payload)
    .toEqual({ expired: true })
})

test("an example goes to one endpoint alone, and a precheck says whether any would get it", async () => {
  const { svix, receiver, server } = await start()
  await svix.endpoint.create("acme", { url: receiver.url("/one"), uid: "one", eventTypes: ["other"] })
  await svix.endpoint.create("acme", { url: receiver.url("/two"), uid: "two" })
  const schemas = { "1": { type: "object", examples: [{ n: 1 }, { n: 2 }] } }
  await svix.eventType.create({ name: "with.example", description: "", schemas })
  await svix.eventType.create({ name: "without", description: "" })
  const ping = await svix.endpoint.sendExample("acme", "one", { eventType: "svix.ping" })
  expect(ping.payload).toEqual({ success: true })
  const example = await svix.endpoint.sendExample("acme", "one", {
    eventType: "with.example",
    exampleIndex: 1,
  })
  expect(example.payload).toEqual({ n: 2 })
  const arrived = await receiver.arrived("/one", 2)
  expect(arrived.map(({ id }) => id).sort()).toEqual([ping.id, example.id].sort())
  expect(receiver.to("/two")).toEqual([])
  expect(await refusal(svix.endpoint.sendExample("acme", "one", { eventType: "without" }))).toMatchObject({
    status: 400,
    body: { code: "invalid_scheme" },
  })
  const sendExample = (json: string) =>
    server.call("POST", "/app/acme/endpoint/one/send-example", { raw: `{"eventType":"without",${json}}` })
  const custom = await sendExample('"payload":{"n":12345678901234567890}')
  expect(custom.status).toBe(200)
  expect((await receiver.arrived("/one", 3))[2]).toMatchObject({
    id: custom.body.id,
    body: Buffer.from('{"n":12345678901234567890}'),
    headers: { "content-type": "application/json" },
  })
  expect(await sendExample('"payload":{},"exampleIndex":1')).toMatchObject({ status: 422 })
  const active = async (eventType: string) =>
    (await server.call("POST", "/app/acme/msg/precheck/active", { body: { eventType } })).body.active
  expect(await active("anything")).toBe(true)
  await svix.endpoint.patch("acme", "two", { disabled: true })
  expect([await active("anything"), await active("other")]).toEqual([false, true])
})
