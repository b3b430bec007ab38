/** The spans of a program that has registered a tracer provider, on each store. */
import { context, type Span, SpanKind, SpanStatusCode, type Tracer, trace } from "@opentelemetry/api"
import {
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
  StackContextManager,
  TracerProvider,
} from "@opentelemetry/sdk-trace"
import { expect, onTestFinished, test } from "vitest"
import { Harness, type HarnessOptions } from "../support/harness.ts"
import { TestAgent } from "../support/test-agent.ts"

const message = { eventType: "invoice.paid", payload: { n: 1 } }

async function traced(options: HarnessOptions = {}) {
  const exporter = new InMemorySpanExporter()
  const provider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] })
  trace.setGlobalTracerProvider(provider)
  context.setGlobalContextManager(new StackContextManager().enable())
  onTestFinished(() => {
    trace.disable()
    context.disable()
  })
  const harness = await Harness.start({ tracing: true, retry: { delays: [60], maxAttempts: 3 }, ...options })
  const named = (name: string): ReadableSpan[] =>
    exporter.getFinishedSpans().filter((span) => span.name === name)
  return { harness, tracer: provider.getTracer("test"), named }
}

test("the parent of a call that sends is the active span, and that of the first attempt is the call", async () => {
  const { harness, tracer, named } = await traced()
  await harness.endpoint()
  const mine = tracer.startSpan("mine")
  const inMine = trace.setSpan(context.active(), mine)
  const { id } = await context.with(inMine, () => harness.posthorn.send("acme", message))
  await harness.published("delivery.delivered", 1)
  const [published] = named("publish webhooks")
  const [attempt] = named("POST")
  expect(published).toMatchObject({ parentSpanContext: { spanId: mine.spanContext().spanId } })
  expect(attempt).toMatchObject({
    parentSpanContext: { spanId: published!.spanContext().spanId },
    links: [],
    status: { code: SpanStatusCode.UNSET },
    attributes: { "posthorn.message.id": id, "posthorn.attempt.outcome": "delivered" },
  })
  expect(attempt!.spanContext().traceId).toBe(mine.spanContext().traceId)
  expect(harness.receiver.requests[0]!.headers).not.toHaveProperty("traceparent")
})

test("a batch is one span with a count, and a refused call is an error", async () => {
  const { harness, named } = await traced({ deliver: false })
  await harness.endpoint()
  await harness.posthorn.sendBatch("acme", [message, message])
  await expect(harness.posthorn.send("nobody", message)).rejects.toMatchObject({ code: "not_found" })
  const [batch, refused] = named("publish webhooks")
  expect(batch!.attributes).toMatchObject({
    "messaging.batch.message_count": 2,
    "posthorn.message.matched": 2,
  })
  expect(batch!.attributes).not.toHaveProperty("messaging.message.id")
  expect(refused).toMatchObject({
    attributes: { "error.type": "not_found" },
    status: { code: SpanStatusCode.ERROR },
  })
})

test("retries and an operator's retry are traces of their own, with a link to the message", async () => {
  const { harness, named } = await traced({ sendTraceparent: true })
  await harness.endpoint()
  harness.receiver.queue("/", 500, 500)
  await harness.send()
  await harness.published("delivery.attempt", 1)
  await harness.quiet()
  await harness.attemptAfter(60_000)
  await harness.quiet()
  await harness.attemptAfter(60_000)
  await harness.quiet()
  const [{ id }] = (await harness.rows()) as [{ id: string }]
  await harness.posthorn.deliveries.retry(id)
  await harness.published("delivery.attempt", 4)
  const created = named("publish webhooks")[0]!.spanContext()
  const [first, ...others] = named("POST")
  expect(first!.spanContext().traceId).toBe(created.traceId)
  expect(others).toHaveLength(3)
  for (const { links, parentSpanContext } of others) {
    expect(parentSpanContext).toBeUndefined()
    expect(links).toMatchObject([{ context: { traceId: created.traceId, spanId: created.spanId } }])
  }
  expect(new Set(named("POST").map((span) => span.spanContext().traceId)).size).toBe(4)
  expect(named("POST").map(({ attributes }) => attributes["posthorn.attempt.trigger"])).toEqual([
    "schedule",
    "schedule",
    "schedule",
    "manual",
  ])
  expect(harness.receiver.requests.map(({ headers }) => headers.traceparent)).toEqual(
    named("POST").map((span) => `00-${span.spanContext().traceId}-${span.spanContext().spanId}-01`),
  )
})

test("a retry by an operator's typed reset is a trace of its own, with a link to the message", async () => {
  const { harness, named } = await traced({ retry: { delays: [60], maxAttempts: 1 } })
  await harness.endpoint()
  harness.receiver.queue("/", 500)
  await harness.send()
  await harness.published("delivery.dead", 1)
  await harness.quiet()
  await harness.sql("UPDATE webhook_deliveries SET status = 'pending', attempt_count = 0")
  await harness.poll()
  await harness.published("delivery.delivered", 1)
  const [published] = named("publish webhooks")
  const [first, second] = named("POST")
  const message = published!.spanContext()
  expect(first).toMatchObject({ parentSpanContext: { spanId: message.spanId }, links: [] })
  expect(second!.parentSpanContext).toBeUndefined()
  expect(second!.links).toMatchObject([{ context: { spanId: message.spanId } }])
  expect(second!.spanContext().traceId).not.toBe(message.traceId)
})

test("a first attempt that is a breaker's probe is in the trace of its message", async () => {
  const { harness, named } = await traced({ random: () => 0.5 })
  const retry = { delays: [7200], maxAttempts: 3, breaker: { failures: 1, ramp: 100 } }
  await harness.endpoint({ retry })
  harness.receiver.queue("/", 500)
  await harness.send()
  await harness.published("delivery.attempt", 1)
  await harness.quiet()
  await harness.send()
  await harness.quiet()
  harness.clock.advance(30_000)
  await harness.published("delivery.delivered", 1)
  const [, created] = named("publish webhooks")
  const [, probe] = named("POST")
  expect(probe).toMatchObject({
    parentSpanContext: { spanId: created!.spanContext().spanId },
    links: [],
    attributes: { "posthorn.attempt.trigger": "probe", "posthorn.attempt.number": 1 },
  })
})

test("an attempt that a stop cuts off is no error", async () => {
  const { harness, named } = await traced()
  await harness.endpoint()
  harness.receiver.hold("/")
  await harness.send()
  await harness.receiver.arrived("/", 1)
  await harness.close()
  expect(named("POST")).toMatchObject([
    { status: { code: SpanStatusCode.UNSET }, attributes: { "posthorn.attempt.outcome": "interrupted" } },
  ])
})

test("a refused connection is an error with its cause", async () => {
  const { harness, named } = await traced()
  await harness.endpoint({ url: "http://127.0.0.1:1/" })
  await harness.send()
  await harness.published("delivery.attempt", 1)
  expect(named("POST")).toMatchObject([
    {
      status: { code: SpanStatusCode.ERROR },
      attributes: { "error.type": "connection_refused", "posthorn.retry.delay_s": 60 },
    },
  ])
})

test("a span processor that throws loses neither a message nor an outcome", async () => {
  const { harness } = await traced({ open: false })
  trace.disable()
  const broken = {
    onStart: () => {},
    onEnd: () => {
      throw new Error("a mistake of the host's")
    },
    forceFlush: async () => {},
    shutdown: async () => {},
  }
  trace.setGlobalTracerProvider(new TracerProvider({ spanProcessors: [broken] }))
  await harness.open()
  await harness.endpoint()
  await harness.send()
  await harness.published("delivery.delivered", 1)
})

test("spans that throw at every call lose neither a message nor an outcome", async () => {
  const { harness } = await traced({ open: false })
  trace.disable()
  const thrown = new Set<string>()
  trace.setGlobalTracerProvider({ getTracer: () => throwingTracer(thrown) })
  await harness.open()
  await harness.endpoint()
  harness.receiver.queue("/", 500)
  await harness.send()
  await expect(harness.posthorn.send("nobody", message)).rejects.toMatchObject({ code: "not_found" })
  await harness.published("delivery.attempt", 1)
  await harness.quiet()
  await harness.attemptAfter(60_000)
  await harness.published("delivery.delivered", 1)
  expect([...thrown].sort()).toEqual(["addEvent", "end", "setAttributes", "setStatus"])
})

/** Its spans have a context and record; each other call throws, and its name is kept. */
function throwingTracer(thrown: Set<string>): Tracer {
  const spanContext = {
    traceId: "4bf92f3577b34da6a3ce929d0e0e4736",
    spanId: "00f067aa0ba902b7",
    traceFlags: 1,
  }
  const span = new Proxy({} as Span, {
    get: (_, name: string) => () => {
      if (name === "spanContext") return spanContext
      if (name === "isRecording") return true
      thrown.add(name)
      throw new Error("a mistake of the host's")
    },
  })
  return { startSpan: () => span } as Partial<Tracer> as Tracer
}

test("without tracing, receivers that are to get it have the caller's context, and no header of the endpoint's own", async () => {
  const harness = await Harness.start({ sendTraceparent: true })
  await harness.endpoint({ headers: { traceparent: "of the endpoint" } })
  const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
  await harness.posthorn.send("acme", message, { traceparent })
  await harness.published("delivery.delivered", 1)
  await harness.posthorn.send("acme", message)
  await harness.published("delivery.delivered", 2)
  expect(harness.receiver.requests.map(({ headers }) => headers.traceparent)).toEqual([
    traceparent,
    undefined,
  ])
})

test("the duration of a sampled attempt has its trace as an exemplar", async () => {
  const { harness, named } = await traced({ metrics: true })
  await harness.endpoint()
  await harness.send()
  await harness.published("delivery.delivered", 1)
  const { traceId } = named("POST")[0]!.spanContext()
  const metric = await harness.posthorn.registry!.getSingleMetric("posthorn_attempt_duration_seconds")!.get()
  expect(JSON.stringify(metric.values)).toContain(`"trace_id":"${traceId}"`)
})

test("an event for an agent is a span with its name and its acknowledgement, and carries the trace", async () => {
  const { harness, named } = await traced({ sendTraceparent: true })
  const endpointId = await harness.endpoint({ url: "relay://hub" })
  const agent = await TestAgent.join(harness)
  await harness.send()
  const event = await agent.event(1)
  agent.answer(event, 503)
  await harness.published("delivery.attempt", 1)
  await harness.quiet()
  harness.clock.advance(60_000)
  agent.ack(await agent.event(2), "permanent", { error: "no such door" })
  await harness.published("delivery.dead", 1)
  const [published] = named("publish webhooks")
  const [first, second, ...others] = named("send webhook")
  const { traceId, spanId } = first!.spanContext()
  expect(event.traceparent).toBe(`00-${traceId}-${spanId}-01`)
  expect(traceId).toBe(published!.spanContext().traceId)
  expect(first).toMatchObject({
    kind: SpanKind.CLIENT,
    events: [],
    status: { code: SpanStatusCode.ERROR },
    attributes: {
      "server.address": "hub",
      "url.full": "relay://hub",
      "http.response.status_code": 503,
      "error.type": "transient",
      "posthorn.endpoint.id": endpointId,
      "posthorn.attempt.outcome": "retry",
    },
  })
  expect(second!.attributes).toMatchObject({ "error.type": "permanent", "posthorn.attempt.outcome": "dead" })
  for (const { attributes } of [first!, second!])
    for (const name of ["http.request.method", "server.port", "network.peer.address"])
      expect(attributes).not.toHaveProperty(name)
  expect(others).toEqual([])
})

test("an event that the connection's end cut off is a span without an error, and agents get no trace unless told", async () => {
  const { harness, named } = await traced()
  await harness.endpoint({ url: "relay://hub" })
  const agent = await TestAgent.join(harness)
  await harness.send()
  expect((await agent.event(1)).traceparent).toBeNull()
  agent.cut()
  await expect.poll(() => named("send webhook").length).toBe(1)
  const [span] = named("send webhook")
  expect(span).toMatchObject({
    status: { code: SpanStatusCode.UNSET },
    attributes: { "posthorn.attempt.outcome": "interrupted" },
  })
  expect(span!.attributes).not.toHaveProperty("error.type")
})
