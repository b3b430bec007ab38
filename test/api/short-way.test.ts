/** Messages on the short way past the HTTP server, and everything that leaves it. */
import { once } from "node:events"
import type { Server } from "node:http"
import { type AddressInfo, connect, type Socket } from "node:net"
import { expect, onTestFinished, test } from "vitest"
import type { Store } from "../../src/store/store.ts"
import { ApiServer, type ApiServerOptions } from "./support/server.ts"

interface Answer {
  readonly status: number
  readonly reason: string
  readonly headers: { readonly [name: string]: string }
  readonly text: string
}

/** A client that writes what it is told to, in as many pieces, and reads answers one after the other. */
class RawClient {
  readonly socket: Socket
  /** The server's end of it. */
  readonly peer: Promise<Socket>
  #written = 0
  #received = ""
  #hasEnded = false

  constructor(server: Server) {
    const { port } = server.address() as AddressInfo
    this.socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true })
    this.peer = once(server, "connection").then(([peer]) => peer as Socket)
    this.socket.setNoDelay(true).setEncoding("latin1")
    this.socket.on("data", (text: string) => {
      this.#received += text
    })
    this.socket
      .on("error", () => {})
      .on("end", () => {
        this.#hasEnded = true
      })
    onTestFinished(() => void this.socket.destroy())
  }

  /** Each is read by itself: the next is written when it was. */
  async write(...pieces: readonly string[]): Promise<void> {
    const peer = await this.peer
    for (const piece of pieces) {
      this.socket.write(piece, "latin1")
      this.#written += piece.length
      await until(() => peer.bytesRead >= this.#written || peer.destroyed)
    }
  }

  async answer(): Promise<Answer> {
    for (;;) {
      const end = this.#received.indexOf("\r\n\r\n")
      const [first = "", ...lines] = this.#received.slice(0, end).split("\r\n")
      const pairs = lines.map((line) => line.split(/: (.*)/s, 2) as [string, string])
      const headers = Object.fromEntries(pairs.map(([name, value]) => [name.toLowerCase(), value]))
      const to = end + 4 + Number(headers["content-length"])
      if (end !== -1 && this.#received.length >= to) {
        const text = this.#received.slice(end + 4, to)
        this.#received = this.#received.slice(to)
        const [, status, ...reason] = first.split(" ")
        return { status: Number(status), reason: reason.join(" "), headers, text }
      }
      if (this.#hasEnded) throw new Error(`the server ended the connection after "${this.#received}"`)
      await Promise.race([once(this.socket, "data"), once(this.socket, "end")])
    }
  }

  /** What came after the last answer, when the server has ended the connection. */
  async rest(): Promise<string> {
    if (!this.#hasEnded) await once(this.socket, "end")
    return this.#received
  }
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setImmediate(resolve))
  // Whatever was read is then worked on.
  await new Promise((resolve) => setImmediate(resolve))
}

async function start(given: ApiServerOptions = {}) {
  const server = await ApiServer.start(given)
  await server.posthorn.applications.create({ uid: "acme", name: "Acme" })
  let ordinary = 0
  server.app.server.on("request", () => ordinary++)
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
  return { server, client, request, payloads, requests: () => ordinary }
}

test("messages never reach the HTTP server, and are answered as it would answer them", async () => {
  const { client, request, payloads, requests } = await start()
  const short = client()
  const answers: Answer[] = []
  for (let n = 0; n < 3; n++) {
    await short.write(request(n, { "Svix-Req-Id": "my-id" }))
    answers.push(await short.answer())
  }
  expect(requests()).toBe(0)
  const long = client()
  await long.write(request(3, { "Svix-Req-Id": "my-id" }, "msg?with_content=true"))
  const ordinary = await long.answer()
  expect(requests()).toBe(1)
  const comparable = ({ status, headers, text }: Answer) => {
    const { id, timestamp, payload, ...body } = JSON.parse(text)
    expect(headers["content-length"]).toBe(String(text.length))
    expect(new Date(headers.date!).toUTCString()).toBe(headers.date)
    return {
      status,
      body,
      headers: { ...headers, date: "" },
      types: [typeof id, typeof timestamp, typeof payload],
    }
  }
  expect(ordinary.status).toBe(202)
  for (const answer of answers) expect(comparable(answer)).toEqual(comparable(ordinary))
  expect(await payloads()).toEqual([0, 1, 2, 3])
})

test("texts beyond ASCII come back and are kept byte for byte", async () => {
  const { client, request, server } = await start()
  const payload = '{"text":"\u00fc\u20ac\u{1f600}"}'
  const short = client()
  await short.write(
    request(0, { body: Buffer.from(`{"eventType":"a","payload":${payload}}`).toString("latin1") }),
  )
  const { text } = await short.answer()
  expect(Buffer.from(text, "latin1").toString()).toContain(`"payload":${payload}`)
  const { data } = await server.posthorn.messages.list("acme")
  expect(Buffer.from(data[0]!.payload as Uint8Array).toString()).toBe(payload)
})

test("a key that was not seen before is waited for", async () => {
  const { client, request, server, requests } = await start()
  const { token } = await server.posthorn.keys.create({ name: "new", scope: "admin" })
  const short = client()
  await short.write(request(1, { Authorization: `bearer ${token}` }))
  expect(await short.answer()).toMatchObject({ status: 202 })
  expect(requests()).toBe(0)
})

/** A request as it is, and as it goes the ordinary way. */
const WAYS = ["msg", "msg?with_content=true"]

test.each<[string, { readonly [name: string]: string | null }, number]>([
  ["a key that nobody has", { Authorization: "Bearer ph_1_2" }, 401],
  ["what is no key", { Authorization: "Basic x" }, 401],
  ["no JSON", { body: "{" }, 422],
  ["nothing", { body: "" }, 422],
  ["a field that nobody knows", { body: '{"eventType":"a","payload":{},"evenTid":"x"}' }, 422],
  ["no event type", { body: '{"payload":{}}' }, 422],
  ["no payload", { body: '{"eventType":"a"}' }, 422],
  ["what the library refuses", { body: '{"eventType":"a","payload":{},"maxAttempts":0}' }, 422],
  ["an empty idempotency key", { "Idempotency-Key": "" }, 422],
])("%s is refused in the same words on both ways", async (_what, changes, status) => {
  const { client, request, payloads, requests } = await start()
  const told: object[] = []
  for (const way of WAYS) {
    const short = client()
    await short.write(request(2, { "Svix-Req-Id": "mine", ...changes }, way))
    const { headers, ...answer } = await short.answer()
    // The framework ends some connections with such an answer.
    const { date: _date, connection: _connection, "keep-alive": _keepAlive, ...same } = headers
    told.push({ ...answer, same })
  }
  expect(told[0]).toMatchObject({ status })
  expect(told[0]).toEqual(told[1])
  expect(requests()).toBe(1)
  expect(await payloads()).toEqual([])
})

test.each<[string, { readonly [name: string]: string | null }, number]>([
  ["no key", { Authorization: null }, 401],
  ["another type of content", { "Content-Type": "text/plain" }, 415],
  ["a packed body", { "Content-Encoding": "gzip" }, 415],
  ["a body that is too large", { "Content-Length": "99999999" }, 413],
])("%s goes to the HTTP server, and what follows on the connection too", async (_what, changes, status) => {
  const { client, request, payloads, requests } = await start()
  const short = client()
  await short.write(request(1))
  expect(await short.answer()).toMatchObject({ status: 202 })
  expect(requests()).toBe(0)
  await short.write(request(2, changes))
  const refused = await short.answer()
  expect(refused.status).toBe(status)
  expect(JSON.parse(refused.text)).toHaveProperty("detail")
  expect(requests()).toBe(1)
  if (status === 401) {
    await short.write(request(3))
    expect(await short.answer()).toMatchObject({ status: 202 })
    expect(requests()).toBe(2)
  }
  expect(await payloads()).toEqual(status === 401 ? [1, 3] : [1])
})

test("a key beyond ASCII is the same on both ways", async () => {
  const { client, request, payloads } = await start()
  const ids: string[] = []
  for (const way of WAYS) {
    const short = client()
    // In UTF-8 it ends in A0, which is a space to some.
    await short.write(request(1, { "Idempotency-Key": Buffer.from("voilà").toString("latin1") }, way))
    ids.push(JSON.parse((await short.answer()).text).id)
  }
  expect(ids[0]).toBe(ids[1])
  expect(await payloads()).toEqual([1])
})

test("a key that cannot be looked up in time is told of, and keeps its place as long as it is looked for", async () => {
  const opened = Promise.withResolvers<void>()
  const wrapStore = (store: Store): Store =>
    withMethod(store, "getEntry", async (...args) => {
      await opened.promise
      return store.getEntry(...args)
    })
  const timeouts = { headersMs: 10_000, requestMs: 10_000, handlerMs: 50 }
  const { client, request, requests } = await start({ wrapStore, timeouts, maxRequests: 1 })
  for (const code of ["timeout", "overloaded"]) {
    const short = client()
    await short.write(request(1))
    const late = await short.answer()
    expect(late).toMatchObject({ status: 503, headers: { "retry-after": "1" } })
    expect(JSON.parse(late.text).code).toBe(code)
  }
  expect(requests()).toBe(0)
  opened.resolve()
})

test.each<[string, string]>([
  ["reads only", "read"],
  ["is one application's", "application"],
])("a key that %s cannot send, on either way", async (_what, scope) => {
  const { client, request, server, payloads } = await start()
  const { id } = await server.posthorn.applications.get("acme")
  const { token } = await server.posthorn.keys.create({
    name: "weak",
    scope: scope as "read" | "application",
    ...(scope === "application" ? { appId: id } : {}),
  })
  const short = client()
  for (let n = 0; n < 2; n++) {
    await short.write(request(n, { Authorization: `Bearer ${token}` }))
    expect(await short.answer()).toMatchObject({ status: 403, reason: "Forbidden" })
  }
  expect(await payloads()).toEqual([])
})

test("what the store refuses is answered as on the ordinary way", async () => {
  const { client, request, requests } = await start()
  const short = client()
  const there = request(1).replace("/acme/", "/nobody/")
  for (const [text, way] of [
    [there, 0],
    [there.replace("/msg HTTP", "/msg?with_content=true HTTP"), 1],
  ] as const) {
    await short.write(text)
    const answer = await short.answer()
    expect(answer.status).toBe(404)
    expect(answer.headers["content-type"]).toBe("application/json; charset=utf-8")
    expect(JSON.parse(answer.text)).toEqual({
      code: "not_found",
      detail: 'Entity not found: there is no application "nobody"',
    })
    expect(requests()).toBe(way)
  }
})

test("the same idempotency key gets the same answer, on whichever way", async () => {
  const { client, request, payloads, requests } = await start()
  const short = client()
  const ids = new Set<string>()
  for (const path of ["msg", "msg", "msg?with_content=true"]) {
    await short.write(request(1, { "Idempotency-Key": "k" }, path))
    ids.add(JSON.parse((await short.answer()).text).id)
  }
  expect(requests()).toBe(1)
  expect(ids.size).toBe(1)
  expect(await payloads()).toEqual([1])
})

/** With the empty line. */
function lengthOfHead(text: string): number {
  return text.indexOf("\r\n\r\n") + 4
}

test("a request in two pieces stays on the short way; in more, or with its head cut, it does not", async () => {
  const { client, request, payloads, requests } = await start()
  const text = request(1)
  const body = lengthOfHead(text)
  const short = client()
  for (const cut of [body, body + 5]) {
    await short.write(text.slice(0, cut), text.slice(cut))
    expect(await short.answer()).toMatchObject({ status: 202 })
    expect(requests()).toBe(0)
  }
  await short.write(text.slice(0, body), text.slice(body, -3), text.slice(-3))
  expect(await short.answer()).toMatchObject({ status: 202 })
  expect(requests()).toBe(1)
  const other = client()
  await other.write(text.slice(0, 30), text.slice(30))
  expect(await other.answer()).toMatchObject({ status: 202 })
  expect(requests()).toBe(2)
  expect(await payloads()).toEqual([1, 1, 1, 1])
})

test("of a long request that is cut, the head alone stays on the short way", async () => {
  const { client, request, payloads, requests } = await start()
  const body = JSON.stringify({ eventType: "a", payload: { n: 1, long: "x".repeat(20_000) } })
  const text = request(1, { body })
  const cut = lengthOfHead(text)
  const short = client()
  await short.write(text.slice(0, cut), text.slice(cut))
  expect(await short.answer()).toMatchObject({ status: 202 })
  expect(requests()).toBe(0)
  await short.write(text.slice(0, cut + 100), text.slice(cut + 100))
  expect(await short.answer()).toMatchObject({ status: 202 })
  expect(requests()).toBe(1)
  expect(await payloads()).toEqual([1, 1])
})

test("requests that do not wait for their answers are answered in their order", async () => {
  const { client, request, payloads, requests } = await start()
  const together = client()
  await together.write(request(1) + request(2) + request(3))
  const apart = client()
  apart.socket.write(request(4))
  await together.answer()
  apart.socket.write(request(5))
  apart.socket.write(request(6))
  for (const n of [2, 3]) expect(JSON.parse((await together.answer()).text).payload).toEqual({ n })
  for (const n of [4, 5, 6]) expect(JSON.parse((await apart.answer()).text).payload).toEqual({ n })
  expect((await payloads()).sort()).toEqual([1, 2, 3, 4, 5, 6])
  expect(requests()).toBeGreaterThanOrEqual(3)
})

function withMethod<N extends keyof Store>(store: Store, name: N, method: Store[N]): Store {
  return new Proxy(store, {
    get: (target, asked) => {
      if (asked === name) return method
      const value = Reflect.get(target, asked)
      return typeof value === "function" ? value.bind(target) : value
    },
  })
}

/** A store that takes messages when it is told to. */
function gated() {
  const opened = Promise.withResolvers<void>()
  const reached = Promise.withResolvers<void>()
  const wrapStore = (store: Store): Store =>
    withMethod(store, "accept", async (...args) => {
      reached.resolve()
      await opened.promise
      return store.accept(...args)
    })
  return { wrapStore, reached: reached.promise, open: opened.resolve }
}

test("what comes while a request is under way goes to the HTTP server behind its answer", async () => {
  const { wrapStore, reached, open } = gated()
  const { client, request, payloads, requests } = await start({ wrapStore })
  const short = client()
  await short.write(request(1))
  await reached
  await short.write(request(2), request(3))
  expect(requests()).toBe(0)
  open()
  for (const n of [1, 2, 3]) expect(JSON.parse((await short.answer()).text).payload).toEqual({ n })
  expect(requests()).toBe(2)
  expect(await payloads()).toEqual([1, 2, 3])
})

test("whoever has ended its side gets the answer, and then the end", async () => {
  const { wrapStore, reached, open } = gated()
  const { client, request } = await start({ wrapStore })
  const short = client()
  short.socket.end(request(1))
  await reached
  const peer = await short.peer
  await until(() => peer.readableEnded)
  open()
  const answer = await short.answer()
  expect(answer).toMatchObject({ status: 202, headers: { connection: "close" } })
  expect(await short.rest()).toBe("")
})

test("an end behind a request that came too early is for the HTTP server as well", async () => {
  const { wrapStore, reached, open } = gated()
  const { client, request, requests } = await start({ wrapStore })
  const short = client()
  await short.write(request(1))
  await reached
  await short.write(request(2))
  short.socket.end()
  open()
  expect(JSON.parse((await short.answer()).text).payload).toEqual({ n: 1 })
  // Which answers nobody who has ended before.
  await short.rest()
  expect(requests()).toBe(1)
})

test("whoever ends an idle connection is not kept", async () => {
  const { client, request } = await start()
  const short = client()
  await short.write(request(1))
  await short.answer()
  short.socket.end()
  expect(await short.rest()).toBe("")
})

test("whoever goes away meanwhile has sent the message all the same, and gives the place back", async () => {
  const { wrapStore, reached, open } = gated()
  const { client, request, payloads } = await start({ wrapStore, maxRequests: 1 })
  const short = client()
  await short.write(request(1))
  await reached
  short.socket.destroy()
  const turnedAway = client()
  await turnedAway.write(request(2))
  expect(await turnedAway.answer()).toMatchObject({ status: 503, headers: { "retry-after": "1" } })
  open()
  await expect.poll(payloads).toEqual([1])
  await turnedAway.write(request(3))
  expect(await turnedAway.answer()).toMatchObject({ status: 202 })
})

test("a store that does not answer in time is told of, and the place is kept as long as it works", async () => {
  const { wrapStore, open } = gated()
  const timeouts = { headersMs: 10_000, requestMs: 10_000, handlerMs: 50 }
  const { client, request, requests } = await start({ wrapStore, timeouts, maxRequests: 1 })
  const short = client()
  await short.write(request(1))
  const late = await short.answer()
  expect(late).toMatchObject({ status: 503, headers: { "retry-after": "1" } })
  expect(JSON.parse(late.text).code).toBe("timeout")
  expect(requests()).toBe(0)
  await short.write(request(2))
  expect(JSON.parse((await short.answer()).text).code).toBe("overloaded")
  open()
})

test("bodies of all ways share the bytes that there are for them", async () => {
  const { client, request, requests } = await start({ maxBodyBytes: 100 })
  const short = client()
  await short.write(request(1))
  expect(await short.answer()).toMatchObject({ status: 202 })
  await short.write(request(2, { body: JSON.stringify({ eventType: "a", payload: "x".repeat(100) }) }))
  expect(await short.answer()).toMatchObject({ status: 503 })
  await short.write(request(3))
  expect(await short.answer()).toMatchObject({ status: 202 })
  expect(requests()).toBe(0)
})

test("whoever says nothing or only a head is told so by the HTTP server, with the first request and later", async () => {
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

test("a part of a long body is not kept: the HTTP server refuses whom it does not know before the rest has come", async () => {
  const timeouts = { headersMs: 60_000, requestMs: 60_000, handlerMs: 60_000 }
  const { client, request, requests } = await start({ timeouts })
  const unknown = client()
  await unknown.write(request(1, { Authorization: "Bearer ph_1_2", "Content-Length": "900000" }))
  expect(await unknown.answer()).toMatchObject({ status: 401 })
  expect(requests()).toBe(1)
})

test("whoever does not read its answers becomes the HTTP server's", async () => {
  const { client, request, requests } = await start()
  const deaf = client()
  deaf.socket.pause()
  const text = request(1, { body: JSON.stringify({ eventType: "a", payload: "x".repeat(50_000) }) })
  const peer = await deaf.peer
  // With each answer written before the next request.
  while (requests() === 0) {
    const { bytesWritten } = peer
    deaf.socket.write(text)
    await until(() => peer.bytesWritten > bytesWritten || requests() > 0)
  }
  expect(peer.writableLength).toBeGreaterThan(0)
})

test("a stop ends idle connections at once, and the others with their answers", async () => {
  const { wrapStore, reached, open } = gated()
  const { client, request, server } = await start({ wrapStore, closeTimeoutMs: 100_000 })
  const idle = client()
  await once(idle.socket, "connect")
  const half = client()
  const [first, second] = [request(1).slice(0, -3), request(1).slice(-3)]
  await half.write(first)
  const busy = client()
  await busy.write(request(2))
  await reached
  const closed = server.app.close()
  await idle.rest()
  open()
  expect(await busy.answer()).toMatchObject({ status: 202, headers: { connection: "close" } })
  expect(await busy.rest()).toBe("")
  half.socket.write(second)
  expect(await half.answer()).toMatchObject({ status: 503 })
  await closed
})

test("a request that comes in while a stop sends its connection away is not worked on: nobody would hear of it", async () => {
  let accepted = 0
  const wrapStore = (store: Store): Store =>
    withMethod(store, "accept", (...args) => {
      accepted++
      return store.accept(...args)
    })
  const { client, request, server } = await start({ wrapStore })
  const idle = client()
  await idle.write(request(1))
  await idle.answer()
  const peer = await idle.peer
  const { bytesRead } = peer
  const sendAway = peer.destroySoon.bind(peer)
  // It takes a while, as with an answer that is still on its way.
  peer.destroySoon = () => void idle.write(request(2)).then(sendAway)
  await server.app.close()
  expect(peer.bytesRead).toBe(2 * bytesRead)
  expect(accepted).toBe(1)
})

test("a stop cuts off who is still there after its time", async () => {
  const { wrapStore, reached } = gated()
  const { client, request, server } = await start({ wrapStore, closeTimeoutMs: 50 })
  const busy = client()
  await busy.write(request(1))
  await reached
  void server.app.close()
  expect(await busy.rest()).toBe("")
})

test("with the log at info there is a line for each, as for every request", async () => {
  const lines: object[] = []
  const { pino } = await import("pino")
  const write = (line: string) => void (line.includes('"msg":"request"') && lines.push(JSON.parse(line)))
  const logger = pino({ level: "info" }, { write })
  const { client, request } = await start({ logger })
  const short = client()
  await short.write(request(1, { "Svix-Req-Id": "a" }))
  await short.answer()
  await short.write(request(1, { "Svix-Req-Id": "b" }, "msg?with_content=true"))
  await short.answer()
  await expect.poll(() => lines.length).toBe(2)
  const [one, two] = lines.map((line) => ({ ...line, time: 0, durationMs: 0, requestId: "", url: "" }))
  expect(one).toEqual(two)
  expect(lines).toMatchObject([
    { requestId: "a", url: "/api/v1/app/acme/msg" },
    { requestId: "b", url: "/api/v1/app/acme/msg?with_content=true" },
  ])
})
