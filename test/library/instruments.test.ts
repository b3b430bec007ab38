/** Every measurement of a running Posthorn, on each store. */
import pg from "pg"
import { expect, onTestFinished, test } from "vitest"
import { PosthornError } from "../../src/core/errors.ts"
import { DEFAULT_ORG } from "../../src/core/org.ts"
import { TENANT_WEBHOOK_APP } from "../../src/tenant-webhooks/tenant-webhooks.ts"
import { ApiServer } from "../api/support/server.ts"
import { ON } from "../support/combination.ts"
import { Harness } from "../support/harness.ts"
import { Recorder } from "../support/recorder.ts"

const message = { eventType: "invoice.paid", payload: {} }

test("a delivery is measured from the message to the settled outcome", async () => {
  const instruments = new Recorder()
  const harness = await Harness.start({ instruments, tracer: instruments })
  const endpointId = await harness.endpoint()
  const messageId = await harness.send()
  await harness.published("delivery.delivered", 1)
  await harness.quiet()
  const took = expect.any(Number)
  expect(instruments.of("messagesAccepted")).toMatchObject([[[{ matched: 1, duplicate: false }], took]])
  expect(instruments.of("lanesClaimed")).toContainEqual([1, took])
  expect(instruments.of("deliveriesFetched")).toContainEqual([1, took])
  expect(instruments.of("outcomesSettled")).toEqual([[1, took]])
  expect(instruments.of("slotsChanged")).toEqual([
    [0, 2048],
    [1, 2047],
    [0, 2048],
  ])
  expect(instruments.of("attemptStarted")).toMatchObject([
    [{ delivery: { messageId }, endpoint: { id: endpointId }, kind: "first" }],
  ])
  expect(instruments.of("mark")).toEqual([["resolved"], ["connected"], ["first_byte"]])
  expect(instruments.of("peer")).toEqual([["127.0.0.1"]])
  expect(instruments.of("ended")).toMatchObject([
    [{ responseStatus: 200, change: { status: "delivered" }, retryDelayMs: null }],
  ])
  expect(instruments.of("storeFailed")).toEqual([])
  expect(instruments.of("leaseRenewed").length > 0).toBe(ON !== "sqlite")
})

test("outcomes that are written together are one batch", async () => {
  const instruments = new Recorder()
  const harness = await Harness.start({ instruments })
  await harness.endpoint()
  await harness.posthorn.sendBatch("acme", Array<typeof message>(40).fill(message))
  await harness.published("delivery.delivered", 40)
  const sizes = instruments.of("outcomesSettled").map(([outcomes]) => outcomes as number)
  expect(sizes.reduce((sum, size) => sum + size)).toBe(40)
  expect(Math.max(...sizes)).toBeGreaterThan(1)
})

test("every way in accepts messages in the same place", async () => {
  const instruments = new Recorder()
  const server = await ApiServer.start({ instruments, options: { deliver: false } })
  const { posthorn } = server
  const accepted = () => {
    const calls = instruments.of("messagesAccepted").map(([messages]) => (messages as unknown[]).length)
    instruments.clear()
    return calls
  }
  await posthorn.applications.create({ uid: "acme", name: "Acme" })
  const endpoint = await posthorn.endpoints.create("acme", { url: "http://127.0.0.1:1/" })
  await posthorn.tenantWebhooks.settled()

  await posthorn.send("acme", message)
  await posthorn.sendBatch("acme", [message, message])
  await posthorn.messages.sendTo("acme", endpoint.id, message)
  expect(accepted()).toEqual([1, 2, 1])

  await server.call("POST", "/app/acme/msg", { body: message })
  await server.call("POST", "/app/acme/msg?with_content=false", { body: message })
  await server.call("POST", "/app/acme/msg/batch", { body: { messages: [message, message] } })
  await server.call("POST", `/app/acme/endpoint/${endpoint.id}/send-example`, {
    body: { eventType: "svix.ping" },
  })
  expect(accepted().toSorted()).toEqual([1, 1, 1, 2])

  const shadow = await posthorn.tenantWebhooks.open(DEFAULT_ORG)
  await shadow.endpoints.create(TENANT_WEBHOOK_APP, { url: "http://127.0.0.1:1/" })
  await posthorn.endpoints.pause("acme", endpoint.id)
  await posthorn.tenantWebhooks.settled()
  expect(accepted()).toEqual([1])
})

test.runIf(ON === "postgres")("a message in the caller's transaction is accepted there too", async () => {
  const instruments = new Recorder()
  const harness = await Harness.start({ instruments })
  await harness.endpoint()
  const tx = new pg.Client({ connectionString: harness.ground.options.store })
  await tx.connect()
  onTestFinished(() => tx.end())
  await tx.query("BEGIN")
  await harness.posthorn.send("acme", message, { tx })
  await tx.query("COMMIT")
  expect(instruments.of("messagesAccepted")).toHaveLength(1)
})

test("requests of the API are measured by route and status, whoever answers them", async () => {
  const instruments = new Recorder()
  const server = await ApiServer.start({ instruments, options: { deliver: false } })
  await server.call("GET", "/app/nobody")
  await server.call("POST", "/app/nobody/msg", { body: message })
  await fetch(`${server.url}/nowhere`)
  const took = expect.any(Number)
  await expect
    .poll(() => instruments.of("requestAnswered"))
    .toEqual([
      ["GET", "/api/v1/app/:app_id", 404, took],
      ["POST", "/api/v1/app/:app_id/msg", 404, took],
      ["GET", null, 404, took],
    ])
})

test("a refusal is no failure of the store, and an attempt that ends in a fault ends its span", async () => {
  const instruments = new Recorder()
  const transport = {
    send: () => Promise.reject(new Error("a mistake of ours")),
    reachOf: () => null,
    forget: () => {},
    interrupt: () => 0,
    close: async () => {},
  }
  const harness = await Harness.start({ instruments, tracer: instruments, transport })
  await harness.endpoint({ uid: "hook" })
  await expect(harness.endpoint({ uid: "hook" })).rejects.toMatchObject({ code: "conflict" })
  await harness.send()
  await expect
    .poll(() => instruments.of("ended"))
    .toMatchObject([[{ outcome: { kind: "fault" }, responseStatus: null }]])
  expect(instruments.of("storeFailed")).toEqual([])
})

test("calls that the store cannot carry out are counted", async () => {
  const instruments = new Recorder()
  const harness = await Harness.start({ instruments, deliver: false })
  await harness.endpoint()
  await harness.ground.sql("ALTER TABLE messages RENAME TO moved")
  await expect(harness.send()).rejects.toBeInstanceOf(PosthornError)
  expect(instruments.of("storeFailed")).toMatchObject([[{ code: "store_unavailable" }]])
  await harness.ground.sql("ALTER TABLE moved RENAME TO messages")
})
