/** Seed 002's edge gateway: webhooks come in, are verified and stored, and go to the hub as they came. */
import { createHmac } from "node:crypto"
import { sign as signGithub } from "@octokit/webhooks-methods"
import { Webhook as StandardWebhook } from "standardwebhooks"
import Stripe from "stripe"
import { Webhook as SvixWebhook } from "svix"
import { expect, test } from "vitest"
import type { VerificationInput } from "../../src/core/parse-verification.ts"
import type { EventFrame } from "../../src/core/relay-protocol.ts"
import type { ReceiveInput, Source, SourceInput } from "../../src/sources/sources.ts"
import type { Store } from "../../src/store/store.ts"
import { START } from "../support/clock.ts"
import { FailingStore } from "../support/failing-store.ts"
import { Harness, type HarnessOptions } from "../support/harness.ts"
import { TestAgent } from "../support/test-agent.ts"

type Headers = { readonly [name: string]: string }
type Sign = (secret: string, body: string, seconds: number, id: string) => Headers | Promise<Headers>

const hmac = (key: string, text: string, encoding: "hex" | "base64") =>
  createHmac("sha256", key).update(text).digest(encoding)
const date = (seconds: number) => new Date(seconds * 1000)

interface Provider {
  readonly verification: VerificationInput
  readonly secret: string
  readonly wrongSecret: string
  /** By the provider's own library where there is one. */
  readonly sign: Sign
  /** The time is signed. */
  readonly isTimed?: boolean
  /** The body is not signed. */
  readonly isToken?: boolean
}

const WHSEC = {
  secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
  wrongSecret: "whsec_AAAA9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
}
const PLAIN = { secret: "s3cret", wrongSecret: "guess" }

const PROVIDERS: { readonly [name: string]: Provider } = {
  "standard-webhooks": {
    ...WHSEC,
    verification: "standard-webhooks",
    isTimed: true,
    sign: (secret, body, seconds, id) => ({
      "webhook-id": id,
      "webhook-timestamp": `${seconds}`,
      "webhook-signature": new StandardWebhook(secret).sign(id, date(seconds), body),
    }),
  },
  svix: {
    ...WHSEC,
    verification: "svix",
    isTimed: true,
    sign: (secret, body, seconds, id) => ({
      "svix-id": id,
      "svix-timestamp": `${seconds}`,
      "svix-signature": new SvixWebhook(secret).sign(id, date(seconds), body),
    }),
  },
  stripe: {
    ...PLAIN,
    verification: "stripe",
    isTimed: true,
    sign: (secret, payload, timestamp) => ({
      "stripe-signature": Stripe.webhooks.generateTestHeaderString({ payload, secret, timestamp }),
    }),
  },
  github: {
    ...PLAIN,
    verification: "github",
    sign: async (secret, body, _seconds, id) => ({
      "x-hub-signature-256": await signGithub(secret, body),
      "x-github-delivery": id,
    }),
  },
  shopify: {
    ...PLAIN,
    verification: "shopify",
    sign: (secret, body, _seconds, id) => ({
      "x-shopify-hmac-sha256": hmac(secret, body, "base64"),
      "x-shopify-webhook-id": id,
    }),
  },
  slack: {
    ...PLAIN,
    verification: "slack",
    isTimed: true,
    sign: (secret, body, seconds) => ({
      "x-slack-request-timestamp": `${seconds}`,
      "x-slack-signature": `v0=${hmac(secret, `v0:${seconds}:${body}`, "hex")}`,
    }),
  },
  gitlab: {
    ...PLAIN,
    verification: "gitlab",
    isToken: true,
    sign: (secret, _body, _seconds, id) => ({ "x-gitlab-token": secret, "idempotency-key": id }),
  },
  hmac: {
    ...PLAIN,
    verification: { scheme: "hmac", header: "x-signature", prefix: "sha256=" },
    sign: (secret, body) => ({ "x-signature": `sha256=${hmac(secret, body, "hex")}` }),
  },
  basic: {
    ...{ secret: "hub:s3cret", wrongSecret: "hub:guess" },
    verification: "basic",
    isToken: true,
    sign: (secret) => ({ authorization: `Basic ${Buffer.from(secret).toString("base64")}` }),
  },
  bearer: {
    ...PLAIN,
    verification: "bearer",
    isToken: true,
    sign: (secret) => ({ authorization: `Bearer ${secret}` }),
  },
}

async function start(options: HarnessOptions = {}) {
  const harness = await Harness.start(options)
  const endpointId = await harness.endpoint({ url: "relay://hub", retry: "relay" })
  const source = (name: string, input: Partial<SourceInput>) =>
    harness.posthorn.sources.create("acme", { name, verification: "none", ...input })
  const receive = ({ token }: Pick<Source, "token">, body: string, more: Partial<ReceiveInput> = {}) =>
    harness.posthorn.sources.receive(token, { method: "POST", headers: {}, body, ...more })
  return { harness, endpointId, source, receive }
}

const bytesOf = ({ body, base64 }: EventFrame) =>
  body === undefined ? Buffer.from(base64!, "base64").toString() : body

test("webhooks that providers signed reach the hub in order; forged, old and changed ones do not", async () => {
  const { harness, source, receive } = await start()
  const now = START / 1000
  const accepted: string[] = []
  for (const [name, provider] of Object.entries(PROVIDERS)) {
    const { verification, secret, wrongSecret, sign, isTimed, isToken } = provider
    const made = await source(name, { verification, secret })
    const body = `{"id":"evt_${name}","event_id":"evt_${name}","text":"ü"}\n`
    const statusOf = async (given: string, signed: Headers | Promise<Headers>) =>
      (await receive(made, given, { headers: await signed, path: "/hooks", query: "?a=1" })).status
    expect(await statusOf(body, sign(wrongSecret, body, now, name)), name).toBe(401)
    expect(await statusOf(body, {}), name).toBe(401)
    if (isTimed) {
      expect(await statusOf(body, sign(secret, body, now - 301, name)), name).toBe(401)
      expect(await statusOf(body, sign(secret, body, now + 301, name)), name).toBe(401)
    }
    if (!isToken)
      expect(await statusOf(body.replace("ü", "û"), sign(secret, body, now, name)), name).toBe(401)
    expect(await statusOf(body, sign(secret, body, now, name)), name).toBe(202)
    accepted.push(body)
  }
  const agent = await TestAgent.join(harness)
  for (const n of accepted.keys()) {
    const event = await agent.event(n + 1)
    expect(event).toMatchObject({ method: "POST", path: "/hooks", query: "?a=1" })
    agent.answer(event, 200)
  }
  await harness.published("delivery.delivered", accepted.length)
  expect(agent.socket.of("event").map(bytesOf)).toEqual(accepted)
})

test("a request comes to the hub as it came in, and to an HTTP endpoint as a POST with the same bytes", async () => {
  const { harness, source, receive } = await start()
  await harness.endpoint({}, "/hook")
  const made = await source("doorbell", {})
  const body = Buffer.from([0xff, 0, 0x7b, 0x0d, 0x0a])
  const headers = [
    ["Content-Type", "a/b"],
    ["X-Twice", "1"],
    ["x-twice", "2"],
    ["Webhook-Id", "of the provider"],
    ["Cookie", "a=b"],
  ] as const
  const request = { method: "PUT", path: "/a%2fb", query: "?x=%C3%BC&x", headers, body }
  const { messageId } = await receive(made, "", request)
  const agent = await TestAgent.join(harness)
  const event = await agent.event(1)
  const came = { method: "PUT", path: "/a%2fb", query: "?x=%C3%BC&x", sourceId: made.id }
  expect(event).toMatchObject({ ...came, messageId, headers, base64: body.toString("base64") })
  agent.answer(event, 200)
  const [posted] = await harness.receiver.arrived("/hook", 1)
  expect(posted!.body).toEqual(body)
  expect(posted!.headers).toMatchObject({
    ...{ "content-type": "a/b", "x-twice": "1, 2", "x-source-webhook-id": "of the provider" },
    "webhook-id": messageId,
  })
  expect(posted!.headers).not.toHaveProperty("cookie")
})

test("what came in can be sent again, as it came", async () => {
  const { harness, endpointId, source, receive } = await start()
  const { messageId } = await receive(await source("doorbell", {}), '{"door":"front"}', { path: "/ring" })
  const agent = await TestAgent.join(harness)
  const first = await agent.event(1)
  agent.answer(first, 404)
  await harness.published("delivery.dead", 1)
  await harness.posthorn.replays.resend("acme", messageId!, endpointId)
  const again = await agent.event(2)
  const { method, path, headers, body, sourceId } = first
  expect(again).toMatchObject({ messageId, manual: true, method, path, headers, body, sourceId })
  agent.answer(again, 200)
  await harness.published("delivery.delivered", 1)
})

test("a provider that repeats is told the first id, also after a restart, and the hub gets one event", async () => {
  const { harness, source, receive } = await start()
  const made = await source("hook", { deduplication: { header: "x-id" } })
  const send = (id: string, attempt = 1) =>
    receive(made, `{"id":"${id}","attempt":${attempt}}`, { headers: { "x-id": id } })
  const first = await send("1")
  expect(await send("1", 2)).toMatchObject({ result: "duplicate", messageId: first.messageId })
  await harness.restart()
  expect(await send("1", 3)).toMatchObject({ result: "duplicate", messageId: first.messageId })
  expect(await send("2")).toMatchObject({ result: "accepted" })
  const agent = await TestAgent.join(harness)
  for (const n of [1, 2]) agent.answer(await agent.event(n), 200)
  await harness.published("delivery.delivered", 2)
  await harness.quiet()
  expect(agent.socket.of("event").map(bytesOf)).toEqual(['{"id":"1","attempt":1}', '{"id":"2","attempt":1}'])
})

test("while the store fails nothing is accepted, and the provider's repetition reaches the hub once", async () => {
  const failing = new FailingStore()
  const { harness, source, receive } = await start({ wrapStore: (store: Store) => failing.wrap(store) })
  const made = await source("hook", { deduplication: { header: "x-id" } })
  const send = (id: string) => receive(made, `{"id":"${id}"}`, { headers: { "x-id": id } })
  expect((await send("1")).status).toBe(202)
  failing.isBroken = true
  expect(await send("2")).toMatchObject({ status: 503, headers: { "retry-after": "5" } })
  failing.isBroken = false
  expect([(await send("2")).result, (await send("2")).result]).toEqual(["accepted", "duplicate"])
  const agent = await TestAgent.join(harness)
  for (const n of [1, 2]) agent.answer(await agent.event(n), 200)
  await harness.published("delivery.delivered", 2)
  expect(agent.socket.of("event").map(bytesOf)).toEqual(['{"id":"1"}', '{"id":"2"}'])
})
