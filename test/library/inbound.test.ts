/** Messages that carry the request that a source took in: kept with the message, and passed on to the endpoints by each attempt. */
import { expect, test } from "vitest"
import { writeInbound } from "../../src/core/inbound-request.ts"
import type { InboundRequest } from "../../src/index.ts"
import type { Transport, WebhookHead } from "../../src/transport/transport.ts"
import { Harness } from "../support/harness.ts"
import type { Received } from "../support/receiver.ts"

const inbound: InboundRequest = {
  sourceId: "src_1",
  method: "PUT",
  path: "/a%20b",
  query: "?q=1",
  headers: [
    ["Host", "hooks.example"],
    ["User-Agent", "GitHub-Hookshot/1"],
    ["X-GitHub-Event", "push"],
    ["Content-Type", "application/json"],
    ["Content-Encoding", "gzip"],
    ["X-Tenant", "a stranger's"],
    ["x-twice", "1"],
    ["Webhook-Id", "of the provider"],
    ["Authorization", "Basic eDp5"],
    ["X-Broken", "a\r\nx-smuggled: 1"],
    ["X-Twice", "\u00fc"],
    ["Connection", "x-hop"],
    ["X-Hop", "1"],
  ],
}
const bytes = new Uint8Array([0x1f, 0x8b, 0, 255, 13, 10])
const message = {
  eventType: "inbound.github",
  payload: bytes,
  contentType: "application/vnd.github+json; charset=utf-8",
}

const pairs = ({ rawHeaders }: Received) =>
  rawHeaders.flatMap((name, i) => (i % 2 === 0 ? [[name, rawHeaders[i + 1]!] as const] : []))
const PASSED_ON = [
  ["X-GitHub-Event", "push"],
  ["Content-Encoding", "gzip"],
  ["x-twice", "1"],
  ["x-source-Webhook-Id", "of the provider"],
  ["X-Twice", "\u00fc"],
]

test("an endpoint gets a POST with the headers that are safe, the content type and the exact bytes", async () => {
  const harness = await Harness.start()
  const methods: (string | undefined)[] = []
  harness.receiver.always("/hook?a=1", (_received, response) => {
    methods.push(response.req.method)
    response.end()
  })
  await harness.endpoint({ headers: { "x-tenant": "acme" } }, "/hook?a=1")
  const { id } = await harness.posthorn.send("acme", message, { inbound })
  const [received] = await harness.receiver.arrived("/hook?a=1", 1)
  expect(methods).toEqual(["POST"])
  expect(new Uint8Array(received!.body)).toEqual(bytes)
  expect(received!.headers).toMatchObject({
    "content-type": message.contentType,
    "webhook-id": id,
    "idempotency-key": id,
    "x-tenant": "acme",
    "user-agent": expect.stringMatching(/^Posthorn/),
  })
  const all = pairs(received!)
  const own = all.filter((pair) => !PASSED_ON.some(([name]) => name === pair[0]))
  // After Posthorn's own headers, and before the length.
  expect(all.slice(-PASSED_ON.length - 1)).toEqual([...PASSED_ON, ["content-length", String(bytes.length)]])
  const names = own.map(([name]) => name.toLowerCase())
  expect(names).toHaveLength(new Set(names).size)
  expect(received!.headers).not.toHaveProperty("authorization")
  expect(received!.headers).not.toHaveProperty("x-broken")
  expect(received!.headers).not.toHaveProperty("x-smuggled")
})

test("every attempt passes the headers on: fetched, handed over, retried, and after a restart", async () => {
  const harness = await Harness.start({ retry: { delays: [60], maxAttempts: 3 } })
  await harness.endpoint()
  await harness.posthorn.send("acme", message, { inbound })
  await harness.published("delivery.delivered", 1)
  // The lane is open now.
  await harness.posthorn.send("acme", message, { inbound })
  await harness.published("delivery.delivered", 2)
  await harness.posthorn.send("acme", message)
  await harness.published("delivery.delivered", 3)
  harness.receiver.always("/", 500)
  await harness.posthorn.send("acme", message, { inbound })
  await harness.published("delivery.attempt", 4)
  await harness.quiet()
  await harness.restart()
  await harness.attemptAfter(60_000)
  const events = harness.receiver.requests.map(({ headers }) => headers["x-github-event"])
  expect(events).toEqual(["push", "push", undefined, "push", "push"])
})

test("a transport gets the delivery with its attempt's number, and the request as it is stored", async () => {
  const heads: (WebhookHead | undefined)[] = []
  const transport: Transport = {
    async send({ webhook }) {
      heads.push(webhook)
      const outcome = { kind: "response", status: 500, excerpt: "", retryAfter: null } as const
      return { outcome, responseStatus: 500, responseBody: null, responseTruncated: false, detail: null }
    },
    reachOf: () => null,
    forget: () => {},
    interrupt: () => 0,
    close: async () => {},
  }
  const harness = await Harness.start({ transport, retry: { delays: [60], maxAttempts: 2 } })
  await harness.endpoint({ eventTypes: [message.eventType] }, "/source")
  await harness.endpoint({ eventTypes: ["plain"] }, "/plain")
  await harness.posthorn.send("acme", { ...message, eventType: "plain", maxAttempts: 1 })
  await harness.published("delivery.dead", 1)
  await harness.posthorn.send("acme", message, { inbound })
  await harness.published("delivery.attempt", 2)
  await harness.attemptAfter(60_000)
  const [plain, first] = (await harness.rows()).map(({ id, received_at }) => ({
    id,
    receivedAt: received_at,
  }))
  const ofSource = { ...first, eventType: "inbound.github", inbound: writeInbound(inbound) }
  expect(heads.map((head) => head?.delivery)).toMatchObject([
    { ...plain, attemptCount: 0, eventType: "plain", inbound: null },
    { ...ofSource, attemptCount: 0 },
    { ...ofSource, attemptCount: 1 },
  ])
  expect(heads[0]!.passedOn).toEqual([])
})

test("the request is shown with its message, and is no part of what an idempotency key stands for", async () => {
  const harness = await Harness.start({ deliver: false })
  await harness.endpoint()
  const { messages } = harness.posthorn
  const input = { ...message, idempotencyKey: "once" }
  const first = await messages.send("acme", input, { inbound })
  expect(await messages.send("acme", input, { inbound: { ...inbound, headers: [] } })).toEqual({
    ...first,
    duplicate: true,
  })
  const plain = await messages.send("acme", message)
  expect(await messages.get("acme", first.id)).toMatchObject({ inbound })
  expect(await messages.get("acme", plain.id)).toMatchObject({ inbound: null })
  const { data } = await messages.list("acme", { withPayload: false })
  expect(data.map((one) => one.inbound)).toEqual([null, inbound])
})
