/** What a source makes of the requests that a program hands to `sources.receive`. */
import { createHmac } from "node:crypto"
import { expect, test } from "vitest"
import type { Posthorn } from "../../src/posthorn.ts"
import type { ReceiveInput, Source, SourceInput } from "../../src/sources/sources.ts"
import type { Store } from "../../src/store/store.ts"
import { Tenant } from "../../src/tenant.ts"
import { FailingStore } from "../support/failing-store.ts"
import { Harness, type HarnessOptions } from "../support/harness.ts"
import { Recorder } from "../support/recorder.ts"

const SECRET = "It's a Secret to Everybody"
const GITHUB = { verification: "github", secret: SECRET } as const
const TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

function signed(body: string | Uint8Array, secret = SECRET, headers: object = {}): ReceiveInput {
  const signature = `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`
  return { method: "POST", headers: { "X-Hub-Signature-256": signature, ...headers }, body }
}

const plain = (body = "{}", more: Partial<ReceiveInput> = {}): ReceiveInput => ({
  ...{ method: "POST", headers: {}, body },
  ...more,
})

async function start(input: Partial<SourceInput> = {}, options: HarnessOptions = {}) {
  const harness = await Harness.start({ deliver: false, ...options })
  const { posthorn } = harness
  await posthorn.applications.create({ uid: "acme", name: "Acme" })
  const source = await posthorn.sources.create("acme", { name: "hook", verification: "none", ...input })
  const receive = (request: ReceiveInput, to: Pick<Source, "token"> = source) =>
    posthorn.sources.receive(to.token, request)
  const messages = async () => (await posthorn.messages.list("acme", { order: "ascending" })).data
  const activity = async (name = "hook") => {
    await posthorn.context.receiver.flush()
    return posthorn.sources.activity("acme", name)
  }
  return { harness, posthorn, source, receive, messages, activity }
}

const UNVERIFIED = {
  status: 401,
  body: '{"code":"verification_failed","detail":"the request could not be verified"}',
}

test("a webhook is a message with the request as it came, and is answered with its id", async () => {
  const { source, receive, messages } = await start(GITHUB)
  const body = Buffer.from([0xff, 0, 0xfe, 0x7b, 0x0a])
  const headers = [
    ["X-Hub-Signature-256", signed(body).headers["X-Hub-Signature-256" as never]],
    ["Content-Type", "application/json; charset=utf-8"],
    ["X-Twice", "1"],
    ["x-twice", "2"],
    ["traceparent", TRACE],
  ] as const
  const receipt = await receive({
    method: "PUT",
    path: "/a%20b/%2e%2e",
    query: "?x=1&x=%C3%A4",
    headers,
    body,
  })
  const [message, ...others] = await messages()
  expect(others).toEqual([])
  expect(receipt).toMatchObject({
    result: "accepted",
    status: 202,
    body: `{"id":"${message!.id}","duplicate":false}`,
    messageId: message!.id,
  })
  expect(Buffer.from(message!.payload as Uint8Array)).toEqual(body)
  expect(message).toMatchObject({
    eventType: "inbound.hook",
    contentType: "application/json; charset=utf-8",
    traceparent: TRACE,
    inbound: { sourceId: source.id, method: "PUT", path: "/a%20b/%2e%2e", query: "?x=1&x=%C3%A4", headers },
  })
})

test("an empty body and no content type are a message, too", async () => {
  const { receive, messages } = await start()
  expect((await receive({ method: "GET", headers: [], body: new Uint8Array() })).status).toBe(202)
  const [message] = await messages()
  expect(message).toMatchObject({ contentType: "application/octet-stream", inbound: { path: "", query: "" } })
  expect(message!.payload).toHaveLength(0)
})

test("a content type that no receiver could read is passed on as bytes", async () => {
  const { receive, messages } = await start()
  const types = ["", "json", "text/", "a/b\x80", `a/${"b".repeat(300)}`]
  for (const type of types) await receive(plain("x", { headers: { "content-type": type } }))
  expect(await messages()).toMatchObject(
    types.map((type) => ({
      contentType: "application/octet-stream",
      inbound: { headers: [["content-type", type]] },
    })),
  )
})

test("every refusal of the verification has the same answer", async () => {
  const { receive, messages, activity } = await start({ verification: "slack", secret: SECRET })
  const now = Math.floor(Date.UTC(2031, 4, 18, 18, 0, 0) / 1000)
  const slack = (at: number, body: string, secret = SECRET) => ({
    "x-slack-request-timestamp": String(at),
    "x-slack-signature": `v0=${createHmac("sha256", secret).update(`v0:${at}:${body}`).digest("hex")}`,
  })
  expect(await receive(plain("{}", { headers: slack(now, "{}") }))).toMatchObject({ status: 202 })
  const receipts = []
  for (const headers of [
    {},
    { "x-slack-signature": "v0=" },
    slack(now, "{}", "another"),
    slack(now, "{ }"),
    slack(now - 301, "{}"),
    { ...slack(now, "{}"), "x-slack-request-timestamp": "soon" },
  ])
    receipts.push(await receive(plain("{}", { headers })))
  expect(new Set(receipts.map((one) => JSON.stringify(one))).size).toBe(1)
  expect(receipts[0]).toMatchObject({ result: "refused_signature", messageId: null, ...UNVERIFIED })
  expect(await messages()).toHaveLength(1)
  const { recent } = await activity()
  expect(recent.map(({ detail }) => detail).sort()).toEqual([
    "mismatch",
    "mismatch",
    "missing",
    "missing",
    "timestamp",
    "timestamp",
  ])
})

test("the old secret is accepted until the grace period ends, the new one at once", async () => {
  const { harness, posthorn, receive } = await start(GITHUB)
  await posthorn.sources.rotateSecret("acme", "hook", { secret: "new", gracePeriodSeconds: 60 })
  const statusOf = async (secret: string) => (await receive(signed("{}", secret))).status
  expect([await statusOf(SECRET), await statusOf("new")]).toEqual([202, 202])
  harness.clock.advance(60_000)
  expect([await statusOf(SECRET), await statusOf("new")]).toEqual([401, 202])
})

test("a header that has the secret itself is not stored with the message", async () => {
  const { posthorn, receive, messages } = await start()
  const secret = "s3cret"
  for (const [name, input, headers] of [
    ["bearer", { verification: "bearer", secret }, { Authorization: "Bearer s3cret" }],
    ["basic", { verification: "basic", secret: "a:b" }, { authorization: "Basic YTpi" }],
    ["gitlab", { verification: "gitlab", secret }, { "X-Gitlab-Token": "s3cret" }],
    ["token", { verification: { scheme: "token", header: "X-Key" }, secret }, { "x-KEY": "s3cret" }],
  ] as const) {
    const source = await posthorn.sources.create("acme", { name, ...input })
    const receipt = await receive(plain("{}", { headers: { "X-Other": "1", ...headers } }), source)
    expect(receipt.status, name).toBe(202)
  }
  expect((await messages()).map(({ inbound }) => inbound!.headers)).toEqual(Array(4).fill([["X-Other", "1"]]))
})

test("the event type is fixed, in a header or in the body, and fits the rules of event types", async () => {
  const { posthorn, receive, messages } = await start()
  const headers = { "x-kind": "push", "x-odd": "orders/create v1", "x-empty": "", "x-long": "l".repeat(300) }
  for (const [eventType, expected] of [
    [null, "inbound.hook"],
    ["order.paid", "order.paid"],
    [{ header: "X-Kind" }, "push"],
    [{ header: "X-Odd" }, "orders.create.v1"],
    [{ header: "X-Missing" }, "inbound.hook"],
    [{ header: "X-Empty" }, "inbound.hook"],
    [{ header: "X-Long" }, "l".repeat(256)],
    [{ pointer: "/type" }, "invoice.paid"],
    [{ pointer: "/data/0/n" }, "5"],
    [{ pointer: "/data" }, "inbound.hook"],
    [{ pointer: "/nothing" }, "inbound.hook"],
  ] as const) {
    await posthorn.sources.update("acme", "hook", { eventType })
    await receive(plain('{"type": "invoice.paid", "data": [{"n": 5}]}', { headers }))
    expect((await messages()).at(-1)!.eventType, JSON.stringify(eventType)).toBe(expected)
  }
})

test("a body that is not JSON has no event type in it, and is accepted", async () => {
  const { receive, messages } = await start({
    eventType: { pointer: "/type" },
    deduplication: { pointer: "/id" },
  })
  for (const body of ["", "type=a", "{", "null", "\xff\xfe"])
    expect((await receive(plain(body))).status).toBe(202)
  expect((await messages()).map(({ eventType }) => eventType)).toEqual(Array(5).fill("inbound.hook"))
})

test("a repetition with the same id is a duplicate, whatever its body, and starts no other message", async () => {
  const { posthorn, receive, messages, activity } = await start(GITHUB)
  const id = (delivery: string) => ({ "X-GitHub-Delivery": delivery })
  const first = await receive(signed('{"a":1}', SECRET, id("d1")))
  const again = await receive(signed('{"a": 1}', SECRET, { ...id("d1"), traceparent: TRACE }))
  expect(again).toMatchObject({
    result: "duplicate",
    status: 202,
    messageId: first.messageId,
    body: `{"id":"${first.messageId}","duplicate":true}`,
  })
  expect(await receive(signed('{"a":1}', SECRET, id("d2")))).toMatchObject({ result: "accepted" })
  const other = await posthorn.sources.create("acme", { name: "other", ...GITHUB })
  expect(await receive(signed('{"a":1}', SECRET, id("d1")), other)).toMatchObject({ result: "accepted" })
  expect(await messages()).toHaveLength(3)
  expect(await activity()).toMatchObject({ accepted: 2, duplicates: 1, refused: {} })
})

test("two repetitions at the same time are one message", async () => {
  const { receive, messages } = await start({ deduplication: { header: "X-Id" } })
  const receipts = await Promise.all(
    [1, 2, 3, 4].map((n) => receive(plain(`{"n":${n}}`, { headers: { "x-id": "1" } }))),
  )
  expect(new Set(receipts.map(({ messageId }) => messageId)).size).toBe(1)
  expect(await messages()).toHaveLength(1)
})

const whsec = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
const standard = (family: string) => (body: string) => {
  const seconds = Math.floor(Date.UTC(2031, 4, 18, 18, 0, 0) / 1000)
  const key = Buffer.from(whsec.slice(6), "base64")
  return {
    [`${family}-id`]: "msg_1",
    [`${family}-timestamp`]: String(seconds),
    [`${family}-signature`]: `v1,${createHmac("sha256", key).update(`msg_1.${seconds}.${body}`).digest("base64")}`,
  }
}

const DUPLICATES: readonly [string, Partial<SourceInput>, (body: string) => object, boolean][] = [
  ["standard-webhooks", { verification: "standard-webhooks", secret: whsec }, standard("webhook"), true],
  ["Svix's headers", { verification: "standard-webhooks", secret: whsec }, standard("svix"), true],
  ["svix", { verification: "svix", secret: whsec }, standard("svix"), true],
  [
    "gitlab",
    { verification: "gitlab", secret: "t" },
    () => ({ "X-Gitlab-Token": "t", "Idempotency-Key": "1" }),
    true,
  ],
  [
    "gitlab, whose recursive webhooks share an event id",
    { verification: "gitlab", secret: "t" },
    () => ({ "X-Gitlab-Token": "t", "X-Gitlab-Event-UUID": "1" }),
    false,
  ],
  [
    "shopify",
    { verification: "shopify", secret: "s" },
    (body) => ({
      "X-Shopify-Webhook-Id": "1",
      "X-Shopify-Hmac-Sha256": createHmac("sha256", "s").update(body).digest("base64"),
    }),
    true,
  ],
  [
    "stripe, by a field of the body",
    { verification: "stripe", secret: "s" },
    (body) => {
      const t = Math.floor(Date.UTC(2031, 4, 18, 18, 0, 0) / 1000)
      return {
        "Stripe-Signature": `t=${t},v1=${createHmac("sha256", "s").update(`${t}.${body}`).digest("hex")}`,
      }
    },
    true,
  ],
  ["none", {}, () => ({ "webhook-id": "1", "x-github-delivery": "1" }), false],
  [
    "a scheme whose id is switched off",
    { verification: "gitlab", secret: "t", deduplication: "off" },
    () => ({ "X-Gitlab-Token": "t", "Idempotency-Key": "1" }),
    false,
  ],
  ["a number", { deduplication: { pointer: "/n" } }, () => ({}), true],
  ["an id that is empty", { deduplication: { header: "X-Id" } }, () => ({ "x-id": "" }), false],
  ["a long id", { deduplication: { header: "X-Id" } }, () => ({ "x-id": "i".repeat(2000) }), true],
]

test("each scheme knows where its provider has the id of a delivery", async () => {
  const { posthorn, receive } = await start()
  const body = '{"id":"evt_1","n":7}'
  for (const [i, [about, input, headersOf, isDuplicate]] of DUPLICATES.entries()) {
    const source = await posthorn.sources.create("acme", { name: `s${i}`, verification: "none", ...input })
    const request = plain(body, { headers: headersOf(body) as never })
    expect((await receive(request, source)).result, about).toBe("accepted")
    expect((await receive(request, source)).result, about).toBe(isDuplicate ? "duplicate" : "accepted")
  }
})

test("handshakes are answered as plain text that no browser runs, and make no message", async () => {
  const { receive, messages, activity } = await start({ handshake: { kind: "microsoft-graph" }, ...GITHUB })
  expect(await receive(plain("", { query: "?validationToken=%3Cscript%3E" }))).toEqual({
    result: "handshake",
    status: 200,
    headers: {
      "content-type": "text/plain; charset=utf-8",
      "x-content-type-options": "nosniff",
      "content-security-policy": "sandbox; default-src 'none'",
    },
    body: "<script>",
    messageId: null,
    error: null,
  })
  expect(await receive(plain("", { query: `?validationToken=${"x".repeat(3000)}` }))).toMatchObject({
    result: "refused_handshake",
    ...UNVERIFIED,
  })
  expect(await messages()).toEqual([])
  expect(await activity()).toMatchObject({ accepted: 0, handshakes: 1, refused: { handshake: 1 } })
})

test("Slack's challenge is answered only if it is signed", async () => {
  const { receive } = await start({ ...GITHUB, handshake: { kind: "slack" } })
  const body = '{"type":"url_verification","challenge":"abc"}'
  expect(await receive(signed(body))).toMatchObject({ result: "handshake", status: 200, body: "abc" })
  expect(await receive(signed(body, "wrong"))).toMatchObject({ result: "refused_signature", ...UNVERIFIED })
})

test("a source whose scheme is changed to slack answers Slack's challenge", async () => {
  const { harness, posthorn, receive } = await start(GITHUB)
  await posthorn.sources.update("acme", "hook", { verification: "slack" })
  const body = '{"type":"url_verification","challenge":"abc"}'
  const at = String(Math.floor(harness.clock.wallNow() / 1000))
  const signature = `v0=${createHmac("sha256", SECRET).update(`v0:${at}:${body}`).digest("hex")}`
  const headers = { "x-slack-request-timestamp": at, "x-slack-signature": signature }
  expect(await receive(plain(body, { headers }))).toMatchObject({ result: "handshake", body: "abc" })
})

test("Meta's challenge is answered for its token", async () => {
  const { receive } = await start({ ...GITHUB, handshake: { kind: "meta", verifyToken: "t" } })
  const ask = (token: string) =>
    receive({
      ...{ method: "GET", headers: {}, body: "" },
      query: `?hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=${token}`,
    })
  expect(await ask("t")).toMatchObject({ result: "handshake", body: "1158201444" })
  expect(await ask("u")).toMatchObject({ result: "refused_handshake", ...UNVERIFIED })
})

test("texts that are no token, unknown ids and wrong secrets have one answer", async () => {
  const { source, receive, activity } = await start()
  const { token } = source
  const flip = (text: string) => (text === "a" ? "b" : "a")
  const tokens = [
    "",
    "x",
    token.slice(1),
    `${token}a`,
    `${token.slice(0, -1)}-`,
    flip(token[26]!) === token[26] ? token : token.slice(0, 26) + flip(token[26]!) + token.slice(27),
    token.slice(0, -1) + flip(token.at(-1)!),
  ]
  const receipts = []
  for (const one of tokens) receipts.push(await receive(plain(), { token: one }))
  expect(new Set(receipts.map((one) => JSON.stringify(one))).size).toBe(1)
  expect(receipts[0]).toMatchObject({ result: "refused_unknown", status: 404 })
  expect((await activity()).refused).toEqual({})
})

test("a disabled source answers as if it did not exist, and its operator sees who asked", async () => {
  const { posthorn, receive, activity } = await start()
  expect((await receive(plain())).status).toBe(202)
  await posthorn.sources.update("acme", "hook", { enabled: false })
  expect(await receive(plain())).toEqual(await receive(plain(), { token: "nobody" }))
  expect(await activity()).toMatchObject({
    accepted: 1,
    refused: { unknown: 1 },
    recent: [{ reason: "unknown", detail: "disabled" }],
  })
})

test("changes and deletions hold at once in the process that makes them", async () => {
  const { harness, posthorn, receive } = await start()
  const status = async () => (await receive(plain())).status
  expect(await status()).toBe(202)
  await posthorn.sources.update("acme", "hook", { verification: "github", secret: "x" })
  expect(await status()).toBe(401)
  await posthorn.sources.update("acme", "hook", { verification: "none" })
  expect(await status()).toBe(202)
  await posthorn.sources.delete("acme", "hook")
  expect(await status()).toBe(404)
  harness.clock.advance(5000)
  expect(await status()).toBe(404)
})

test("a source ends with its application", async () => {
  const { posthorn, receive } = await start()
  expect((await receive(plain())).status).toBe(202)
  await posthorn.applications.delete("acme")
  expect((await receive(plain())).status).toBe(404)
})

/** Another process on the same store: it does not clear the caches of this one. */
function elsewhere({ context }: Posthorn): Tenant {
  const store = new Proxy(context.store, {
    get(target, name) {
      const value = Reflect.get(target, name, target)
      return typeof value === "function" ? value.bind(target) : value
    },
  })
  return new Tenant({ ...context, store })
}

test("a change by another process holds two seconds later, and without the application nothing is accepted", async () => {
  const { harness, posthorn, receive } = await start()
  const status = async () => (await receive(plain())).status
  const other = elsewhere(posthorn)
  expect(await status()).toBe(202)
  await other.sources.update("acme", "hook", { enabled: false })
  expect(await status()).toBe(202)
  harness.clock.advance(2000)
  expect(await status()).toBe(404)
  await posthorn.sources.update("acme", "hook", { enabled: true })
  expect(await status()).toBe(202)
  await other.applications.delete("acme")
  expect(await status()).toBe(404)
})

test("a source that was created while its application was deleted does not work", async () => {
  const { harness, posthorn, source, receive } = await start({ handshake: { kind: "microsoft-graph" } })
  const { store } = posthorn.context
  const entry = (await store.getEntry("source", null, source.id, harness.clock.now()))!
  await posthorn.applications.delete("acme")
  await store.saveEntryIfUnchanged({ ...entry, version: 1 })
  expect((await receive(plain())).status).toBe(404)
  expect((await receive(plain("", { query: "?validationToken=x" }))).status).toBe(404)
})

test("the token of another tenant's source sends to that tenant", async () => {
  const { posthorn, messages } = await start()
  const other = posthorn.tenant("org_other")
  await other.applications.create({ uid: "acme", name: "Acme" })
  const { token } = await other.sources.create("acme", { name: "hook", verification: "none" })
  expect((await posthorn.sources.receive(token, plain())).status).toBe(202)
  expect(await messages()).toEqual([])
  expect((await other.messages.list("acme")).data).toHaveLength(1)
})

test("more requests than the rate allows are refused, of this source alone, and the next second takes more", async () => {
  const { harness, posthorn, receive, activity } = await start({ rateLimit: 3 })
  const other = await posthorn.sources.create("acme", { name: "other", verification: "none" })
  const statuses = []
  for (let n = 0; n < 5; n++) statuses.push((await receive(plain())).status)
  expect(statuses).toEqual([202, 202, 202, 429, 429])
  expect(await receive(plain())).toMatchObject({
    result: "refused_rate",
    headers: { "retry-after": "1", "x-content-type-options": "nosniff" },
  })
  expect((await receive(plain(), other)).status).toBe(202)
  harness.clock.advance(1000)
  expect((await receive(plain())).status).toBe(202)
  expect(await activity()).toMatchObject({ accepted: 4, refused: { rate: 3 } })
})

test("a body over the source's limit is refused, and over the server's", async () => {
  const { receive, posthorn, activity } = await start({ maxBytes: 5 }, { maxPayloadBytes: 10 })
  expect(await receive(plain("12345"))).toMatchObject({ status: 202 })
  expect(await receive(plain("123456"))).toMatchObject({ result: "refused_size", status: 413 })
  await posthorn.sources.update("acme", "hook", { maxBytes: 1000 })
  expect(await receive(plain("1234567890"))).toMatchObject({ status: 202 })
  expect(await receive(plain("1234567890a"))).toMatchObject({ status: 413 })
  expect(await activity()).toMatchObject({ refused: { size: 2 } })
})

test("when the store fails, the provider is asked to try again, and nothing is lost", async () => {
  const failing = new FailingStore()
  const wrapStore = (store: Store) => failing.wrap(store)
  const { harness, receive, messages } = await start({ deduplication: { header: "X-Id" } }, { wrapStore })
  const request = plain("{}", { headers: { "x-id": "1" } })
  const unavailable = {
    result: "refused_unavailable",
    status: 503,
    headers: { "retry-after": "5" },
    error: { code: "store_unavailable" },
  }
  failing.isBroken = true
  expect(await receive(request)).toMatchObject(unavailable)
  failing.isBroken = false
  expect((await receive(request)).result).toBe("accepted")
  // The source is cached now: the send itself fails.
  failing.isBroken = true
  expect(await receive(request)).toMatchObject(unavailable)
  harness.clock.advance(2000)
  expect(await receive(request)).toMatchObject(unavailable)
  failing.isBroken = false
  expect((await receive(request)).result).toBe("duplicate")
  expect(await messages()).toHaveLength(1)
})

test("activity has the newest 20 refusals, without bodies and secrets, and ends 30 days after the last request", async () => {
  const { harness, receive, activity } = await start({ verification: "bearer", secret: "s3cret" })
  for (let n = 1; n <= 25; n++) {
    harness.clock.advance(1000)
    await receive({
      method: "DELETE",
      path: `/${n}${"p".repeat(300)}`,
      query: "?key=q",
      headers: { authorization: "Bearer wrong", "user-agent": "u".repeat(300) },
      body: "b0dy",
      remoteAddress: "203.0.113.7",
    })
  }
  const shown = await activity()
  expect(shown).toMatchObject({
    accepted: 0,
    refused: { signature: 25 },
    lastAcceptedAt: null,
    lastRefusedAt: new Date(harness.clock.now()),
  })
  expect(shown.recent.map(({ path }) => Number.parseInt(path.slice(1), 10))).toEqual(
    Array.from({ length: 20 }, (_, i) => 25 - i),
  )
  expect(shown.recent[0]).toEqual({
    at: new Date(harness.clock.now()),
    reason: "signature",
    detail: "mismatch",
    method: "DELETE",
    path: `/25${"p".repeat(197)}`,
    remoteAddress: "203.0.113.7",
    userAgent: "u".repeat(200),
  })
  expect(JSON.stringify(shown)).not.toMatch(/wrong|b0dy|key=q/)
  harness.clock.advance(30 * 86_400_000)
  expect(await activity()).toMatchObject({ refused: {}, recent: [], lastRefusedAt: null })
})

test("activity is written within two seconds, in one write for many requests, and by several processes", async () => {
  const { harness, posthorn, receive } = await start()
  let writes = 0
  const { store } = posthorn.context
  const save = store.saveEntryIfUnchanged
  store.saveEntryIfUnchanged = (entry) => {
    if (entry.kind === "source-activity") writes++
    return save.call(store, entry)
  }
  for (let n = 0; n < 10; n++) await receive(plain())
  expect(await posthorn.sources.activity("acme", "hook")).toMatchObject({ accepted: 0 })
  harness.clock.advance(2000)
  await expect.poll(async () => (await posthorn.sources.activity("acme", "hook")).accepted).toBe(10)
  expect(writes).toBe(1)
  await receive(plain())
  await harness.restart()
  await harness.posthorn.sources.receive((await harness.posthorn.sources.get("acme", "hook")).token, plain())
  await harness.posthorn.context.receiver.flush()
  expect(await harness.posthorn.sources.activity("acme", "hook")).toMatchObject({ accepted: 12 })
})

/** Activity is written when the test says so: `open` lets the writes that have begun go on. */
class SlowActivity {
  inFlight = 0
  most = 0
  writes = 0
  #gate: PromiseWithResolvers<void> | null = null

  close(): void {
    this.#gate = Promise.withResolvers()
  }

  open(): void {
    this.#gate?.resolve()
    this.#gate = null
  }

  wrap(store: Store): Store {
    const saveEntryIfUnchanged: Store["saveEntryIfUnchanged"] = async (entry) => {
      if (entry.kind !== "source-activity") return store.saveEntryIfUnchanged(entry)
      this.writes++
      this.most = Math.max(this.most, ++this.inFlight)
      await this.#gate?.promise
      await store.saveEntryIfUnchanged(entry).finally(() => this.inFlight--)
    }
    return { ...store, saveEntryIfUnchanged }
  }
}

test("while the store is slow, activity is written one after the other, and nothing of it is lost", async () => {
  const slow = new SlowActivity()
  const wrapStore = (store: Store) => slow.wrap(store)
  const { harness, posthorn, receive, activity } = await start({}, { wrapStore })
  const other = await posthorn.sources.create("acme", { name: "other", verification: "none" })
  slow.close()
  for (let round = 0; round < 5; round++) {
    await receive(plain())
    await receive(plain(), other)
    harness.clock.advance(2000)
    await expect.poll(() => slow.writes).toBe(1)
  }
  const flushed = [posthorn.context.receiver.flush(), posthorn.context.receiver.flush()]
  slow.open()
  await Promise.all(flushed)
  expect([await activity(), await activity("other")]).toMatchObject([{ accepted: 5 }, { accepted: 5 }])
  expect(slow.most).toBe(1)
  // Two sources; the requests during the first flush are one more write of each.
  expect(slow.writes).toBe(4)
})

test("the activity of a deleted source ends with it, also while it is written", async () => {
  const slow = new SlowActivity()
  const wrapStore = (store: Store) => slow.wrap(store)
  const { harness, posthorn, source, receive } = await start({}, { wrapStore })
  const { receiver, store } = posthorn.context
  const stored = (id: string) => store.getEntry("source-activity", null, id, harness.clock.now())
  // Not written yet.
  await receive(plain())
  await posthorn.sources.delete("acme", "hook")
  await receiver.flush()
  expect(await stored(source.id)).toBeNull()
  // Being written, for the first time and again.
  for (const name of ["first", "again"]) {
    const { id, token } = await posthorn.sources.create("acme", { name, verification: "none" })
    await receive(plain(), { token })
    if (name === "again") await receiver.flush()
    await receive(plain(), { token })
    const before = slow.writes
    slow.close()
    const flushed = receiver.flush()
    await expect.poll(() => slow.writes).toBe(before + 1)
    await posthorn.sources.delete("acme", name)
    slow.open()
    await flushed
    expect(await stored(id), name).toBeNull()
  }
})

test("each request is measured by what became of it", async () => {
  const instruments = new Recorder()
  const { receive } = await start(GITHUB, { instruments })
  await receive(signed("{}"))
  await receive(plain())
  await receive(plain(), { token: "" })
  expect(instruments.of("inboundAnswered")).toEqual(
    ["accepted", "refused_signature", "refused_unknown"].map((result) => [result, expect.any(Number)]),
  )
})

test("a request that a program hands over in a wrong form is refused as its mistake", async () => {
  const { receive, messages } = await start()
  for (const [field, changes] of [
    ["method", { method: "GET /" }],
    ["path", { path: "a" }],
    ["path", { path: "/a b" }],
    ["path", { path: "/a?b" }],
    ["query", { query: "a=b" }],
    ["body", { body: { parsed: true } }],
    ["headers", { headers: null }],
    ["headers[0]", { headers: [["a b", "c"]] }],
    ["headers[0]", { headers: { a: "b\r\nc: d" } }],
    ["headers", { headers: Array(1001).fill(["a", "b"]) }],
    ["url", { url: "/in/x" }],
  ] as const)
    await expect(receive({ ...plain(), ...changes } as never)).rejects.toMatchObject({
      code: "invalid_input",
      field,
    })
  expect(await messages()).toEqual([])
})

test("headers may be given as Node, fetch and pairs have them", async () => {
  const { receive, messages } = await start()
  for (const headers of [
    new Headers({ "X-A": "1" }),
    { "x-a": ["1"], "x-b": undefined },
    [["x-a", "1"]],
  ] as const)
    await receive(plain("{}", { headers: headers as never }))
  expect((await messages()).map(({ inbound }) => inbound!.headers)).toEqual(Array(3).fill([["x-a", "1"]]))
})
