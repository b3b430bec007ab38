import { expect, test } from "vitest"
import { DEFAULT_ORG } from "../../src/core/org.ts"
import { MANAGEMENT_ORG, TENANT_WEBHOOK_APP } from "../../src/tenant-webhooks/tenant-webhooks.ts"
import { Harness } from "../support/harness.ts"

async function told(harness: Harness, count: number): Promise<{ type: string; data: object }[]> {
  await harness.receiver.arrived("/operations", count)
  return harness.receiver.to("/operations").map(({ body }) => JSON.parse(`${body}`))
}

async function start(): Promise<Harness> {
  const harness = await Harness.start()
  const shadow = await harness.posthorn.tenantWebhooks.open(DEFAULT_ORG)
  const url = harness.receiver.url("/operations")
  await shadow.endpoints.create(TENANT_WEBHOOK_APP, { url, ordered: true })
  return harness
}

test("a tenant is told of its endpoints, and of what they could not be sent", async () => {
  const harness = await start()
  const id = await harness.endpoint({ uid: "hook", retry: { delays: [1], maxAttempts: 1 } }, "/hook")
  expect((await told(harness, 1))[0]).toEqual({
    type: "endpoint.created",
    data: { appId: expect.stringMatching(/^app_/), appUid: "acme", endpointId: id, endpointUid: "hook" },
  })
  harness.receiver.always("/hook", 500)
  const message = await harness.send({}, { eventId: "evt-1" })
  const exhausted = (await told(harness, 2))[1]!
  expect(exhausted).toMatchObject({
    type: "message.attempt.exhausted",
    data: { appUid: "acme", msgId: message, msgEventId: "evt-1", endpointId: id },
  })
  expect(exhausted.data).toMatchObject({
    lastAttempt: { id: expect.stringMatching(/^atmpt_/), responseStatusCode: 500 },
  })
  await harness.posthorn.endpoints.update("acme", id, { disabled: true })
  const types = (await told(harness, 4)).slice(2).map(({ type }) => type)
  expect(types.sort()).toEqual(["endpoint.disabled", "endpoint.updated"])
  await harness.posthorn.endpoints.delete("acme", id)
  expect((await told(harness, 5))[4]).toMatchObject({ type: "endpoint.deleted" })
})

test("a message that keeps failing is told of once, and so is its recovery", async () => {
  const harness = await start()
  const id = await harness.endpoint({ retry: { delays: [1], maxAttempts: 10, breaker: false } }, "/hook")
  harness.receiver.queue("/hook", 500, 500, 500, 500, 500)
  await harness.send()
  for (let attempt = 1; attempt <= 5; attempt++) {
    await expect
      .poll(() =>
        harness.events.filter(({ type, webhook_id }) => type === "delivery.attempt" && webhook_id === id),
      )
      .toHaveLength(attempt)
    await harness.quiet()
    harness.clock.advance(1000)
  }
  const types = (await told(harness, 3)).map(({ type }) => type)
  expect(types).toEqual(["endpoint.created", "message.attempt.failing", "message.attempt.recovered"])
})

test("operational endpoints and messages are in no list of the tenant, and nobody is told of them", async () => {
  const harness = await start()
  await harness.endpoint()
  await told(harness, 1)
  await harness.quiet()
  expect((await harness.posthorn.applications.list()).data.map(({ uid }) => uid)).toEqual(["acme"])
  expect((await harness.posthorn.deliveries.list()).data).toEqual([])
  expect(await harness.posthorn.stats()).toMatchObject({ delivered: 0 })
  expect(harness.receiver.to("/operations")).toHaveLength(1)
})

test("Svix's management organization is told of those that have an application there, from the moment it is made", async () => {
  const harness = await Harness.start()
  const hook = (uid: string) => harness.endpoint({ uid }, "/hook")
  await hook("before")
  await harness.posthorn.tenantWebhooks.settled()
  const management = harness.posthorn.tenant(MANAGEMENT_ORG)
  await management.applications.create({ name: "Told", uid: DEFAULT_ORG })
  await management.endpoints.create(DEFAULT_ORG, { url: harness.receiver.url("/operations"), ordered: true })
  const id = await hook("after")
  expect(await told(harness, 1)).toEqual([
    { type: "endpoint.created", data: expect.objectContaining({ endpointId: id, endpointUid: "after" }) },
  ])
  const shadow = await harness.posthorn.tenantWebhooks.open(DEFAULT_ORG)
  await shadow.endpoints.create(TENANT_WEBHOOK_APP, { url: harness.receiver.url("/both") })
  await harness.posthorn.endpoints.delete("acme", id)
  expect((await told(harness, 2))[1]).toMatchObject({ type: "endpoint.deleted" })
  await harness.receiver.arrived("/both", 1)
})

test("the management organization is not told of itself", async () => {
  const harness = await Harness.start()
  const management = harness.posthorn.tenant(MANAGEMENT_ORG)
  await management.applications.create({ name: "Itself", uid: MANAGEMENT_ORG })
  const url = harness.receiver.url("/operations")
  await management.endpoints.create(MANAGEMENT_ORG, { url })
  await harness.posthorn.tenantWebhooks.settled()
  expect((await management.messages.list(MANAGEMENT_ORG)).data).toEqual([])
})

test.each([
  ["in time", false],
  ["after a cancel", true],
])("410 %s disables the endpoint, and the tenant is told once", async (_when, isLate) => {
  const harness = await start()
  const id = await harness.endpoint({ retry: { delays: [1], maxAttempts: 3, gone: true } }, "/hook")
  const answer = harness.receiver.hold("/hook")
  const message = await harness.send()
  await harness.receiver.arrived("/hook", 1)
  const { deliveries, endpoints } = harness.posthorn
  if (isLate) await deliveries.cancel((await deliveries.list({ message })).data[0]!.id)
  answer(410)
  await harness.receiver.arrived("/operations", isLate ? 2 : 3)
  expect(await endpoints.get("acme", id)).toMatchObject({ disabled: true })
  await harness.quiet()
  const disabled = (await told(harness, 2)).filter(({ type }) => type === "endpoint.disabled")
  expect(disabled).toMatchObject([{ data: { appUid: "acme", endpointId: id, trigger: "automatic" } }])
})

test("an endpoint that failed for too long is told of as disabled automatically, and since when it failed", async () => {
  const harness = await start()
  const retry = {
    delays: [3600],
    maxAge: 86_400,
    breaker: false,
    autoDisable: { after: 43_200, failures: 2 },
  }
  const id = await harness.endpoint({ uid: "hook", retry }, "/hook")
  harness.receiver.always("/hook", 404)
  await harness.send()
  await harness.published("delivery.attempt", 1)
  const began = harness.clock.now()
  for (let hour = 1; hour <= 12; hour++) {
    await harness.quiet()
    harness.clock.advance(3_600_000)
    await harness.receiver.arrived("/hook", hour + 1)
  }
  const types = (await told(harness, 3)).map(({ type }) => type)
  expect(types).toEqual(["endpoint.created", "message.attempt.failing", "endpoint.disabled"])
  expect((await told(harness, 3))[2]!.data).toEqual({
    appId: expect.stringMatching(/^app_/),
    appUid: "acme",
    endpointId: id,
    endpointUid: "hook",
    trigger: "automatic",
    failSince: new Date(began).toISOString(),
  })
})

test("a discard that ends tells that the endpoint is enabled", async () => {
  const harness = await start()
  const id = await harness.endpoint({ disabled: true }, "/hook")
  await harness.posthorn.endpoints.enable("acme", id, { held: "discard" })
  const types = (await told(harness, 3)).map(({ type }) => type)
  expect(types.toSorted()).toEqual(["endpoint.created", "endpoint.enabled", "endpoint.updated"])
})
