/** Beside Svix's calls: many messages in one request, and a delay in seconds. */
import { expect, onTestFinished, test } from "vitest"
import type { Store } from "../../../src/store/store.ts"
import { Receiver } from "../../support/receiver.ts"
import { ApiServer } from "../support/server.ts"

async function start(wrapStore?: (store: Store) => Store) {
  const receiver = await Receiver.start()
  onTestFinished(() => receiver.close())
  const server = await ApiServer.start(wrapStore === undefined ? {} : { wrapStore })
  await server.posthorn.applications.create({ uid: "acme", name: "Acme" })
  await server.posthorn.endpoints.create("acme", { url: receiver.url("/hook"), ordered: true })
  const post = (body: unknown, key?: string, query = "") =>
    server.call("POST", `/app/acme/msg/batch${query}`, {
      ...(typeof body === "string" ? { raw: body } : { body }),
      headers: key === undefined ? {} : { "idempotency-key": key },
    })
  const stored = async () => (await server.posthorn.messages.list("acme")).data.length
  return { server, receiver, post, stored }
}

const message = (eventType: string, more: object = {}) => ({ eventType, payload: { eventType }, ...more })

test("a batch is sent in its order, with each payload in the bytes in which it came", async () => {
  const { receiver, post } = await start()
  const sent = await post(
    '{"messages": [ {"eventType":"a", "payload":{"n":12345678901234567890}},{"data":[1.0] ,"eventType":"b","tags":["t"]} ]}',
  )
  expect(sent).toMatchObject({
    status: 202,
    body: { data: [{ eventType: "a" }, { tags: ["t"], matched: 1 }] },
  })
  expect(sent.text).toContain('"payload":{"n":12345678901234567890}')
  const arrived = await receiver.arrived("/hook", 2)
  expect(arrived.map(({ id, body }) => [id, `${body}`])).toEqual([
    [sent.body.data[0].id, '{"n":12345678901234567890}'],
    [sent.body.data[1].id, "[1.0]"],
  ])
  const without = await post({ messages: [message("c")] }, undefined, "?with_content=false")
  expect(without.body.data[0].payload).toEqual({})
})

test("a batch is accepted as a whole or not at all, and the message at fault is named", async () => {
  const { post, stored } = await start()
  const refused = async (second: object, ...loc: string[]) =>
    expect(await post({ messages: [message("a"), second] })).toMatchObject({
      status: 422,
      body: { detail: [{ loc: ["body", "messages", "1", ...loc] }] },
    })
  await refused({ eventType: "?", payload: 1 }, "eventType")
  await refused({ eventType: "a" }, "payload")
  await refused(message("a", { application: { name: "x" } }), "application")
  await refused(message("a", { delaySeconds: 1, deliverAt: "2031-01-01T00:00:00Z" }), "delaySeconds")
  for (const messages of [[], Array.from({ length: 1001 }, () => message("a"))])
    expect((await post({ messages })).status).toBe(422)
  await post({ messages: [message("a", { eventId: "once" })] })
  expect((await post({ messages: [message("b"), message("b", { eventId: "once" })] })).status).toBe(409)
  expect(await stored()).toBe(1)
})

test("the same key and batch give the first answer, and any other batch is a conflict", async () => {
  const { post, stored } = await start()
  const messages = [message("a"), message("b")]
  const first = await post({ messages }, "k")
  expect(await post({ messages }, "k")).toMatchObject({ status: 202, body: first.body })
  for (const other of [[messages[0]], [...messages, message("c")], [...messages].reverse()])
    expect((await post({ messages: other }, "k")).status).toBe(409)
  expect(await stored()).toBe(2)
  expect((await post({ messages: [message("c")] }, "")).status).toBe(422)
})

test("a batch makes the application that it brings", async () => {
  const { server } = await start()
  const body = { application: { name: "New", uid: "new" }, messages: [message("a")] }
  expect(await server.call("POST", "/app/new/msg/batch", { body })).toMatchObject({
    status: 202,
    body: { data: [{ matched: 0 }] },
  })
})

test("a delay in seconds is a time from now, and is answered as one", async () => {
  const { server, receiver, post } = await start()
  const send = (more: object) => server.call("POST", "/app/acme/msg", { body: message("a", more) })
  const { status, body } = await send({ delaySeconds: 3600.5 })
  expect(status).toBe(202)
  // The answer has the time as the wall clock has it; `timestamp` is the steady clock's.
  expect(Math.abs(Date.parse(body.deliverAt) - Date.parse(body.timestamp) - 3_600_500)).toBeLessThan(60_000)
  const { deliverAt } = (await server.call("GET", `/app/acme/msg/${body.id}`)).body
  expect(deliverAt).toBe(body.deliverAt)
  const batch = await post({ messages: [message("a"), message("b", { delaySeconds: 7200 })] })
  const [first, second] = batch.body.data
  expect(first.deliverAt).toBeUndefined()
  expect((await server.call("GET", `/app/acme/msg/${second.id}`)).body.deliverAt).toBe(second.deliverAt)
  const now = await send({ delaySeconds: 0 })
  expect((await receiver.arrived("/hook", 2)).map(({ id }) => id)).toEqual([first.id, now.body.id])
  for (const wrong of [{ delaySeconds: -1 }, { delaySeconds: 1, deliverAt: deliverAt as string }])
    expect(await send(wrong)).toMatchObject({
      status: 422,
      body: { detail: [{ loc: ["body", "delaySeconds"] }] },
    })
})

test("a delayed message is answered from what was written, without another read, and a repeat has the first time", async () => {
  const unreadable = () => Promise.reject(new Error("not readable now"))
  const { server, post } = await start((store) => ({
    ...store,
    getMessages: unreadable,
    getMessage: unreadable,
  }))
  const later = message("a", { delaySeconds: 3600 })
  const send = () =>
    server.call("POST", "/app/acme/msg", { body: later, headers: { "idempotency-key": "one" } })
  const first = await send()
  expect(first).toMatchObject({ status: 202, body: { deliverAt: expect.any(String) } })
  expect(await send()).toMatchObject({ status: 202, body: first.body })
  const batch = await post({ messages: [later, message("b")] }, "many")
  expect(batch).toMatchObject({ status: 202, body: { data: [{ deliverAt: expect.any(String) }, {}] } })
  expect(await post({ messages: [later, message("b")] }, "many")).toMatchObject({ body: batch.body })
})
