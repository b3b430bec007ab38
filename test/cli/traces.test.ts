/** Traces of `posthorn serve` and `worker`, in processes of their own, at a real OTLP receiver over HTTP. */
import { join } from "node:path"
import { beforeEach, expect, onTestFinished, test, vi } from "vitest"
import { openPosthorn } from "../../src/posthorn.ts"
import { programFile } from "../support/bundled.ts"
import { Collector } from "../support/collector.ts"
import { LOOPBACK, temporaryFolder } from "../support/harness.ts"
import { Program } from "../support/process.ts"
import { Receiver } from "../support/receiver.ts"
import { freshDatabase } from "../support/servers/postgres.ts"

const MAIN = programFile("posthorn")
const SOURCE = new URL("../../src/cli/main.ts", import.meta.url)
const KEY = "key-for-the-tests-of-traces-long-enough"
const RETRY = JSON.stringify({ delays: [0.1], maxAttempts: 3 })
const CALLER = { traceId: "4bf92f3577b34da6a3ce929d0e0e4736", spanId: "00f067aa0ba902b7" }
const message = { eventType: "invoice.paid", payload: { n: 1 } }

beforeEach(() => {
  vi.stubEnv("POSTHORN_EGRESS_ALLOW", "127.0.0.0/8")
  vi.stubEnv("POSTHORN_EGRESS_PORTS", "any")
  vi.stubEnv("POSTHORN_API_KEY", KEY)
  vi.stubEnv("OTEL_BSP_SCHEDULE_DELAY", "50")
  return () => vi.unstubAllEnvs()
})

function start(args: readonly string[], file = MAIN, nodeOptions: readonly string[] = []): Program {
  const program = Program.start(file, args, { nodeOptions })
  onTestFinished(async () => void (await program.kill()))
  return program
}

interface Served {
  readonly program: Program
  readonly receiver: Receiver
  post(path: string, body: object, headers?: { readonly [name: string]: string }): Promise<{ id: string }>
  stop(): Promise<number | null>
}

/** A server with one application, and one endpoint whose URL has a secret. */
async function serve(more: readonly string[] = [], file = MAIN, nodeOptions: string[] = []): Promise<Served> {
  const receiver = await Receiver.start()
  onTestFinished(() => receiver.close())
  const args = ["serve", "--port", "0", "--host", "127.0.0.1", "--retry", RETRY, ...more]
  const store = more.includes("--store") ? [] : ["--store", `sqlite:${join(temporaryFolder(), "p.db")}`]
  const program = start([...args, ...store], file, nodeOptions)
  const { address } = JSON.parse(await program.line(/"msg":"server \d+ listens/))
  const post: Served["post"] = async (path, body, headers = {}) => {
    const response = await fetch(`${address}/api/v1${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${KEY}`, "content-type": "application/json", ...headers },
      body: JSON.stringify(body),
    })
    if (!response.ok) throw new Error(await response.text())
    return response.json() as Promise<{ id: string }>
  }
  const stop = async () => {
    program.process.kill("SIGTERM")
    return (await program.ended).code
  }
  await post("/app", { name: "Acme", uid: "acme" })
  await post("/app/acme/endpoint", { uid: "main", url: `${receiver.url("/hook")}?token=hush&a=1` })
  return { program, receiver, post, stop }
}

test("a caller's trace goes on through the message to its attempts", async () => {
  const collector = await Collector.start()
  vi.stubEnv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
  vi.stubEnv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")
  vi.stubEnv("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=acme")
  vi.stubEnv("OTEL_SERVICE_NAME", "hooks")
  vi.stubEnv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
  const { receiver, post, stop } = await serve(["--send-traceparent", "true"])
  receiver.queue("/hook?token=hush&a=1", 503, 200)
  const traceparent = `00-${CALLER.traceId}-${CALLER.spanId}-01`
  const { id } = await post("/app/acme/msg", message, { traceparent, tracestate: "a=b", baggage: "user=17" })
  const spans = await collector.collected("POST", 2)

  expect(collector.requests[0]).toMatchObject({ path: "/v1/traces", headers: { "x-tenant": "acme" } })
  const published = spans.find(({ name }) => name === "publish webhooks")!
  expect(published).toMatchObject({
    kind: 4,
    traceId: CALLER.traceId,
    parentSpanId: CALLER.spanId,
    status: 0,
    attributes: {
      "messaging.system": "posthorn",
      "messaging.operation.name": "publish",
      "messaging.operation.type": "send",
      "messaging.destination.name": "webhooks",
      "messaging.message.id": id,
      "messaging.message.body.size": 7,
      "posthorn.message.matched": 1,
      "posthorn.message.duplicates": 0,
    },
    resource: { "service.name": "hooks", "deployment.environment.name": "test" },
  })

  const [first, second] = spans.filter(({ name }) => name === "POST")
  const port = Number(new URL(receiver.url("/")).port)
  const common = {
    "http.request.method": "POST",
    "server.address": "127.0.0.1",
    "server.port": port,
    "url.full": `http://127.0.0.1:${port}/hook?token=REDACTED&a=REDACTED`,
    "network.peer.address": "127.0.0.1",
    "network.protocol.version": "1.1",
    "posthorn.application.id": expect.stringMatching(/^app_/),
    "posthorn.endpoint.id": expect.stringMatching(/^ep_/),
    "posthorn.delivery.id": expect.stringMatching(/^dlv_/),
    "posthorn.message.id": id,
    "posthorn.attempt.trigger": "schedule",
  }
  expect(first).toMatchObject({
    kind: 3,
    traceId: CALLER.traceId,
    parentSpanId: published.spanId,
    links: [],
    events: ["dns_resolved", "connected", "first_byte"],
    status: 2,
  })
  expect(first!.attributes).toEqual({
    ...common,
    "http.response.status_code": 503,
    "error.type": "503",
    "posthorn.attempt.number": 1,
    "posthorn.attempt.outcome": "retry",
    "posthorn.retry.delay_s": 0.1,
  })
  expect(second).toMatchObject({
    kind: 3,
    parentSpanId: "",
    links: [{ traceId: CALLER.traceId, spanId: published.spanId }],
    status: 0,
  })
  expect(second!.traceId).not.toBe(CALLER.traceId)
  expect(second!.attributes).toEqual({
    ...common,
    "http.request.resend_count": 1,
    "http.response.status_code": 200,
    "posthorn.attempt.number": 2,
    "posthorn.attempt.outcome": "delivered",
  })

  const sent = receiver.requests.map(({ headers }) => headers)
  expect(sent.map(({ traceparent }) => traceparent)).toEqual(
    [first!, second!].map(({ traceId, spanId }) => `00-${traceId}-${spanId}-01`),
  )
  for (const headers of sent) expect(headers).not.toHaveProperty("tracestate")
  for (const headers of sent) expect(headers).not.toHaveProperty("baggage")
  expect(await stop()).toBe(0)
})

test("with a sampler, messages that are not sampled have no spans, and their context is kept", async () => {
  const collector = await Collector.start()
  vi.stubEnv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
  vi.stubEnv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")
  vi.stubEnv("OTEL_TRACES_SAMPLER", "parentbased_traceidratio")
  vi.stubEnv("OTEL_TRACES_SAMPLER_ARG", "0")
  const { receiver, post, stop } = await serve(["--send-traceparent", "true"])
  await post("/app/acme/msg", message)
  await receiver.arrived("/hook?token=hush&a=1", 1)
  receiver.queue("/hook?token=hush&a=1", 500, 200)
  // The ratio is 0: only the link of the retry says that it is sampled.
  await post("/app/acme/msg", message, { traceparent: `00-${CALLER.traceId}-${CALLER.spanId}-01` })
  const spans = await collector.collected("POST", 2)
  expect(spans.map(({ name }) => name).sort()).toEqual(["POST", "POST", "publish webhooks"])
  expect(receiver.requests[0]!.headers.traceparent).toMatch(/^00-[\da-f]{32}-[\da-f]{16}-00$/)
  expect(await stop()).toBe(0)
  expect(collector.spans).toHaveLength(3)
})

test("a worker goes on with the trace of a message that a server accepted, and a stop sends the last spans", async () => {
  const collector = await Collector.start()
  const store = await freshDatabase()
  const posthorn = await openPosthorn({ store, deliver: false, logger: "silent", egress: LOOPBACK })
  onTestFinished(() => posthorn.close())
  const receiver = await Receiver.start()
  onTestFinished(() => receiver.close())
  await posthorn.applications.create({ uid: "acme", name: "Acme" })
  await posthorn.endpoints.create("acme", { url: receiver.url("/hook") })
  vi.stubEnv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", `${collector.url}/here`)
  vi.stubEnv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json")
  vi.stubEnv("OTEL_BSP_SCHEDULE_DELAY", "60000")
  const program = start(["worker", "--store", store])
  await posthorn.send("acme", message, { traceparent: `00-${CALLER.traceId}-${CALLER.spanId}-01` })
  await receiver.arrived("/hook", 1)
  expect(receiver.requests[0]!.headers).not.toHaveProperty("traceparent")
  program.process.kill("SIGTERM")
  expect((await program.ended).code).toBe(0)
  expect(collector.requests.map(({ path }) => path)).toEqual(["/here"])
  expect(collector.spans).toMatchObject([
    {
      name: "POST",
      traceId: CALLER.traceId,
      parentSpanId: CALLER.spanId,
      resource: { "service.name": "posthorn" },
    },
  ])
})

test("without a protocol the spans are sent as protobuf", async () => {
  const collector = await Collector.start()
  vi.stubEnv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
  const { post, receiver } = await serve()
  await post("/app/acme/msg", message)
  await receiver.arrived("/hook?token=hush&a=1", 1)
  await collector.requested(1)
  expect(collector.requests[0]!.headers["content-type"]).toBe("application/x-protobuf")
  expect(collector.requests[0]!.body.toString("latin1")).toContain("publish webhooks")
})

test("a collector that cannot be reached is a warning, and stops neither deliveries nor the end", async () => {
  vi.stubEnv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
  vi.stubEnv("OTEL_EXPORTER_OTLP_TIMEOUT", "300")
  const { post, receiver, program, stop } = await serve()
  await post("/app/acme/msg", message)
  await program.line(/Traces cannot be exported; deliveries go on without them/)
  await post("/app/acme/msg", message)
  await receiver.arrived("/hook?token=hush&a=1", 2)
  expect(await stop()).toBe(0)
  expect(program.stderr.match(/Traces cannot be exported/g)).toHaveLength(1)
})

test("a collector that never answers keeps a stop for a few seconds only", async () => {
  const collector = await Receiver.start()
  onTestFinished(() => collector.close())
  collector.hold("/v1/traces")
  vi.stubEnv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", collector.url("/v1/traces"))
  // Longer than the test may take.
  vi.stubEnv("OTEL_EXPORTER_OTLP_TIMEOUT", "60000")
  const { post, receiver, program, stop } = await serve()
  await post("/app/acme/msg", message)
  await receiver.arrived("/hook?token=hush&a=1", 1)
  expect(await stop()).toBe(0)
  expect(program.stderr).toContain("The last spans could not be exported in time; they are lost")
})

test("a protocol that is not supported is refused with a sentence", async () => {
  vi.stubEnv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4317")
  vi.stubEnv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
  const program = start(["serve", "--port", "0", "--store", "sqlite::memory:"])
  expect((await program.ended).code).toBe(2)
  expect(program.stderr).toBe(
    "posthorn: OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf or http/json, and is grpc; collectors take these on port 4318\n",
  )
})

/** Prints the name of every module of OpenTelemetry, and of ours that uses it. */
const REPORT = `import { registerHooks } from "node:module"
registerHooks({ load: (url, context, next) => {
  const found = /@opentelemetry\\/[\\w-]+|src\\/observe\\/opentelemetry|src\\/cli\\/trace-export/.exec(url)
  if (found !== null) console.log("loaded " + found[0])
  return next(url, context)
} })`

test("nothing of the SDK, of exporters and of our own tracing is loaded without OTEL_ variables", async () => {
  const hooks = ["--import", `data:text/javascript,${encodeURIComponent(REPORT)}`]
  const loaded = ({ lines }: Program) => new Set(lines.filter((line) => line.startsWith("loaded ")))
  // With metrics: their client uses the API's types of exemplars.
  const without = await serve(["--metrics", "127.0.0.1:0"], SOURCE, hooks)
  await without.post("/app/acme/msg", message)
  await without.receiver.arrived("/hook?token=hush&a=1", 1)
  expect(await without.stop()).toBe(0)
  expect([...loaded(without.program)].filter((line) => line !== "loaded @opentelemetry/api")).toEqual([])

  const collector = await Collector.start()
  vi.stubEnv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
  const traced = await serve([], SOURCE, hooks)
  expect(await traced.stop()).toBe(0)
  expect(loaded(traced.program)).toContain("loaded @opentelemetry/sdk-trace")
  expect(loaded(traced.program)).toContain("loaded src/observe/opentelemetry")
})
