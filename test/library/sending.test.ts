/** The front door: what a program that uses the library can do and see. */
import { readFileSync } from "node:fs"
import { describe, expect, test } from "vitest"
import { VERSION } from "../../src/version.ts"
import { Harness, LOOPBACK } from "../support/harness.ts"

test("the version in the user agent is the package's", async () => {
  expect(JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")).version).toBe(
    VERSION,
  )
})

test("a header that was stored before its name was refused does not keep others from being set", async () => {
  const harness = await Harness.start()
  const endpoint = await harness.endpoint()
  await harness.sql(`UPDATE endpoints SET headers = '{"X-Goog-Old":"1"}'`)
  const { endpoints } = harness.posthorn
  expect((await endpoints.patchHeaders("acme", endpoint, { "X-Tenant": "acme" })).headers).toEqual({
    "X-Goog-Old": "1",
    "X-Tenant": "acme",
  })
  await expect(endpoints.patchHeaders("acme", endpoint, { "X-Goog-New": "1" })).rejects.toThrow("X-Goog-New")
})

test("JSON and bytes arrive exactly, with their content type and the endpoint's headers", async () => {
  const harness = await Harness.start()
  // The content type is the message's to say.
  await harness.endpoint({ headers: { "X-Tenant": "acme", "Content-Type": "text/plain" } })
  await harness.send({ text: "grüße", n: 1.5 })
  const bytes = new Uint8Array([0, 255, 10, 13, 128])
  await harness.send(bytes, { contentType: "application/x-protobuf" })
  const [json, binary] = await harness.receiver.arrived("/", 2)
  expect(json!.body.toString()).toBe('{"text":"grüße","n":1.5}')
  expect(json!.headers).toMatchObject({
    "content-type": "application/json",
    "x-tenant": "acme",
    "user-agent": `Posthorn/${VERSION}`,
  })
  expect(new Uint8Array(binary!.body)).toEqual(bytes)
  expect(binary!.headers["content-type"]).toBe("application/x-protobuf")
  expect(json!.headers["svix-id"]).toBe(json!.headers["webhook-id"])
  expect(json!.headers["svix-signature"]).toBe(json!.headers["webhook-signature"])
})

test("an endpoint's headers go out in the case in which they were given, and replace the defaults in any", async () => {
  const harness = await Harness.start()
  const headers = { "X-Tenant": "acme", "User-Agent": "Acme/1", Authorization: "hidden" }
  const auth = { type: "bearer", token: "shown" } as const
  await harness.endpoint({ headers, auth })
  await harness.send({})
  const [request] = await harness.receiver.arrived("/", 1)
  const names = request!.rawHeaders.filter((_, i) => i % 2 === 0)
  expect(names).toContain("X-Tenant")
  expect(names.filter((name) => /^user-agent$/i.test(name))).toEqual(["User-Agent"])
  expect(request!.headers).toMatchObject({ "user-agent": "Acme/1", authorization: "Bearer shown" })
})

test("channels and event types choose the endpoints, and a message says how many", async () => {
  const harness = await Harness.start()
  await harness.endpoint({ channels: ["eu"] }, "/eu")
  await harness.endpoint({ eventTypes: ["user.created"] }, "/users")
  await harness.endpoint({}, "/all")
  expect(await harness.posthorn.send("acme", { eventType: "user.created", payload: {} })).toMatchObject({
    matched: 2,
  })
  expect(
    await harness.posthorn.send("acme", { eventType: "x", payload: {}, channels: ["eu", "us"] }),
  ).toMatchObject({ matched: 2 })
  await harness.receiver.arrived("/all", 2)
  await harness.receiver.arrived("/eu", 1)
  await harness.receiver.arrived("/users", 1)
})

test("an idempotency key gives the first answer again, also by the application's other name", async () => {
  const harness = await Harness.start()
  await harness.endpoint()
  const message = { eventType: "a", payload: { n: 1 }, idempotencyKey: "inv-1" }
  const first = await harness.posthorn.send("acme", message)
  const { id } = await harness.posthorn.applications.get("acme")
  expect(await harness.posthorn.send(id, { ...message })).toEqual({ ...first, duplicate: true })
  await expect(harness.posthorn.send("acme", { ...message, payload: { n: 2 } })).rejects.toMatchObject({
    code: "conflict",
  })
  await expect(harness.posthorn.send("acme", { ...message, priority: "high" })).rejects.toMatchObject({
    code: "conflict",
  })
  await harness.published("delivery.delivered", 1)
  expect(harness.receiver.requests).toHaveLength(1)
})

test("deliveries, attempts and messages are listed with filters and cursors", async () => {
  const harness = await Harness.start()
  harness.receiver.always("/bad", 400)
  await harness.endpoint({}, "/good")
  const bad = await harness.endpoint({ retry: "enterprise" }, "/bad")
  for (let i = 0; i < 5; i++) await harness.send({ i })
  await harness.published("delivery.dead", 5)
  await harness.published("delivery.delivered", 5)
  const { deliveries, attempts, messages } = harness.posthorn
  const first = await deliveries.list({ app: "acme", limit: 6 })
  const second = await deliveries.list({ app: "acme", limit: 6, cursor: first.cursor })
  expect([first.data.length, second.data.length, first.done, second.done]).toEqual([6, 4, false, true])
  expect((await deliveries.list({ app: "acme", limit: 6, cursor: second.cursor })).data).toEqual([])
  const back = await deliveries.list({ app: "acme", limit: 4, cursor: second.previous })
  expect(back.data).toEqual(first.data.slice(2))
  expect(back.done).toBe(false)
  expect(new Set([...first.data, ...second.data].map(({ id }) => id)).size).toBe(10)
  expect(await deliveries.count({ status: "dead", deadReason: "rejected", endpoint: bad })).toBe(5)
  expect((await attempts.list({ endpoint: bad, status: "failed" })).data).toHaveLength(5)
  const [message] = (await messages.list("acme", { limit: 1 })).data
  expect((await attempts.list({ message: message!.id })).data).toHaveLength(2)
  expect(await messages.get("acme", message!.id)).toMatchObject({ matched: 2, eventType: "invoice.paid" })
  expect(await harness.posthorn.stats("acme")).toEqual({
    pending: 0,
    failed: 0,
    delivered: 5,
    dead: 5,
    calledOff: 0,
  })
  expect(await harness.posthorn.endpoints.stats("acme", bad)).toMatchObject({ dead: 5, delivered: 0 })
})

test("a delivery can be cancelled while it waits, and sent again when it is finished", async () => {
  const harness = await Harness.start()
  await harness.endpoint()
  await harness.send({}, { delaySeconds: 60 })
  const [waiting] = (await harness.posthorn.deliveries.list()).data
  expect(await harness.posthorn.deliveries.cancel(waiting!.id)).toMatchObject({
    status: "dead",
    deadReason: "cancelled",
  })
  await expect(harness.posthorn.deliveries.cancel(waiting!.id)).rejects.toMatchObject({ code: "conflict" })
  expect((await harness.published("delivery.dead", 1))[0]).toMatchObject({ reason: "cancelled" })
  await harness.posthorn.deliveries.retry(waiting!.id)
  await harness.published("delivery.delivered", 1)
  await harness.posthorn.deliveries.retry(waiting!.id)
  await harness.published("delivery.delivered", 2)
  expect(new Set(harness.receiver.requests.map(({ id }) => id)).size).toBe(1)
})

describe("policies by name", () => {
  test("are put, used, changed and refused to be deleted while used", async () => {
    const harness = await Harness.start()
    const { policies, endpoints } = harness.posthorn
    await policies.put("mine", { delays: [3], maxAttempts: 2 })
    const id = await harness.endpoint({ retry: "mine" })
    expect(await endpoints.get("acme", id)).toMatchObject({ retry: "mine", policy: { maxAttempts: 2 } })
    harness.receiver.always("/", 500)
    await policies.put("mine", { delays: [9], maxAttempts: 2 })
    await harness.send()
    await harness.published("delivery.attempt", 1)
    expect((await harness.rows())[0]).toMatchObject({ next_retry_at: harness.clock.now() + 9000 })
    await expect(policies.delete("mine")).rejects.toMatchObject({ code: "conflict" })
    await expect(policies.put("gateway", { delays: [1], maxAttempts: 1 })).rejects.toMatchObject({
      field: "name",
    })
    expect((await policies.list()).map(({ name }) => name)).toEqual([
      "standard",
      "gateway",
      "relay",
      "enterprise",
      "jobs",
      "mine",
    ])
    expect(await policies.preview("jobs")).toMatchObject({
      seconds: [0, 1, 6, 36, 156, 756],
      protection: { breaker: { settings: false, text: expect.stringMatching(/^off: /) } },
    })
    const { protection } = await policies.preview({ delays: [1], maxAttempts: 1, breaker: { failures: 7 } })
    expect(protection.breaker).toMatchObject({
      settings: { failures: 7, attempts: 20 },
      text: expect.stringMatching(/^opens after 7 failures in a row/),
    })
  })
})

test("secrets are not readable in the store", async () => {
  const harness = await Harness.start()
  const id = await harness.endpoint()
  const { key } = await harness.posthorn.endpoints.secret("acme", id)
  expect(key).toMatch(/^whsec_/)
  const [stored] = await harness.sql("SELECT secrets FROM endpoints")
  const bytes = Buffer.from(stored!.secrets as Uint8Array)
  expect(bytes.length).toBeGreaterThan(32)
  expect(bytes.includes(key.slice(6))).toBe(false)
  expect(bytes.includes(Buffer.from(key.slice(6), "base64"))).toBe(false)
})

test("the same store beside the one that delivers: looks, sends and operates, and the other delivers", async () => {
  const harness = await Harness.start()
  await harness.endpoint()
  const { openPosthorn } = await import("../../src/index.ts")
  const beside = await openPosthorn({
    ...harness.ground.options,
    deliver: false,
    egress: LOOPBACK,
    logger: "silent",
  })
  await beside.endpoints.create("acme", { url: harness.receiver.url("/second") })
  expect(await beside.send("acme", { eventType: "a", payload: {}, deliverAt: 0 })).toMatchObject({
    matched: 2,
  })
  await harness.poll()
  await harness.receiver.arrived("/", 1)
  await harness.receiver.arrived("/second", 1)
  await beside.close()
})
