/** `/in/TOKEN` as providers and strangers use it, over real connections. */
import { createHash, createHmac, randomBytes } from "node:crypto"
import { once } from "node:events"
import { request as httpRequest, type IncomingMessage, METHODS } from "node:http"
import { connect } from "node:net"
import { text } from "node:stream/consumers"
import { expect, onTestFinished, test } from "vitest"
import type { Routes } from "../../src/api/context.ts"
import { ROUTES } from "../../src/api/routes/all.ts"
import type { SourceInput } from "../../src/sources/sources.ts"
import type { Entry, Store } from "../../src/store/store.ts"
import { TestClock } from "../support/clock.ts"
import { FailingStore } from "../support/failing-store.ts"
import { LogLines } from "../support/log-lines.ts"
import { Receiver } from "../support/receiver.ts"
import { Recorder } from "../support/recorder.ts"
import { RawClient, until } from "./support/raw-client.ts"
import { ApiServer, type ApiServerOptions } from "./support/server.ts"

interface Sent {
  readonly method?: string
  readonly headers?: readonly string[]
  readonly body?: Uint8Array | string
  /** Instead of the declared length. */
  readonly chunked?: boolean
}

interface Answer {
  readonly status: number
  readonly headers: IncomingMessage["headers"]
  readonly text: string
}

async function start(input: Partial<SourceInput> = {}, options: ApiServerOptions = {}) {
  const server = await ApiServer.start(options)
  const { posthorn } = server
  await posthorn.applications.create({ uid: "acme", name: "Acme" })
  const source = await posthorn.sources.create("acme", { name: "hook", verification: "none", ...input })
  /** Headers are sent as they are given. */
  const send = async (target: string, { method = "POST", headers = [], body = "", chunked }: Sent = {}) => {
    const length = chunked ? "transfer-encoding: chunked" : `content-length: ${Buffer.byteLength(body)}`
    const request = httpRequest(server.url, {
      method,
      path: target,
      headers: ["host", "localhost", ...headers, ...length.split(": ")],
    })
    request.end(body)
    const [response] = (await once(request, "response")) as [IncomingMessage]
    return { status: response.statusCode!, headers: response.headers, text: await text(response) }
  }
  const messages = async () => (await posthorn.messages.list("acme", { order: "ascending", limit: 250 })).data
  const activity = async () => {
    await posthorn.context.receiver.flush()
    return posthorn.sources.activity("acme", "hook")
  }
  const client = () => new RawClient(server.app.server)
  return { server, posthorn, source, path: source.path, send, messages, activity, client }
}

const SAFE = {
  "x-content-type-options": "nosniff",
  "content-security-policy": "sandbox; default-src 'none'",
  "content-type": "application/json; charset=utf-8",
}
const ALWAYS = ["connection", "content-length", "date", "keep-alive", "retry-after", ...Object.keys(SAFE)]

function expectSafe({ headers }: Pick<Answer, "headers">): void {
  expect(headers).toMatchObject(SAFE)
  expect(Object.keys(headers).filter((name) => !ALWAYS.includes(name))).toEqual([])
}

test("every method is taken in, and none is answered for browsers", async () => {
  const { path, send, messages } = await start()
  const methods = METHODS.filter((method) => method !== "CONNECT")
  expect(methods).toEqual(
    expect.arrayContaining(["GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE", "PURGE"]),
  )
  for (const method of methods) {
    const answer = await send(path, { method, headers: ["Origin", "https://example.com"] })
    expect([method, answer.status]).toEqual([method, 202])
    expectSafe(answer)
    expect(answer.text).toBe(
      method === "HEAD" ? "" : `{"id":"${(await messages()).at(-1)!.id}","duplicate":false}`,
    )
  }
  expect((await messages()).map(({ inbound }) => inbound!.method)).toEqual(methods)
})

test("CONNECT opens nothing", async () => {
  const { path, client, messages } = await start()
  const connection = client()
  await connection.write(`CONNECT ${path} HTTP/1.1\r\nHost: x\r\n\r\n`)
  expect(await connection.rest()).toBe("")
  expect(await messages()).toEqual([])
})

test("path and query behind the URL are kept as they came", async () => {
  const { source, send, messages } = await start()
  const targets = [
    ["", ""],
    ["/", ""],
    ["/a/b", ""],
    ["//a/../b%2f%C3%A9/", ""],
    ["", "?a=1&a=2&&=%zz&b"],
    ["/x", "?y?z=/in/other"],
    [`/${"p".repeat(8000)}`, ""],
  ] as const
  for (const [path, query] of targets) expect((await send(source.path + path + query)).status).toBe(202)
  expect((await messages()).map(({ inbound }) => [inbound!.path, inbound!.query])).toEqual(targets)
})

test("headers are kept with their case, their order and their repetitions", async () => {
  const { path, client, messages } = await start()
  const headers = [
    ["Host", "localhost"],
    ["X-B", "1"],
    ["x-a", "2"],
    ["X-b", "3"],
    ["Cookie", "a=b"],
    ["X-Latin", "\xe4"],
    ["Content-Type", "a/b"],
    ["Content-Length", "1"],
  ] as const
  const connection = client()
  const lines = headers.map((pair) => `${pair.join(": ")}\r\n`).join("")
  await connection.write(`POST ${path} HTTP/1.1\r\n${lines}\r\nx`)
  expect(await connection.answer()).toMatchObject({ status: 202 })
  expect(await messages()).toMatchObject([{ contentType: "a/b", inbound: { headers } }])
})

test("bytes come out as they went in, with their length declared or in chunks", async () => {
  const { path, send, messages } = await start(GITHUB)
  const bodies = ["", '{"a": 1.0, "ä": "€"}\n', randomBytes(1000), randomBytes(1_048_576)]
  for (const body of bodies)
    for (const chunked of [false, true]) {
      const headers = ["X-Hub-Signature-256", signature(body)]
      expect((await send(path, { headers, body, chunked })).status).toBe(202)
      const { payload } = (await messages()).at(-1)!
      expect(digestOf(payload as Uint8Array)).toBe(digestOf(body))
    }
  expect(await messages()).toHaveLength(2 * bodies.length)
})

const SECRET = "It's a Secret to Everybody"
const GITHUB = { verification: "github", secret: SECRET } as const
const signature = (body: Uint8Array | string, secret = SECRET) =>
  `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`
const digestOf = (body: Uint8Array | string) => createHash("sha256").update(body).digest("hex")

test("a request that cannot be verified has one answer, byte for byte, whatever was wrong with it", async () => {
  const { path, client, messages } = await start({ verification: "slack", secret: SECRET })
  const now = Math.floor(Date.now() / 1000)
  const sign = (at: string | number, body: string, secret = SECRET) =>
    `v0=${createHmac("sha256", secret).update(`v0:${at}:${body}`).digest("hex")}`
  const answers: string[] = []
  for (const headers of [
    "",
    "X-Slack-Signature: v0=\r\n",
    `X-Slack-Signature: ${sign(now, "{}")}\r\n`,
    `X-Slack-Signature: ${sign(now, "{}", "wrong")}\r\nX-Slack-Request-Timestamp: ${now}\r\n`,
    `X-Slack-Signature: ${sign(now, "{ }")}\r\nX-Slack-Request-Timestamp: ${now}\r\n`,
    `X-Slack-Signature: ${sign(now - 301, "{}")}\r\nX-Slack-Request-Timestamp: ${now - 301}\r\n`,
    `X-Slack-Signature: ${sign("soon", "{}")}\r\nX-Slack-Request-Timestamp: soon\r\n`,
  ]) {
    const connection = client()
    await connection.write(
      `POST ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${headers}Content-Length: 2\r\n\r\n{}`,
    )
    answers.push((await connection.rest()).replace(/Date: .*/, ""))
  }
  expect(new Set(answers).size).toBe(1)
  expect(answers[0]).toMatch(/^HTTP\/1.1 401 Unauthorized\r\n/)
  expect(answers[0]).toMatch(
    /\r\n\r\n\{"code":"verification_failed","detail":"the request could not be verified"\}$/,
  )
  expect(await messages()).toEqual([])
})

test("no token, an unknown one and one of a disabled source have one answer, and the body need not come", async () => {
  const { posthorn, source, client } = await start()
  await posthorn.sources.update("acme", "hook", { enabled: false })
  const answers: string[] = []
  for (const token of ["", "x", "%2e%2e", source.token.replace(/.$/, "!"), "a".repeat(59), source.token]) {
    const connection = client()
    await connection.write(`POST /in/${token} HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n`)
    answers.push((await connection.rest()).replace(/Date: .*/, ""))
  }
  expect(new Set(answers).size).toBe(1)
  expect(answers[0]).toMatch(/^HTTP\/1.1 404 Not Found\r\n/)
})

test("handshakes are plain text, without a cookie, for no browser to run", async () => {
  const { path, send, messages } = await start({ handshake: { kind: "microsoft-graph" } })
  const answer = await send(`${path}?validationToken=%3Cscript%3Ealert(1)%3C%2Fscript%3E`)
  expect(answer).toMatchObject({
    status: 200,
    text: "<script>alert(1)</script>",
    headers: { ...SAFE, "content-type": "text/plain; charset=utf-8" },
  })
  expect(answer.headers).not.toHaveProperty("set-cookie")
  expect(await messages()).toEqual([])
})

test("a repetition has the same id in its answer, and is no second message", async () => {
  const { path, send, messages } = await start(GITHUB)
  const sendOne = () =>
    send(path, { headers: ["X-Hub-Signature-256", signature("{}"), "X-GitHub-Delivery", "d1"], body: "{}" })
  const first = JSON.parse((await sendOne()).text)
  expect(first).toEqual({ id: expect.stringMatching(/^msg_/), duplicate: false })
  expect(JSON.parse((await sendOne()).text)).toEqual({ id: first.id, duplicate: true })
  expect(await messages()).toHaveLength(1)
})

test("a body that is declared too large is refused before it comes, and the connection ends", async () => {
  const { path, client, activity } = await start({ maxBytes: 100_000 })
  const connection = client()
  await connection.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 100001\r\n\r\n`)
  expect(await connection.answer()).toMatchObject({ status: 413, headers: { ...SAFE, connection: "close" } })
  expect(await activity()).toMatchObject({ accepted: 0, refused: { size: 1 } })
})

test("a small body that was refused unread does not disturb the next request of its connection", async () => {
  const { path, client } = await start({ maxBytes: 10 })
  const connection = client()
  await connection.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\n\r\n`)
  expect(await connection.answer()).toMatchObject({ status: 413 })
  await connection.write(`12345678901GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`)
  expect(await connection.answer()).toMatchObject({ status: 202 })
})

test("a body in chunks is cut at the limit, and its sender sees the answer", async () => {
  const { path, client, messages, activity } = await start({ maxBytes: 100_000 })
  const connection = client()
  const chunk = `8000\r\n${"x".repeat(0x8000)}\r\n`
  await connection.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n`)
  await connection.write(chunk, chunk, chunk, chunk)
  expect(await connection.answer()).toMatchObject({ status: 413, headers: { connection: "close" } })
  // A connection that is closed with bytes unread is reset, and senders who still write lose the answer.
  await connection.write(chunk)
  expect((await connection.peer).destroyed).toBe(false)
  // It goes on sending, and the connection is cut.
  const timer = setInterval(() => connection.socket.write(chunk), 10)
  await new Promise((resolve) => connection.socket.once("close", resolve))
  clearInterval(timer)
  expect(await messages()).toEqual([])
  expect(await activity()).toMatchObject({ refused: { size: 1 } })
})

test.each([
  "Content-Length: 1000",
  "Transfer-Encoding: chunked",
])("a body that comes too slowly is cut: %s", async (length) => {
  const { path, client, messages, activity } = await start({}, { timeouts: { inboundBodyMs: 50 } })
  const connection = client()
  await connection.write(`POST ${path} HTTP/1.1\r\nHost: x\r\n${length}\r\n\r\n1\r\nx\r\n`)
  expect(await connection.answer()).toMatchObject({ status: 408, headers: { ...SAFE, connection: "close" } })
  await connection.rest()
  expect(await messages()).toEqual([])
  expect(await activity()).toMatchObject({ refused: { timeout: 1 } })
})

test("a sender that goes away in the middle leaves no message and no place taken", async () => {
  const instruments = new Recorder()
  const { path, client, send, messages } = await start({}, { maxRequests: 1, instruments })
  const connection = client()
  await connection.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nx`)
  expect((await send(path)).status).toBe(503)
  connection.socket.destroy()
  await until(() => instruments.of("inboundAnswered").some(([result]) => result === "refused_timeout"))
  expect((await send(path)).status).toBe(202)
  expect(await messages()).toHaveLength(1)
})

test("bodies in flight are bounded: chunks are counted as the largest body", async () => {
  const { posthorn, path, client, send } = await start({ maxBytes: 600 }, { maxBodyBytes: 1000 })
  const other = await posthorn.sources.create("acme", { name: "other", verification: "none" })
  // The source is cached now: the next request takes its bytes as soon as the server has read it.
  expect((await send(path)).status).toBe(202)
  const waiting = client()
  await waiting.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n`)
  const answer = await send(other.path, { body: "x".repeat(500) })
  expect(answer).toMatchObject({ status: 503, headers: { "retry-after": "5" } })
  expectSafe(answer)
  expect((await send(other.path, { body: "x".repeat(400) })).status).toBe(202)
  await waiting.write("0\r\n\r\n")
  expect(await waiting.answer()).toMatchObject({ status: 202 })
  expect((await send(other.path, { body: "x".repeat(500) })).status).toBe(202)
})

test("a flood is refused above the source's rate, and other sources do not notice", async () => {
  const { posthorn, path, send, messages, activity } = await start({ rateLimit: 5 })
  const other = await posthorn.sources.create("acme", { name: "other", verification: "none" })
  const answers = await Promise.all(Array.from({ length: 40 }, () => send(path, { body: "{}" })))
  const refused = answers.filter(({ status }) => status === 429)
  expect(refused.length).toBeGreaterThan(0)
  expect(answers.filter(({ status }) => status === 202)).toHaveLength(40 - refused.length)
  expect(refused[0]).toMatchObject({ headers: { "retry-after": "1" } })
  expectSafe(refused[0]!)
  expect((await send(other.path)).status).toBe(202)
  expect(await messages()).toHaveLength(40 - refused.length + 1)
  expect(await activity()).toMatchObject({ refused: { rate: refused.length } })
})

test("while the store fails, providers are asked to try again", async () => {
  const failing = new FailingStore()
  const { path, send } = await start({}, { wrapStore: (store: Store) => failing.wrap(store) })
  failing.isBroken = true
  const answer = await send(path)
  expect(answer).toMatchObject({ status: 503, headers: { "retry-after": "5" } })
  expectSafe(answer)
  failing.isBroken = false
  expect((await send(path)).status).toBe(202)
})

test("a store that does not answer in time is a 503, too", async () => {
  let isStalled = false
  const wrapStore = (store: Store) => ({
    ...store,
    acceptMany: ((...args) =>
      isStalled ? new Promise(() => {}) : store.acceptMany(...args)) as Store["acceptMany"],
  })
  const options = { wrapStore, timeouts: { handlerMs: 100 } }
  const { posthorn, source, path, send, activity } = await start({}, options)
  // The library has no such limit, and the source is cached now.
  const request = { method: "POST", headers: [], body: "" }
  expect(await posthorn.sources.receive(source.token, request)).toMatchObject({ status: 202 })
  isStalled = true
  expect((await send(path)).status).toBe(503)
  expect(await activity()).toMatchObject({
    refused: { unavailable: 1 },
    recent: [{ reason: "unavailable", detail: "timeout" }],
  })
})

test("a store that does not answer while a body comes is a 503, too", async () => {
  const held = Promise.withResolvers<void>()
  let isStalled = false
  const wrapStore = (store: Store) => ({
    ...store,
    getEntry: (async (...args) => {
      if (isStalled) await held.promise
      return store.getEntry(...args)
    }) as Store["getEntry"],
  })
  const clock = new TestClock()
  const { posthorn, source, path, client } = await start(
    {},
    { wrapStore, clock, timeouts: { handlerMs: 100 } },
  )
  // The library has no such limit, and the source is cached now.
  const request = { method: "POST", headers: [], body: "" }
  expect(await posthorn.sources.receive(source.token, request)).toMatchObject({ status: 202 })
  const connection = client()
  await connection.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{`)
  // The source is read again after the body.
  clock.advance(2000)
  isStalled = true
  await connection.write("}")
  expect(await connection.answer()).toMatchObject({ status: 503, headers: { "retry-after": "5" } })
  held.resolve()
})

test("the secret of a source's URL is in no log line, also behind a path that leads nowhere", async () => {
  const lines = new LogLines()
  const { path, source, send } = await start({}, { logger: lines.logger })
  const doubled = `/hooks${path.replace("/in/", "/in//")}`
  for (const target of [`/${path}`, `/hooks${path}?a=1`, `http://localhost${path}`, doubled])
    expect((await send(target)).status).toBe(404)
  await until(() => lines.about("request").length === 4)
  const id = source.id.slice("src_".length)
  expect(lines.about("request").map(({ url }) => url)).toEqual([
    `//in/${id}…`,
    `/hooks/in/${id}…?a=1`,
    `http://localhost/in/${id}…`,
    `/hooks/in//${id}…`,
  ])
  expect(JSON.stringify(lines.all)).not.toContain(path.slice("/in/".length))
})

test("the refused requests are shown to keys of the organization, and an application's key sees the counts", async () => {
  const { server, posthorn, path, send } = await start({ verification: "bearer", secret: "s3cret" })
  await send(`${path}/secret/of/the/operator`)
  await posthorn.context.receiver.flush()
  const shownTo = async (key: string) => {
    const url = `${server.url}/api/v1/app/acme/source/hook/activity`
    return (await fetch(url, { headers: { authorization: `Bearer ${key}` } })).json()
  }
  expect(await shownTo(server.key)).toMatchObject({
    refused: { signature: 1 },
    recent: [{ path: "/secret/of/the/operator", detail: "missing" }],
  })
  const { token } = await posthorn.keys.create({ name: "portal", scope: "application", appId: "acme" })
  expect(await shownTo(token)).toMatchObject({ refused: { signature: 1 }, recent: [] })
})

test("an overload is in the activity of a known source, and in the log without a stack", async () => {
  const lines = new LogLines()
  const { source, path, client, send, activity } = await start({}, { maxRequests: 1, logger: lines.logger })
  expect((await send(path)).status).toBe(202)
  const slow = client()
  await slow.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n`)
  expect((await send(`${path}/deep`)).status).toBe(503)
  expect((await send("/in/nobody")).status).toBe(503)
  await slow.write("x")
  expect(await slow.answer()).toMatchObject({ status: 202 })
  expect(await activity()).toMatchObject({
    ...{ accepted: 2, refused: { unavailable: 1 } },
    recent: [{ reason: "unavailable", detail: "overloaded", path: "/deep" }],
  })
  await until(() => lines.about("a webhook was refused").length === 2)
  const refused = lines.about("a webhook was refused")
  expect(refused.map((line) => [line.source, line.reason, "err" in line])).toEqual([
    [source.id, "too many requests are in flight; try again", false],
    [null, "too many requests are in flight; try again", false],
  ])
})

test("bytes above the limit are in the activity, too", async () => {
  const { path, send, activity } = await start({}, { maxBodyBytes: 10 })
  expect((await send(path, { body: "12345678901" })).status).toBe(503)
  expect(await activity()).toMatchObject({ refused: { unavailable: 1 }, recent: [{ detail: "overloaded" }] })
})

test("an offer to change the protocol, as Java's client makes it, is a header like others", async () => {
  const { path, send, messages } = await start()
  const headers = [
    "Connection",
    "Upgrade, HTTP2-Settings",
    "Upgrade",
    "h2c",
    "HTTP2-Settings",
    "AAMAAABkAAQAAP__",
  ]
  expect((await send(path, { headers, body: "{}" })).status).toBe(202)
  expect(await messages()).toHaveLength(1)
})

test("a source of another tenant sends to its own application", async () => {
  const { posthorn, send, messages } = await start()
  const other = posthorn.tenant("org_other")
  await other.applications.create({ uid: "acme", name: "Acme" })
  const { path } = await other.sources.create("acme", { name: "hook", verification: "none" })
  expect((await send(path)).status).toBe(202)
  expect(await messages()).toEqual([])
  expect((await other.messages.list("acme")).data).toHaveLength(1)
  await other.applications.delete("acme")
  expect((await send(path)).status).toBe(404)
})

test("neither the token nor the query is in the log", async () => {
  const lines = new LogLines()
  const { path, source, send } = await start({}, { logger: lines.logger })
  await send(`${path}/a?key=s3cret`)
  await send(`${path.slice(0, -1)}-?key=s3cret`)
  expect(await lines.told("webhook")).toMatchObject({
    ...{ method: "POST", source: source.id, status: 202, result: "accepted" },
    messageId: expect.stringMatching(/^msg_/),
  })
  await until(() => lines.about("webhook").length === 2)
  const logged = JSON.stringify(lines.all)
  expect(logged).not.toContain(source.token.slice(27, -1))
  expect(logged).not.toContain("s3cret")
})

test("each request is measured once, by what became of it", async () => {
  const instruments = new Recorder()
  const { path, send } = await start(GITHUB, { instruments })
  await send(path, { headers: ["X-Hub-Signature-256", signature("{}")], body: "{}" })
  await send(path)
  await send("/in/nobody")
  expect(instruments.of("inboundAnswered").map(([result]) => result)).toEqual([
    "accepted",
    "refused_signature",
    "refused_unknown",
  ])
})

test("the operator sees the request of a message without its credentials, and an application's keys do not", async () => {
  const { server, posthorn, source, path, send } = await start()
  const headers = ["Cookie", "a=s3cret", "X-Twice", "1", "Authorization", "Bearer s3cret", "x-twice", "2"]
  const { text } = await send(`${path}/a%20b?q=1`, { method: "PUT", headers })
  const { id } = JSON.parse(text)
  const [one, all] = [`/app/acme/msg/${id}`, "/app/acme/msg"]
  const shown = await server.call("GET", one)
  expect(shown.body.inbound).toEqual({
    ...{ sourceId: source.id, method: "PUT", path: "/a%20b", query: "?q=1" },
    headers: [
      ["host", "localhost"],
      ["X-Twice", "1"],
      ["x-twice", "2"],
      ["content-length", "0"],
      ["Connection", "keep-alive"],
    ],
    sensitive: ["Cookie", "Authorization"],
  })
  expect(shown.text).not.toContain("s3cret")
  expect((await server.call("GET", all)).body.data[0]).toEqual(shown.body)
  for (const hidden of [`${one}?with_content=false`, `${all}?with_content=false`])
    expect((await server.call("GET", hidden)).text).not.toContain('"inbound":')
  const portal = await server.call("POST", "/auth/app-portal-access/acme", { body: {} })
  const { token } = await posthorn.keys.create({ name: "k", scope: "read", appId: "acme" })
  for (const key of [portal.body.token, token])
    for (const route of [one, all]) {
      const answer = await server.call("GET", route, { key })
      expect(answer.status).toBe(200)
      expect(answer.text).not.toMatch(/"inbound":|X-Twice/)
    }
  const message = { eventType: "invoice.paid", payload: {} }
  const plain = await server.call("POST", all, { body: message })
  expect((await server.call("GET", `${all}/${plain.body.id}`)).body).not.toHaveProperty("inbound")
})

test("what comes in goes out to an HTTP endpoint with its bytes and its headers", async () => {
  const receiver = await Receiver.start()
  onTestFinished(() => receiver.close())
  const { posthorn, path, send } = await start()
  await posthorn.endpoints.create("acme", { url: receiver.url("/hook") })
  const body = randomBytes(100)
  await send(path, { headers: ["X-GitHub-Event", "push", "Content-Type", "a/b", "Cookie", "a=b"], body })
  await expect.poll(() => receiver.requests.length).toBe(1)
  const [delivered] = receiver.requests as [(typeof receiver.requests)[0]]
  expect(delivered.headers).toMatchObject({ "x-github-event": "push", "content-type": "a/b" })
  expect(delivered.headers).not.toHaveProperty("cookie")
  expect(digestOf(delivered.body)).toBe(digestOf(body))
})

test("a server that stops asks providers to come back", async () => {
  const { server, path, client } = await start()
  const connection = client()
  await connection.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n`)
  const late = connect({ port: Number(new URL(server.url).port), host: "127.0.0.1" })
  await once(late, "connect")
  const closing = server.app.close()
  await connection.write("x")
  expect(await connection.answer()).toMatchObject({ status: 202, headers: { connection: "close" } })
  late.destroy()
  await closing
})

test("a request that comes while the server stops is in the activity", async () => {
  const failing = new FailingStore()
  const saved: Entry[] = []
  failing.onSaved = (entry) => void saved.push(entry)
  const [opened, stopping] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const hold: Routes = (app) =>
    void app.addHook("preClose", () => {
      stopping.resolve()
      return opened.promise
    })
  const wrapStore = (store: Store) => failing.wrap(store)
  const { server, path, send } = await start({}, { wrapStore, routes: [...ROUTES, hold] })
  expect((await send(path)).status).toBe(202)
  const closing = server.app.close()
  await stopping.promise
  expect(await send(path)).toMatchObject({
    status: 503,
    headers: { "retry-after": "5", connection: "close" },
  })
  opened.resolve()
  await closing
  const [activity] = saved.filter(({ kind }) => kind === "source-activity")
  expect(JSON.parse(activity!.body)).toMatchObject({
    ...{ accepted: 1, refused: { unavailable: 1 } },
    recent: [{ reason: "unavailable", detail: "closing" }],
  })
})

const ROUTE = "/app/acme/source"

test("the API creates, lists, changes, rotates and deletes sources, and shows the URL", async () => {
  const { server } = await start({}, { publicUrl: "https://hooks.example.com" })
  const secret = { name: "github", verification: "github", secret: SECRET }
  const created = await server.call("POST", ROUTE, { body: secret })
  expect(created).toMatchObject({
    status: 201,
    body: {
      ...{ name: "github", verification: { scheme: "github" }, eventType: null, enabled: true },
      url: expect.stringMatching(/^https:\/\/hooks\.example\.com\/in\/[0-9A-Za-z]{59}$/),
      secrets: { count: 1, overlapEndsAt: null },
    },
  })
  expect(created.text).not.toContain(SECRET)
  const one = `${ROUTE}/github`
  expect((await server.call("GET", one)).body).toEqual(created.body)
  expect((await server.call("GET", `${ROUTE}?limit=1`)).body).toMatchObject({ done: false })
  const patch = { eventType: { header: "X-GitHub-Event" }, description: "ours", maxBytes: 1000 }
  expect((await server.call("PATCH", one, { body: patch })).body).toMatchObject({
    eventType: { header: "x-github-event" },
    ...{ description: "ours", maxBytes: 1000, url: created.body.url },
  })
  expect((await server.call("PATCH", one, { body: { eventType: null, maxBytes: null } })).body).toMatchObject(
    {
      ...{ eventType: null, maxBytes: null, description: "ours" },
    },
  )
  const rotated = await server.call("POST", `${one}/secret/rotate`, { body: { secret: "new" } })
  expect(rotated.body.secrets).toEqual({ count: 2, overlapEndsAt: expect.any(String) })
  expect((await server.call("DELETE", one)).status).toBe(204)
  expect((await server.call("GET", one)).status).toBe(404)
})

test("mistakes are answered with their field", async () => {
  const { server } = await start()
  for (const [body, loc] of [
    [{ name: "a" }, ["body", "verification"]],
    [{ name: "a", verification: "github" }, ["body", "secret"]],
    [{ name: "a", verification: { scheme: "hmac" }, secret: "x" }, ["body", "verification", "header"]],
    [{ name: "a", verification: "none", handshake: { kind: "meta" } }, ["body", "handshake", "verifyToken"]],
  ] as const)
    expect((await server.call("POST", ROUTE, { body })).body.detail[0].loc).toEqual(loc)
  const taken = await server.call("POST", ROUTE, { body: { name: "hook", verification: "none" } })
  expect(taken).toMatchObject({ status: 409, body: { code: "conflict" } })
})

test("keys of the application look at sources, and see the URL if they manage endpoints", async () => {
  const { server, posthorn, source } = await start()
  const key = async (capabilities: readonly ("ViewBase" | "ManageEndpoint")[] | null) =>
    (await posthorn.keys.create({ name: "k", scope: "application", appId: "acme", capabilities })).token
  const [looking, managing] = [await key(["ViewBase"]), await key(["ViewBase", "ManageEndpoint"])]
  for (const path of [ROUTE, `${ROUTE}/hook`]) {
    expect((await server.call("GET", path, { key: looking })).text).not.toContain(source.token)
    expect((await server.call("GET", path, { key: managing })).text).toContain(`${server.url}${source.path}`)
  }
  for (const portal of [looking, managing]) {
    expect((await server.call("GET", `${ROUTE}/hook/activity`, { key: portal })).status).toBe(200)
    const body = { name: "mine", verification: "none" }
    expect((await server.call("POST", ROUTE, { key: portal, body })).status).toBe(403)
    expect((await server.call("PATCH", `${ROUTE}/hook`, { key: portal, body: {} })).status).toBe(403)
    expect((await server.call("DELETE", `${ROUTE}/hook`, { key: portal })).status).toBe(403)
  }
})

test("the activity shows what was refused and from where, without bodies", async () => {
  const { server, posthorn, path, send } = await start(GITHUB)
  await send(path, { headers: ["X-Hub-Signature-256", signature("{}")], body: "{}" })
  await send(`${path}/deep?a=1`, { headers: ["User-Agent", "curl/8"], body: "b0dy" })
  await posthorn.context.receiver.flush()
  const { body, text } = await server.call("GET", `${ROUTE}/hook/activity`)
  expect(body).toEqual({
    ...{ accepted: 1, duplicates: 0, handshakes: 0, refused: { signature: 1 } },
    ...{ lastAcceptedAt: expect.any(String), lastRefusedAt: expect.any(String) },
    recent: [
      {
        ...{ at: expect.any(String), reason: "signature", detail: "missing", method: "POST", path: "/deep" },
        ...{ remoteAddress: "127.0.0.1", userAgent: "curl/8" },
      },
    ],
  })
  expect(text).not.toContain("b0dy")
})
