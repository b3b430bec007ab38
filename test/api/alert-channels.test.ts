/** `/alert-channel`: for the operator alone, without secrets, with the field of every mistake, and a sentence for every test. */
import { expect, onTestFinished, test } from "vitest"
import { Receiver } from "../support/receiver.ts"
import { SmtpReceiver } from "../support/smtp.ts"
import { ApiServer } from "./support/server.ts"

const MAIL = { kind: "mail", host: "127.0.0.1", from: "posthorn@example.com", to: ["ops@example.com"] }
const ROUTING_KEY = "0123456789abcdef0123456789abcdef"

async function start() {
  const server = await ApiServer.start()
  const receiver = await Receiver.start()
  onTestFinished(() => receiver.close())
  const call = (method: string, path: string, body?: object) =>
    server.call(method, `/alert-channel${path}`, body === undefined ? {} : { body })
  return { server, receiver, call }
}

test("a channel is put, listed, shown, rotated and deleted, and its secrets are never shown", async () => {
  const { receiver, call } = await start()
  const put = await call("PUT", "/chat", { kind: "slack", url: receiver.url("/services/s3cret") })
  const shown = { name: "chat", kind: "slack", deadLetters: true, target: `${receiver.url("/")}…` }
  expect(put).toMatchObject({ status: 200, body: shown })
  expect(await call("GET", "/chat")).toMatchObject({ status: 200, body: shown })
  await call("PUT", "/duty", { kind: "pagerduty", routingKey: ROUTING_KEY })
  await call("PUT", "/post", { ...MAIL, user: "posthorn", password: "s3cret" })
  const list = await call("GET", "")
  expect(list.body.data.map(({ name }: { name: string }) => name)).toEqual(["chat", "duty", "post"])
  for (const text of [put.text, list.text]) {
    expect(text).not.toContain("s3cret")
    expect(text).not.toContain(ROUTING_KEY)
  }
  expect(await call("GET", "/chat/secret")).toMatchObject({ status: 404 })
  await call("PUT", "/hook", { kind: "webhook", url: receiver.url("/hook") })
  const { body: before } = await call("GET", "/hook/secret")
  const { body: after } = await call("POST", "/hook/secret/rotate", {})
  expect(after.key).toMatch(/^whsec_/)
  expect(after.key).not.toBe(before.key)
  expect((await call("GET", "/hook/secret")).body).toEqual(after)
  expect((await call("DELETE", "/hook")).status).toBe(204)
  expect((await call("GET", "/hook")).status).toBe(404)
})

test("the keys of other organizations, and those that only read, are refused with a sentence", async () => {
  const { server, receiver } = await start()
  const { token: stranger } = await server.posthorn
    .tenant("org_other")
    .keys.create({ name: "x", scope: "admin" })
  const body = { kind: "webhook", url: receiver.url("/hook") }
  const detail = "this belongs to the deployment: it needs a key of the default organization"
  for (const [method, path] of [
    ["GET", ""],
    ["PUT", "/hook"],
    ["GET", "/hook"],
    ["POST", "/hook/test"],
    ["DELETE", "/hook"],
  ] as const)
    expect(
      await server.call(method, `/alert-channel${path}`, {
        key: stranger,
        ...(method === "PUT" ? { body } : {}),
      }),
    ).toMatchObject({ status: 403, body: { detail } })
  const { token: reader } = await server.posthorn.keys.create({ name: "r", scope: "read" })
  expect((await server.call("GET", "/alert-channel", { key: reader })).status).toBe(200)
  expect((await server.call("PUT", "/alert-channel/hook", { key: reader, body })).status).toBe(403)
})

test.each<[string, object, readonly string[]]>([
  ["an unknown kind", { kind: "pager" }, ["body", "kind"]],
  ["no kind", { url: "https://example.com" }, ["body", "kind"]],
  ["an unknown field", { kind: "slack", url: "https://example.com", chanel: "#ops" }, ["body", "chanel"]],
  ["a field of another kind", { kind: "slack", url: "https://example.com", host: "x" }, ["body", "host"]],
  ["a URL that is none", { kind: "webhook", url: "ops" }, ["body", "url"]],
  ["a URL of a channel", { kind: "webhook", url: "notify:ops" }, ["body", "url"]],
  ["a URL that the egress guard refuses", { kind: "slack", url: "https://10.0.0.1/x" }, ["body", "url"]],
  ["no URL", { kind: "slack" }, ["body", "url"]],
  ["a key that is too short", { kind: "pagerduty", routingKey: "abc" }, ["body", "routingKey"]],
  ["no key", { kind: "pagerduty" }, ["body", "routingKey"]],
  ["no recipient", { ...MAIL, to: [] }, ["body", "to"]],
  ["an address with a name", { ...MAIL, to: ["Ops <ops@example.com>"] }, ["body", "to", "0"]],
  [
    "an address with a line break",
    { ...MAIL, from: "a@example.com\r\nBcc: b@example.com" },
    ["body", "from"],
  ],
  ["a host that is a URL", { ...MAIL, host: "https://smtp.example.com" }, ["body", "host"]],
  ["a password without a user", { ...MAIL, password: "x" }, ["body", "user"]],
  [
    "a password without encryption",
    { ...MAIL, user: "x", password: "x", security: "none" },
    ["body", "security"],
  ],
  ["an authority that is no PEM", { ...MAIL, ca: "x" }, ["body", "ca"]],
])("%s is refused with the field", async (_what, body, loc) => {
  const { call } = await start()
  const { status, body: answer } = await call("PUT", "/ops", body)
  expect(status).toBe(422)
  expect(answer.detail[0].loc).toEqual(loc)
  expect((await call("GET", "/ops")).status).toBe(404)
})

test("a test says in a sentence that it was delivered, or what is wrong and what to do", async () => {
  const { receiver, call } = await start()
  const smtp = await SmtpReceiver.start()
  const tested = async (body: object) => {
    expect((await call("PUT", "/ops", body)).status).toBe(200)
    return (await call("POST", "/ops/test")).body
  }
  const slack = { kind: "slack", url: receiver.url("/slack") }
  expect(await tested(slack)).toEqual({ delivered: true, detail: "Slack accepted it (200)." })
  receiver.always("/slack", (_request, response) => response.writeHead(404).end("no_service"))
  expect(await tested(slack)).toEqual({
    delivered: false,
    detail:
      "Slack answered 404 (no_service): make a new incoming webhook in Slack and put the channel with its URL.",
  })
  const duty = { kind: "pagerduty", routingKey: ROUTING_KEY, url: receiver.url("/duty") }
  expect(await tested(duty)).toEqual({ delivered: true, detail: "PagerDuty accepted it (200)." })
  const events = receiver.to("/duty").map(({ body }) => JSON.parse(`${body}`))
  expect(events.map(({ event_action }) => event_action)).toEqual(["trigger", "resolve"])
  expect(events[1].dedup_key).toBe(events[0].dedup_key)
  const plain = { ...MAIL, port: smtp.port, security: "none" }
  expect(await tested(plain)).toMatchObject({ delivered: true, detail: expect.stringContaining("250") })
  const { port } = smtp
  await smtp.close()
  expect(await tested({ ...plain, port })).toEqual({
    delivered: false,
    detail: `127.0.0.1:${port} cannot be reached (connect ECONNREFUSED 127.0.0.1:${port}): check its address and port, and the firewalls on the way.`,
  })
  expect((await call("POST", "/nobody/test")).status).toBe(404)
})
