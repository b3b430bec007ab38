/** Svix's client and operational webhooks: what a tenant is told of. */
import { Webhook } from "svix"
import { expect, onTestFinished, test } from "vitest"
import { TestClock } from "../../support/clock.ts"
import { Receiver } from "../../support/receiver.ts"
import { refusal, svixFor } from "../support/sdk.ts"
import { ApiServer, type ApiServerOptions } from "../support/server.ts"

const URL = "https://example.com/operations"

async function start(options: ApiServerOptions = {}) {
  const server = await ApiServer.start(options)
  const svix = svixFor(server)
  return { server, svix, endpoint: svix.operationalWebhook.endpoint }
}

test("an operational endpoint is created, read, replaced and deleted", async () => {
  const { server, endpoint } = await start()
  const made = await endpoint.create({
    url: URL,
    uid: "ops",
    description: "first",
    eventTypes: ["endpoint.disabled"],
    throttleRate: 5,
    metadata: { a: "1" },
  })
  expect(made).toMatchObject({
    url: URL,
    uid: "ops",
    description: "first",
    eventTypes: ["endpoint.disabled"],
    throttleRate: 5,
    disabled: false,
    metadata: { a: "1" },
  })
  expect(made.createdAt).toBeInstanceOf(Date)
  expect(await endpoint.get("ops")).toEqual(made)
  const replaced = await endpoint.upsert(made.id, { url: `${URL}/2`, disabled: true })
  expect(replaced).toMatchObject({
    id: made.id,
    url: `${URL}/2`,
    disabled: true,
    uid: null,
    eventTypes: null,
  })
  const body = { url: URL, uid: "second" }
  expect((await server.call("PUT", "/operational-webhook/endpoint/nobody", { body })).status).toBe(201)
  await endpoint.delete(made.id)
  expect(await refusal(endpoint.get(made.id))).toMatchObject({ status: 404 })
  expect((await endpoint.list()).data.map(({ uid }) => uid)).toEqual(["second"])
})

test("lists go both ways, the newest first", async () => {
  const { endpoint } = await start()
  for (const uid of ["a", "b", "c"]) await endpoint.create({ url: URL, uid })
  const all = await endpoint.list()
  const first = await endpoint.list({ limit: 2 })
  const second = await endpoint.list({ limit: 2, iterator: first.iterator! })
  expect([...first.data, ...second.data]).toEqual(all.data)
  expect([first.done, second.done]).toEqual([false, true])
  expect((await endpoint.list({ limit: 2, iterator: second.prevIterator! })).data).toEqual(first.data)
})

test("its secret is shown and rotated, its headers are set, and credentials among them are not shown", async () => {
  const { endpoint } = await start()
  const secret = `whsec_${Buffer.alloc(24, 1).toString("base64")}`
  const { id } = await endpoint.create({ url: URL, secret, headers: { "X-First": "1" } })
  expect(await endpoint.getSecret(id)).toEqual({ key: secret })
  await endpoint.rotateSecret(id, {})
  const { key } = await endpoint.getSecret(id)
  expect(key).not.toBe(secret)
  await endpoint.rotateSecret(id, { key: secret, gracePeriodSeconds: 60 })
  expect(await endpoint.getSecret(id)).toEqual({ key: secret })
  expect(await endpoint.getHeaders(id)).toEqual({ headers: { "X-First": "1" }, sensitive: [] })
  await endpoint.setHeaders(id, { headers: { "x-second": "2", Authorization: "hunter2" } })
  expect(await endpoint.getHeaders(id)).toEqual({
    headers: { "x-second": "2" },
    sensitive: ["Authorization"],
  })
})

test("operational webhooks are signed with the endpoint's secret, and only of the types that it asked for", async () => {
  const receiver = await Receiver.start()
  onTestFinished(() => receiver.close())
  const { svix, endpoint } = await start()
  const eventTypes = ["endpoint.created"]
  const { id } = await endpoint.create({ url: receiver.url("/operations"), eventTypes })
  const app = await svix.application.create({ name: "Acme", uid: "acme" })
  const hook = await svix.endpoint.create("acme", { url: URL })
  await svix.endpoint.patch("acme", hook.id, { description: "changed" })
  const second = await svix.endpoint.create("acme", { url: URL })
  const told = await receiver.arrived("/operations", 2)
  const { key } = await endpoint.getSecret(id)
  for (const { body, headers } of told) new Webhook(key).verify(`${body}`, headers as never)
  const events = told.map(({ body }) => JSON.parse(`${body}`))
  expect(events).toEqual(
    expect.arrayContaining(
      [hook, second].map((one) => ({
        type: "endpoint.created",
        data: { appId: app.id, appUid: "acme", endpointId: one.id, endpointUid: null },
      })),
    ),
  )
})

test("looking makes nothing, and each tenant has its own", async () => {
  const { server, endpoint } = await start()
  expect(await endpoint.list()).toMatchObject({ data: [], iterator: null, done: true })
  for (const call of [
    () => endpoint.get("x"),
    () => endpoint.getSecret("x"),
    () => endpoint.getHeaders("x"),
    () => endpoint.delete("x"),
  ])
    expect(await refusal(call())).toMatchObject({
      status: 404,
      body: { detail: expect.stringContaining('endpoint "x"') },
    })
  expect(await server.posthorn.tenantWebhooks.find(server.posthorn.context.orgId)).toBeNull()
  const { id } = await endpoint.create({ url: URL, uid: "ops" })
  const { token } = await server.posthorn.tenant("org_other").keys.create({ name: "x", scope: "admin" })
  const other = svixFor(server, token).operationalWebhook.endpoint
  for (const name of [id, "ops"]) expect(await refusal(other.get(name))).toMatchObject({ status: 404 })
  await other.create({ url: URL, uid: "ops" })
  expect((await endpoint.list()).data).toHaveLength(1)
})

test("only keys of the whole tenant reach them, and who only reads sees no secret", async () => {
  const { server, endpoint } = await start()
  await endpoint.create({ url: URL, uid: "ops" })
  await server.posthorn.applications.create({ uid: "acme", name: "Acme" })
  const key = async (input: object) =>
    (await server.posthorn.keys.create({ name: "x", ...input } as never)).token
  const portal = svixFor(server, await key({ scope: "application", appId: "acme" })).operationalWebhook
    .endpoint
  const reader = svixFor(server, await key({ scope: "read" })).operationalWebhook.endpoint
  expect(await refusal(portal.list())).toMatchObject({ status: 403 })
  expect((await reader.list()).data).toHaveLength(1)
  expect(await refusal(reader.getSecret("ops"))).toMatchObject({ status: 403 })
  expect(await refusal(reader.create({ url: URL }))).toMatchObject({ status: 403 })
})

test("an event type that is never told of is refused", async () => {
  const { endpoint } = await start()
  expect(await refusal(endpoint.create({ url: URL, eventTypes: ["message.attempt.log"] }))).toMatchObject({
    status: 422,
    body: { detail: [{ loc: ["body", "eventTypes", "0"] }] },
  })
})

test("the same idempotency key makes one endpoint, also when the first answer was never kept", async () => {
  const clock = new TestClock()
  const { server, endpoint } = await start({ clock })
  const create = () => endpoint.create({ url: URL }, { idempotencyKey: "once" })
  const first = await create()
  expect(await create()).toEqual(first)
  const { store, orgId } = server.posthorn.context
  const [kept] = await store.listEntries(
    "answer",
    orgId,
    { limit: 9, order: "ascending", from: null, back: false },
    clock.now(),
  )
  // As if the process had been killed between the endpoint and the answer.
  const record = { ...JSON.parse(kept!.body), answer: null, broken: true }
  await store.saveEntryIfUnchanged({ ...kept!, version: kept!.version + 1, body: JSON.stringify(record) })
  expect(await create()).toEqual(first)
  expect((await endpoint.list()).data).toHaveLength(1)
})
