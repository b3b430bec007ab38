import { describe, expect, test } from "vitest"
import { openPosthorn, PosthornError } from "../../src/index.ts"
import { Harness } from "../support/harness.ts"

const cyclic: { self?: unknown } = {}
cyclic.self = cyclic

describe("a message", () => {
  const ok = { eventType: "invoice.paid", payload: { n: 1 } }
  const cases: [what: string, message: object, code: string, field: string][] = [
    ["no event type", { payload: {} }, "invalid_input", "eventType"],
    [
      "strange characters in the event type",
      { ...ok, eventType: "invoice paid!" },
      "invalid_input",
      "eventType",
    ],
    ["an event type that is too long", { ...ok, eventType: "a".repeat(257) }, "invalid_input", "eventType"],
    ["no payload", { eventType: "a" }, "invalid_input", "payload"],
    ["a cyclic payload", { ...ok, payload: cyclic }, "invalid_input", "payload"],
    ["a BigInt in the payload", { ...ok, payload: { n: 1n } }, "invalid_input", "payload"],
    ["a function as payload", { ...ok, payload: () => {} }, "invalid_input", "payload"],
    ["a payload over the limit", { ...ok, payload: "x".repeat(1_048_576) }, "payload_too_large", "payload"],
    [
      "a content type with a line break",
      { ...ok, contentType: "text/plain\r\nx-evil: 1" },
      "invalid_input",
      "contentType",
    ],
    ["a bad channel", { ...ok, channels: ["a b"] }, "invalid_input", "channels[0]"],
    ["an empty list of channels", { ...ok, channels: [] }, "invalid_input", "channels"],
    ["a deliverAt that is no time", { ...ok, deliverAt: "tomorrow" }, "invalid_input", "deliverAt"],
    ["an invalid Date", { ...ok, deliverAt: new Date("junk") }, "invalid_input", "deliverAt"],
    ["a negative delay", { ...ok, delaySeconds: -1 }, "invalid_input", "delaySeconds"],
    ["both delay and deliverAt", { ...ok, delaySeconds: 1, deliverAt: 5 }, "invalid_input", "delaySeconds"],
    ["no attempts at all", { ...ok, maxAttempts: 0 }, "invalid_input", "maxAttempts"],
    ["an unknown priority", { ...ok, priority: "urgent" }, "invalid_input", "priority"],
    ["an empty idempotency key", { ...ok, idempotencyKey: "" }, "invalid_input", "idempotencyKey"],
    ["metadata that is not text", { ...ok, metadata: { n: 1 } }, "invalid_input", "metadata.n"],
    ["an unknown field", { ...ok, payloadd: {} }, "invalid_input", "payloadd"],
  ]
  test("is refused before anything is written", async () => {
    const harness = await Harness.start()
    await harness.endpoint()
    for (const [what, message, code, field] of cases) {
      const error = await harness.posthorn.send("acme", message as never).catch((caught) => caught)
      expect(error, what).toBeInstanceOf(PosthornError)
      expect({ code: error.code, field: error.field }, what).toEqual({ code, field })
    }
    await expect(harness.posthorn.send("nobody", ok)).rejects.toMatchObject({ code: "not_found" })
    await expect(harness.posthorn.send(undefined as never, ok)).rejects.toMatchObject({
      code: "invalid_input",
    })
    await expect(harness.posthorn.sendBatch("acme", [ok, { ...ok, eventType: "?" }])).rejects.toMatchObject({
      field: "messages[1].eventType",
    })
    await expect(harness.posthorn.sendBatch("acme", [ok, { ...ok, payload: cyclic }])).rejects.toMatchObject({
      field: "messages[1].payload",
    })
    await expect(harness.posthorn.sendBatch("acme", [])).rejects.toMatchObject({ field: "messages" })
    const misspelt = { idempotencykey: "k" } as object
    await expect(harness.posthorn.sendBatch("acme", [ok], misspelt)).rejects.toThrow(
      /idempotencykey.*known are tx, traceparent, idempotencyKey/,
    )
    expect(await harness.sql("SELECT * FROM messages")).toEqual([])
    expect(harness.receiver.requests).toEqual([])
  })

  test("one byte under the limit is accepted, and the limit can be set", async () => {
    const harness = await Harness.start({ maxPayloadBytes: 10 })
    await harness.endpoint()
    await harness.send("12345678")
    await expect(harness.send("123456789")).rejects.toMatchObject({ code: "payload_too_large" })
  })
})

describe("an endpoint", () => {
  const cases: [what: string, input: object, field: string][] = [
    ["no URL", {}, "url"],
    ["a URL that is none", { url: "example.com/hook" }, "url"],
    ["another scheme", { url: "ftp://example.com" }, "url"],
    ["a password in the URL", { url: "https://user:pass@example.com" }, "url"],
    ["port 0", { url: "http://example.com:0/" }, "url"],
    ["an empty list of event types", { eventTypes: [] }, "eventTypes"],
    ["a bad event type", { eventTypes: ["ok", "not ok"] }, "eventTypes[1]"],
    ["a policy with no end", { retry: { delays: [5] } }, "retry.maxAttempts"],
    ["negative delays", { retry: { delays: [-5], maxAttempts: 3 } }, "retry.delays[0]"],
    ["an unknown policy", { retry: "gatewayy" }, "retry"],
    ["a header that is ours", { headers: { "Webhook-Id": "x" } }, "headers.Webhook-Id"],
    ["a host header", { headers: { Host: "x" } }, "headers.Host"],
    ["a header with a line break", { headers: { "x-a": "1\r\nx-b: 2" } }, "headers.x-a"],
    ["no concurrency", { concurrency: 0 }, "concurrency"],
    ["a rate of half", { rateLimit: 0.5 }, "rateLimit"],
    ["a short secret", { secret: "whsec_c2hvcnQ=" }, "secret"],
    ["a uid that looks like an id", { uid: "ep_x" }, "uid"],
    ["an unknown field", { filterTypes: [] }, "filterTypes"],
  ]
  test("is refused with the field named", async () => {
    const harness = await Harness.start()
    await harness.posthorn.applications.create({ uid: "acme", name: "Acme" })
    for (const [what, input, field] of cases) {
      const full = what === "no URL" ? input : { url: "https://example.com/", ...input }
      const error = await harness.posthorn.endpoints.create("acme", full as never).catch((caught) => caught)
      expect(error, what).toBeInstanceOf(PosthornError)
      expect({ code: error.code, field: error.field }, what).toEqual({ code: "invalid_input", field })
    }
    await expect(
      harness.posthorn.endpoints.create("nobody", { url: "https://example.com" }),
    ).rejects.toMatchObject({
      code: "not_found",
    })
    expect(await harness.sql("SELECT * FROM endpoints")).toEqual([])
  })

  test.each([
    [true, "url must be a full http://, https:// or relay:// address"],
    [false, "url must be a full https:// or relay:// address"],
  ])("with a URL of another scheme is refused with the schemes that are known (http %s)", async (http, refusal) => {
    const { posthorn } = await Harness.start({ egress: { http } })
    await posthorn.applications.create({ uid: "acme", name: "Acme" })
    await expect(posthorn.endpoints.create("acme", { url: "sqs://queue" })).rejects.toThrow(refusal)
  })
})

describe("opening", () => {
  const cases: [what: string, options: object, code: string, field?: string][] = [
    ["no store", {}, "invalid_input", "store"],
    ["another store", { store: "mysql://x" }, "invalid_input", "store"],
    ["no path", { store: "sqlite:" }, "invalid_input", "store"],
    ["an outage in words", { ownOutage: "on" }, "invalid_input", "ownOutage"],
    ["an outage of no time", { ownOutage: { silenceMs: 0 } }, "invalid_input", "ownOutage.silenceMs"],
    ["an outage of one endpoint", { ownOutage: { endpoints: 1 } }, "invalid_input", "ownOutage.endpoints"],
    ["an outage of no hosts", { ownOutage: { hosts: 0 } }, "invalid_input", "ownOutage.hosts"],
    ["an unknown field of it", { ownOutage: { host: 3 } }, "invalid_input", "ownOutage.host"],
    ["prices without a currency", { cost: { perSlotHour: 1 } }, "invalid_input", "cost.currency"],
    ["a currency in words", { cost: { perSlotHour: 1, currency: "euro" } }, "invalid_input", "cost.currency"],
    ["a currency without prices", { cost: { currency: "EUR" } }, "invalid_input", "cost"],
    [
      "a price below nothing",
      { cost: { perGigabyteOut: -1, currency: "EUR" } },
      "invalid_input",
      "cost.perGigabyteOut",
    ],
    [
      "a price that is no number",
      { cost: { perThousandAttempts: "1", currency: "EUR" } },
      "invalid_input",
      "cost.perThousandAttempts",
    ],
    ["an unknown price", { cost: { perHour: 1, currency: "EUR" } }, "invalid_input", "cost.perHour"],
    ["a URI instead of a path", { store: "sqlite:file:posthorn.db" }, "invalid_input", "store"],
    [
      "an unknown option",
      { store: "sqlite::memory:", pollInterval: 5 },
      "invalid_input",
      "options.pollInterval",
    ],
    ["a bad number", { store: "sqlite::memory:", maxPerPoll: 0 }, "invalid_input", "maxPerPoll"],
    ["an unknown preset", { store: "sqlite::memory:", retry: "fast" }, "invalid_input", "retry"],
    [
      "a name server that is none",
      { store: "sqlite::memory:", egress: { dns: ["nonsense"] } },
      "invalid_input",
      "egress.dns",
    ],
    [
      "a range that is none",
      { store: "sqlite::memory:", egress: { allow: ["10.0.0.0/99"] } },
      "invalid_input",
      "egress.allow",
    ],
    [
      "a port that is none",
      { store: "sqlite::memory:", egress: { ports: [70_000] } },
      "invalid_input",
      "egress.ports",
    ],
    [
      "a proxy that is none",
      { store: "sqlite::memory:", egress: { proxy: "socks://x:1" } },
      "invalid_input",
      "egress.proxy",
    ],
    [
      "an unknown egress setting",
      { store: "sqlite::memory:", egress: { alow: [] } },
      "invalid_input",
      "egress.alow",
    ],
    ["an unknown log level", { store: "sqlite::memory:", logger: "verbose" }, "invalid_input", "logger"],
    ["a deliver that is no boolean", { store: "sqlite::memory:", deliver: "no" }, "invalid_input", "deliver"],
    [
      "a key that is no text",
      { store: "sqlite::memory:", encryptionKey: 5 },
      "invalid_input",
      "encryptionKey",
    ],
    ["an onFatal that is no function", { store: "sqlite::memory:", onFatal: 5 }, "invalid_input", "onFatal"],
    ["a short key", { store: "sqlite::memory:", encryptionKey: "abc" }, "invalid_input", "encryptionKey"],
  ]
  test.each(cases)("with %s", async (_what, options, code, field) => {
    await expect(openPosthorn(options as never)).rejects.toMatchObject({ code, field })
  })

  test("with another encryption key than the file was made with", async () => {
    const harness = await Harness.start()
    await harness.endpoint()
    await harness.close()
    await expect(harness.open({ encryptionKey: "ff".repeat(32) })).rejects.toMatchObject({
      code: "wrong_encryption_key",
    })
    await harness.open()
  })
})

test("lists refuse what they do not know", async () => {
  const harness = await Harness.start()
  await harness.endpoint()
  const { deliveries, attempts, dead, applications } = harness.posthorn
  await expect(deliveries.list({ limit: 251 })).rejects.toMatchObject({ field: "limit" })
  await expect(applications.list({ limt: 5 } as never)).rejects.toMatchObject({ field: "limt" })
  await expect(deliveries.list(null as never)).rejects.toMatchObject({ field: "query" })
  await expect(deliveries.list({ message: {} } as never)).rejects.toMatchObject({ field: "message" })
  await expect(attempts.list({ status: "success" } as never)).rejects.toMatchObject({ field: "status" })
  await expect(dead.retryMany(undefined as never)).rejects.toMatchObject({ field: "query" })
  expect(() => harness.posthorn.on("delivery.died" as never, () => {})).toThrow(
    expect.objectContaining({ field: "event" }),
  )
  await expect(deliveries.list({ cursor: {} } as never)).rejects.toMatchObject({ field: "cursor" })
  await expect(deliveries.list({ cursor: "junk" })).rejects.toMatchObject({ field: "cursor" })
  await expect(deliveries.list({ status: "lost" as never })).rejects.toMatchObject({ field: "status" })
  await expect(deliveries.list({ enpoint: "x" } as never)).rejects.toMatchObject({ field: "enpoint" })
  await expect(dead.list({ status: "failed" } as never)).rejects.toMatchObject({ field: "status" })
  await expect(dead.retryMany({ deadReason: "bored" as never })).rejects.toMatchObject({
    field: "deadReason",
  })
  await expect(deliveries.get("dlv_nothing")).rejects.toMatchObject({ code: "not_found" })
  await expect(deliveries.cancel("dlv_nothing")).rejects.toMatchObject({ code: "not_found" })
  await expect(applications.get("nobody")).rejects.toMatchObject({ code: "not_found" })
  await expect(harness.posthorn.tasks.get("task_x")).rejects.toMatchObject({ code: "not_found" })
})
