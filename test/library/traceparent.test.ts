/** The caller's trace context: stored with the message by every way in, on each store, and given to each attempt. */
import pg from "pg"
import { expect, onTestFinished, test } from "vitest"
import { ApiServer } from "../api/support/server.ts"
import { ON } from "../support/combination.ts"
import { Harness } from "../support/harness.ts"
import { Recorder } from "../support/recorder.ts"

const message = { eventType: "invoice.paid", payload: {} }
const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

test("a message's trace context reaches its attempts: fetched, handed over, retried, and after a restart", async () => {
  const tracing = new Recorder()
  const harness = await Harness.start({ tracer: tracing, retry: { delays: [60], maxAttempts: 3 } })
  await harness.endpoint()
  const contexts = () =>
    tracing
      .of("attemptStarted")
      .map(([attempt]) => (attempt as { delivery: { traceparent: string | null } }).delivery.traceparent)
  await harness.posthorn.send("acme", message, { traceparent })
  await harness.published("delivery.delivered", 1)
  // The lane is open now.
  await harness.posthorn.send("acme", message, { traceparent })
  await harness.published("delivery.delivered", 2)
  await harness.posthorn.send("acme", message)
  await harness.published("delivery.delivered", 3)
  expect(contexts()).toEqual([traceparent, traceparent, null])
  tracing.clear()
  harness.receiver.always("/", 500)
  await harness.posthorn.send("acme", message, { traceparent })
  await harness.published("delivery.attempt", 4)
  await harness.quiet()
  await harness.restart()
  await harness.attemptAfter(60_000)
  expect(contexts()).toEqual([traceparent, traceparent])
})

test("every way in stores the trace context", async () => {
  const server = await ApiServer.start({ options: { deliver: false } })
  const { posthorn } = server
  await posthorn.applications.create({ uid: "acme", name: "Acme" })
  const { id: endpoint } = await posthorn.endpoints.create("acme", { url: "http://127.0.0.1:1/" })
  const stored = async (id: string) => (await posthorn.messages.get("acme", id)).traceparent

  const sent = [
    await posthorn.send("acme", message, { traceparent }),
    ...(await posthorn.sendBatch("acme", [message, message], { traceparent })),
    await posthorn.messages.sendTo("acme", endpoint, message, { traceparent }),
  ]
  for (const { id } of sent) expect(await stored(id)).toBe(traceparent)

  const headers = { traceparent, tracestate: "a=b", baggage: "user=17" }
  const ways = [
    ["/app/acme/msg", message],
    ["/app/acme/msg?with_content=false", message],
    ["/app/acme/msg/batch", { messages: [message] }],
    [`/app/acme/endpoint/${endpoint}/send-example`, { eventType: "svix.ping" }],
  ] as const
  for (const [path, body] of ways) {
    const { body: answer } = await server.call("POST", path, { body, headers })
    const { id } = answer.data?.[0] ?? answer
    expect([path, await stored(id)]).toEqual([path, traceparent])
  }
})

test("an invalid trace context is ignored, and one that is no text is refused", async () => {
  const server = await ApiServer.start({ options: { deliver: false } })
  const { posthorn } = server
  await posthorn.applications.create({ uid: "acme", name: "Acme" })
  const { id } = await posthorn.send("acme", message, { traceparent: "00-xyz" })
  expect(await posthorn.messages.get("acme", id)).toMatchObject({ traceparent: null })
  const { status, body } = await server.call("POST", "/app/acme/msg", {
    body: message,
    headers: { traceparent: "x".repeat(9000) },
  })
  expect(status).toBe(202)
  expect(await posthorn.messages.get("acme", body.id)).toMatchObject({ traceparent: null })
  await expect(posthorn.send("acme", message, { traceparent: 7 as never })).rejects.toMatchObject({
    code: "invalid_input",
    field: "traceparent",
  })
})

test("the trace context is no part of what an idempotency key stands for", async () => {
  const harness = await Harness.start({ deliver: false })
  await harness.endpoint()
  const input = { ...message, idempotencyKey: "once" }
  const first = await harness.posthorn.send("acme", input, { traceparent })
  const other = traceparent.replace("4bf9", "5bf9")
  expect(await harness.posthorn.send("acme", input, { traceparent: other })).toEqual({
    ...first,
    duplicate: true,
  })
  expect(await harness.posthorn.messages.get("acme", first.id)).toMatchObject({ traceparent })
})

test.runIf(ON === "postgres")("a message in the caller's transaction keeps its trace context", async () => {
  const harness = await Harness.start({ deliver: false })
  await harness.endpoint()
  const tx = new pg.Client({ connectionString: harness.ground.options.store })
  await tx.connect()
  onTestFinished(() => tx.end())
  await tx.query("BEGIN")
  const { id } = await harness.posthorn.send("acme", message, { tx, traceparent })
  await tx.query("COMMIT")
  expect(await harness.posthorn.messages.get("acme", id)).toMatchObject({ traceparent })
})
