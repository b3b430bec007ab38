/** `POST …/msg` as the listener of `node:http` answers it, and what it leaves to Fastify. */
import { subscribe, unsubscribe } from "node:diagnostics_channel"
import { once } from "node:events"
import { expect, onTestFinished, test } from "vitest"
import type { Routes } from "../../src/api/context.ts"
import { ROUTES } from "../../src/api/routes/all.ts"
import type { Store } from "../../src/store/store.ts"
import { type RawAnswer, RawClient, until } from "./support/raw-client.ts"
import { ApiServer, type ApiServerOptions } from "./support/server.ts"

async function start(given: ApiServerOptions = {}) {
  let seenByFastify = 0
  const stopping = Promise.withResolvers<void>()
  const watch: Routes = (app) => {
    app.addHook("onSend", (_request, _reply, payload, done) => {
      seenByFastify++
      done(null, payload)
    })
    app.addHook("preClose", async () => stopping.resolve())
  }
  const server = await ApiServer.start({ ...given, routes: [...ROUTES, watch] })
  await server.posthorn.applications.create({ uid: "acme", name: "Acme" })
  const client = () => new RawClient(server.app.server)
  const request = (n: number, changes: { readonly [name: string]: string | null } = {}, path = "msg") => {
    const body = changes.body ?? JSON.stringify({ eventType: "a", payload: { n } })
    const fields = Object.entries({
      Host: "localhost",
      Authorization: `Bearer ${server.key}`,
      "Content-Type": "application/json",
      "Content-Length": String(Buffer.byteLength(body, "latin1")),
      ...changes,
      body: null,
    }).flatMap(([name, value]) => (value === null ? [] : [`${name}: ${value}`]))
    return `POST /api/v1/app/acme/${path} HTTP/1.1\r\n${fields.join("\r\n")}\r\n\r\n${body}`
  }
  const payloads = async () =>
    (await server.posthorn.messages.list("acme", { limit: 250 })).data
      .map(({ payload }) => JSON.parse(Buffer.from(payload as Uint8Array).toString()).n)
      .reverse()
  return {
    server,
    client,
    request,
    payloads,
    seenByFastify: () => seenByFastify,
    stopping: stopping.promise,
  }
}

function withMethod<N extends keyof Store>(store: Store, name: N, method: Store[N]): Store {
  return new Proxy(store, {
    get: (target, asked) => {
      if (asked === name) return method
      const value = Reflect.get(target, asked)
      return typeof value === "function" ? value.bind(target) : value
    },
  })
}

/** A store whose `accept` waits until it is opened. */
function gated() {
  const opened = Promise.withResolvers<void>()
  const reached = Promise.withResolvers<void>()
  let accepted = 0
  const wrapStore = (store: Store): Store =>
    withMethod(store, "acceptMany", async (...args) => {
      accepted++
      reached.resolve()
      await opened.promise
      return store.acceptMany(...args)
    })
  return { wrapStore, reached: reached.promise, open: opened.resolve, accepted: () => accepted }
}

/** The route as the listener answers it, and with a query, as Fastify does. */
const LISTENER = "msg"
const FASTIFY = "msg?with_content=true"

test("a message is answered without Fastify, and in the same way as by Fastify", async () => {
  const { client, request, payloads, seenByFastify } = await start()
  const one = client()
  const comparable = ({ status, headers, text }: RawAnswer) => {
    const { id, timestamp, payload, ...body } = JSON.parse(text)
    expect(headers["content-length"]).toBe(String(text.length))
    expect(new Date(headers.date!).toUTCString()).toBe(headers.date)
    const types = [typeof id, typeof timestamp, typeof payload]
    return { status, body, headers: { ...headers, date: "" }, types }
  }
  const answers: RawAnswer[] = []
  for (const path of [LISTENER, LISTENER, FASTIFY, LISTENER]) {
    await one.write(request(answers.length, { "Svix-Req-Id": "my-id" }, path))
    answers.push(await one.answer())
    expect(seenByFastify(), `after ${path}`).toBe(answers.length < 3 ? 0 : 1)
  }
  const fastifys = answers[2]!
  expect(fastifys).toMatchObject({
    status: 202,
    headers: { "x-request-id": "my-id", "keep-alive": "timeout=72" },
  })
  for (const answer of answers) expect(comparable(answer)).toEqual(comparable(fastifys))
  expect(await payloads()).toEqual([0, 1, 2, 3])
})

test("tracing sees the request and its response, and so does another listener of the server", async () => {
  const { client, request, server } = await start()
  const seen: string[] = []
  server.app.server.on("request", ({ url }) => seen.push(`listener ${url}`))
  const finished = Promise.withResolvers<void>()
  const onStart = (message: unknown) => {
    seen.push(`start ${(message as { request: { url: string } }).request.url}`)
  }
  const onFinish = (message: unknown) => {
    seen.push(`finish ${(message as { response: { statusCode: number } }).response.statusCode}`)
    finished.resolve()
  }
  subscribe("http.server.request.start", onStart)
  subscribe("http.server.response.finish", onFinish)
  onTestFinished(() => {
    unsubscribe("http.server.request.start", onStart)
    unsubscribe("http.server.response.finish", onFinish)
  })
  await client().write(request(1))
  await finished.promise
  const url = "/api/v1/app/acme/msg"
  expect(seen).toEqual([`start ${url}`, `listener ${url}`, "finish 202"])
})

test("texts beyond ASCII come back and are kept byte for byte", async () => {
  const { client, request, server } = await start()
  const payload = '{"text":"\u00fc\u20ac\u{1f600}"}'
  const one = client()
  await one.write(
    request(0, { body: Buffer.from(`{"eventType":"a","payload":${payload}}`).toString("latin1") }),
  )
  const { text } = await one.answer()
  expect(Buffer.from(text, "latin1").toString()).toContain(`"payload":${payload}`)
  const { data } = await server.posthorn.messages.list("acme")
  expect(Buffer.from(data[0]!.payload as Uint8Array).toString()).toBe(payload)
})

test("a key that was not seen before is looked up", async () => {
  const { client, request, server, seenByFastify } = await start()
  const { token } = await server.posthorn.keys.create({ name: "new", scope: "admin" })
  const one = client()
  await one.write(request(1, { Authorization: `bearer ${token}` }))
  expect(await one.answer()).toMatchObject({ status: 202 })
  expect(seenByFastify()).toBe(0)
})

test.each<[string, { readonly [name: string]: string | null }, number]>([
  ["a key that nobody has", { Authorization: "Bearer ph_1_2" }, 401],
  ["what is no key", { Authorization: "Basic x" }, 401],
  ["no key", { Authorization: null }, 401],
  ["no JSON", { body: "{" }, 422],
  ["nothing", { body: "" }, 422],
  ["a field that nobody knows", { body: '{"eventType":"a","payload":{},"evenTid":"x"}' }, 422],
  ["no event type", { body: '{"payload":{}}' }, 422],
  ["no payload", { body: '{"eventType":"a"}' }, 422],
  ["what the library refuses", { body: '{"eventType":"a","payload":{},"maxAttempts":0}' }, 422],
  ["an empty idempotency key", { "Idempotency-Key": "" }, 422],
])("%s is refused in the words of Fastify's route", async (_what, changes, status) => {
  const { client, request, payloads, seenByFastify } = await start()
  const told: object[] = []
  for (const path of [LISTENER, FASTIFY]) {
    const one = client()
    await one.write(request(2, { "Svix-Req-Id": "mine", ...changes }, path))
    const { headers, ...answer } = await one.answer()
    // Fastify ends the connection after a body that it cannot parse.
    const { date: _date, connection: _connection, "keep-alive": _keepAlive, ...same } = headers
    told.push({ ...answer, same })
  }
  expect(told[0]).toMatchObject({ status })
  expect(told[0]).toEqual(told[1])
  expect(seenByFastify()).toBe(1)
  expect(await payloads()).toEqual([])
})

const chunked = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`

test.each<[string, { readonly [name: string]: string | null }, string, number]>([
  ["another type of content", { "Content-Type": "text/plain" }, LISTENER, 415],
  ["another charset", { "Content-Type": "application/json; charset=latin1" }, LISTENER, 202],
  ["a packed body", { "Content-Encoding": "gzip" }, LISTENER, 415],
  ["a body that is too large", { "Content-Length": "99999999" }, LISTENER, 413],
  [
    "a body in chunks",
    {
      "Transfer-Encoding": "chunked",
      "Content-Length": null,
      body: chunked('{"eventType":"a","payload":{"n":2}}'),
    },
    LISTENER,
    202,
  ],
  ["a slash at the end", {}, `${LISTENER}/`, 202],
  ["a query that nobody knows", {}, "msg?x=1", 422],
])("%s is left to Fastify", async (_what, changes, path, status) => {
  const { client, request, payloads, seenByFastify } = await start()
  const one = client()
  await one.write(request(1))
  expect(await one.answer()).toMatchObject({ status: 202 })
  expect(seenByFastify()).toBe(0)
  await one.write(request(2, changes, path))
  const left = await one.answer()
  expect(left.status).toBe(status)
  expect(JSON.parse(left.text)).toHaveProperty(status === 202 ? "id" : "detail")
  expect(seenByFastify()).toBe(1)
  expect(await payloads()).toEqual(status === 202 ? [1, 2] : [1])
})

test("a key beyond ASCII is the same to Fastify's route", async () => {
  const { client, request, payloads } = await start()
  const ids: string[] = []
  for (const path of [LISTENER, FASTIFY]) {
    const one = client()
    await one.write(request(1, { "Idempotency-Key": Buffer.from("voilà").toString("latin1") }, path))
    ids.push(JSON.parse((await one.answer()).text).id)
  }
  expect(ids[0]).toBe(ids[1])
  expect(await payloads()).toEqual([1])
})

test("a key that cannot be looked up in time is refused, and keeps its place while it is looked up", async () => {
  const opened = Promise.withResolvers<void>()
  const wrapStore = (store: Store): Store =>
    withMethod(store, "getEntry", async (...args) => {
      await opened.promise
      return store.getEntry(...args)
    })
  const timeouts = { headersMs: 10_000, requestMs: 10_000, handlerMs: 50 }
  const { client, request, seenByFastify } = await start({ wrapStore, timeouts, maxRequests: 1 })
  for (const code of ["timeout", "overloaded"]) {
    const one = client()
    await one.write(request(1))
    const late = await one.answer()
    expect(late).toMatchObject({ status: 503, headers: { "retry-after": "1" } })
    expect(JSON.parse(late.text).code).toBe(code)
  }
  expect(seenByFastify()).toBe(0)
  opened.resolve()
})

test.each<[string, string]>([
  ["reads only", "read"],
  ["is one application's", "application"],
])("a key that %s cannot send", async (_what, scope) => {
  const { client, request, server, payloads } = await start()
  const { id } = await server.posthorn.applications.get("acme")
  const { token } = await server.posthorn.keys.create({
    name: "weak",
    scope: scope as "read" | "application",
    ...(scope === "application" ? { appId: id } : {}),
  })
  const one = client()
  for (let n = 0; n < 2; n++) {
    await one.write(request(n, { Authorization: `Bearer ${token}` }))
    expect(await one.answer()).toMatchObject({ status: 403, reason: "Forbidden" })
  }
  expect(await payloads()).toEqual([])
})

test("a refusal of the store is answered as by Fastify's route", async () => {
  const { client, request, seenByFastify } = await start()
  const one = client()
  for (const [path, seen] of [
    [LISTENER, 0],
    [FASTIFY, 1],
  ] as const) {
    await one.write(request(1, {}, path).replace("/acme/", "/nobody/"))
    const answer = await one.answer()
    expect(answer.status).toBe(404)
    expect(answer.headers["content-type"]).toBe("application/json; charset=utf-8")
    expect(JSON.parse(answer.text)).toEqual({
      code: "not_found",
      detail: 'Entity not found: there is no application "nobody"',
    })
    expect(seenByFastify()).toBe(seen)
  }
})

test("the same idempotency key gets the same answer, from the listener and from Fastify", async () => {
  const { client, request, payloads, seenByFastify } = await start()
  const one = client()
  const ids = new Set<string>()
  for (const path of [LISTENER, LISTENER, FASTIFY]) {
    await one.write(request(1, { "Idempotency-Key": "k" }, path))
    ids.add(JSON.parse((await one.answer()).text).id)
  }
  expect(seenByFastify()).toBe(1)
  expect(ids.size).toBe(1)
  expect(await payloads()).toEqual([1])
})

/** With the empty line. */
function lengthOfHead(text: string): number {
  return text.indexOf("\r\n\r\n") + 4
}

test("a request may come in any pieces", async () => {
  const { client, request, payloads, seenByFastify } = await start()
  const body = JSON.stringify({ eventType: "a", payload: { n: 1, long: "x".repeat(100_000) } })
  const text = request(1, { body })
  const bodyAt = lengthOfHead(text)
  const one = client()
  for (const cuts of [[30], [bodyAt], [bodyAt + 5], [30, bodyAt - 2, bodyAt + 50_000]]) {
    await one.write(...cuts.map((cut, i) => text.slice(cuts[i - 1] ?? 0, cut)), text.slice(cuts.at(-1)))
    expect(await one.answer()).toMatchObject({ status: 202 })
  }
  expect(seenByFastify()).toBe(0)
  expect(await payloads()).toEqual([1, 1, 1, 1])
})

test("requests that do not wait for their answers are answered in their order", async () => {
  const { wrapStore, reached, open } = gated()
  const { client, request, payloads, seenByFastify } = await start({ wrapStore })
  const one = client()
  await one.write(request(1) + request(2) + request(3, {}, FASTIFY))
  await reached
  await one.write(request(4))
  open()
  for (const n of [1, 2, 3, 4]) expect(JSON.parse((await one.answer()).text).payload).toEqual({ n })
  expect((await payloads()).sort()).toEqual([1, 2, 3, 4])
  expect(seenByFastify()).toBe(1)
})

test("a client that ends an idle connection is not kept", async () => {
  const { client, request } = await start()
  const one = client()
  await one.write(request(1))
  await one.answer()
  one.socket.end()
  expect(await one.rest()).toBe("")
})

test("a client that goes away meanwhile has sent the message all the same, and gives the place back", async () => {
  const { wrapStore, reached, open } = gated()
  const { client, request, payloads } = await start({ wrapStore, maxRequests: 1 })
  const gone = client()
  await gone.write(request(1))
  await reached
  gone.socket.destroy()
  const turnedAway = client()
  await turnedAway.write(request(2))
  expect(await turnedAway.answer()).toMatchObject({ status: 503, headers: { "retry-after": "1" } })
  open()
  await expect.poll(payloads).toEqual([1])
  // The place is given back a moment after the message is stored.
  const sent = async () => {
    await turnedAway.write(request(3))
    return (await turnedAway.answer()).status
  }
  await expect.poll(sent).toBe(202)
})

test("a store that does not answer in time is told of, and the place is kept as long as it works", async () => {
  const { wrapStore, open } = gated()
  const timeouts = { headersMs: 10_000, requestMs: 10_000, handlerMs: 50 }
  const { client, request, seenByFastify } = await start({ wrapStore, timeouts, maxRequests: 1 })
  const one = client()
  await one.write(request(1))
  const late = await one.answer()
  expect(late).toMatchObject({ status: 503, headers: { "retry-after": "1" } })
  expect(JSON.parse(late.text).code).toBe("timeout")
  await one.write(request(2))
  expect(JSON.parse((await one.answer()).text).code).toBe("overloaded")
  expect(seenByFastify()).toBe(0)
  open()
})

test("a body counts when it is announced, until its client goes away", async () => {
  const { client, request, payloads } = await start({ maxBodyBytes: 1000 })
  const long = request(1, { body: JSON.stringify({ eventType: "a", payload: { n: 1, x: "x".repeat(600) } }) })
  const half = client()
  await half.write(long.slice(0, lengthOfHead(long)))
  const one = client()
  await one.write(long)
  const refused = await one.answer()
  expect(refused).toMatchObject({ status: 503, headers: { "retry-after": "1" } })
  expect(JSON.parse(refused.text).code).toBe("overloaded")
  await one.write(request(2))
  expect(await one.answer()).toMatchObject({ status: 202 })
  const peer = await half.peer
  half.socket.destroy()
  if (!peer.closed) await once(peer, "close")
  await one.write(long)
  expect(await one.answer()).toMatchObject({ status: 202 })
  expect(await payloads()).toEqual([2, 1])
})

test("a client that says nothing, or a head without its body, is told so", async () => {
  const timeouts = { headersMs: 100, requestMs: 100, handlerMs: 10_000 }
  const { client, request } = await start({ timeouts })
  const headOf = (text: string) => text.slice(0, lengthOfHead(text))
  expect(await client().answer()).toMatchObject({ status: 408 })
  const half = client()
  await half.write(headOf(request(1)))
  expect(await half.answer()).toMatchObject({ status: 408 })
  const later = client()
  await later.write(request(2))
  expect(await later.answer()).toMatchObject({ status: 202 })
  await later.write(headOf(request(3)))
  expect(await later.answer()).toMatchObject({ status: 408 })
})

test("an unknown key is refused before its body has come", async () => {
  const { client, request, seenByFastify } = await start()
  const unknown = client()
  await unknown.write(request(1, { Authorization: "Bearer ph_1_2", "Content-Length": "900000" }))
  expect(await unknown.answer()).toMatchObject({ status: 401 })
  expect(seenByFastify()).toBe(0)
})

test("a client that does not read its answers is not read either", async () => {
  const { client, request } = await start()
  const deaf = client()
  deaf.socket.pause()
  const text = request(1, { body: JSON.stringify({ eventType: "a", payload: "x".repeat(900_000) }) })
  const peer = await deaf.peer
  while (!peer.isPaused()) {
    const { bytesWritten } = peer
    deaf.socket.write(text)
    await until(() => peer.bytesWritten > bytesWritten || peer.isPaused())
  }
  expect(peer.writableLength).toBeLessThan(3_000_000)
})

test("a stop ends idle connections at once, and the others with their answers", async () => {
  const { wrapStore, reached, open } = gated()
  const { client, request, server, seenByFastify } = await start({ wrapStore, closeTimeoutMs: 100_000 })
  const silent = client()
  await silent.peer
  const idle = client()
  await idle.write(request(0, { Authorization: "Basic x" }))
  await idle.answer()
  const half = client()
  const [first, second] = [request(1).slice(0, -3), request(1).slice(-3)]
  await half.write(first)
  const busy = client()
  await busy.write(request(2))
  await reached
  const closed = server.app.close()
  await Promise.all([silent.rest(), idle.rest()])
  open()
  expect(await busy.answer()).toMatchObject({ status: 202, headers: { connection: "close" } })
  expect(await busy.rest()).toBe("")
  half.socket.write(second)
  expect(await half.answer()).toMatchObject({ status: 202, headers: { connection: "close" } })
  await closed
  expect(seenByFastify()).toBe(0)
})

test("a request that comes while the server stops is refused, and not worked on", async () => {
  const { wrapStore, reached, open, accepted } = gated()
  const { client, request, server, stopping } = await start({ wrapStore })
  const busy = client()
  await busy.write(request(1))
  await reached
  const late = client()
  // Its head makes the connection busy, so that the stop does not end it.
  await late.write(request(2).slice(0, 30))
  const closed = server.app.close()
  await stopping
  await late.write(request(2).slice(30))
  const refused = await late.answer()
  expect(refused).toMatchObject({ status: 503, headers: { connection: "close", "retry-after": "1" } })
  expect(JSON.parse(refused.text).code).toBe("closing")
  open()
  expect(await busy.answer()).toMatchObject({ status: 202 })
  await closed
  expect(accepted()).toBe(1)
})

test("a stop cuts off a request that is not answered in its time", async () => {
  const { wrapStore, reached } = gated()
  const { client, request, server } = await start({ wrapStore, closeTimeoutMs: 50 })
  const busy = client()
  await busy.write(request(1))
  await reached
  void server.app.close()
  expect(await busy.rest()).toBe("")
})

test("with the log at info there is a line for each, as Fastify's requests have", async () => {
  const lines: object[] = []
  const { pino } = await import("pino")
  const write = (line: string) => void (line.includes('"msg":"request"') && lines.push(JSON.parse(line)))
  const logger = pino({ level: "info" }, { write })
  const { client, request } = await start({ logger })
  const one = client()
  await one.write(request(1, { "Svix-Req-Id": "a" }))
  await one.answer()
  await one.write(request(1, { "Svix-Req-Id": "b" }, FASTIFY))
  await one.answer()
  await expect.poll(() => lines.length).toBe(2)
  const [first, second] = lines.map((line) => ({ ...line, time: 0, durationMs: 0, requestId: "", url: "" }))
  expect(first).toEqual(second)
  expect(lines).toMatchObject([
    { requestId: "a", url: "/api/v1/app/acme/msg" },
    { requestId: "b", url: "/api/v1/app/acme/msg?with_content=true" },
  ])
})
