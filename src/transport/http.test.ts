/** Receivers that misbehave, as real sockets. */
import { createServer as createHttpServer } from "node:http"
import { type AddressInfo, createServer, type Socket } from "node:net"
import { expect, onTestFinished, test } from "vitest"
import { loopbackGuard } from "../../test/support/harness.ts"
import { toBuffer } from "../core/bytes.ts"
import { systemClock } from "../core/clock.ts"
import { HttpTransport } from "./http.ts"

async function rawReceiver(onRequest: (socket: Socket, chunk: Buffer) => void): Promise<string> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on("error", () => {})
    socket.once("data", (chunk) => onRequest(socket, chunk))
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`
}

function transport(): HttpTransport {
  const clock = systemClock()
  const made = new HttpTransport(clock, loopbackGuard(clock))
  onTestFinished(() => made.close())
  return made
}

const request = (url: string, timeoutMs = 5000) => ({
  endpointId: "ep_1",
  version: 1,
  url,
  headers: { "content-type": "text/plain" },
  body: Buffer.from("hello"),
  timeoutMs,
  connectTimeoutMs: 1000,
  tls: {},
})

test("a response comes back with its status, body and Retry-After", async () => {
  const url = await rawReceiver((socket) => {
    socket.write("HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n")
    socket.end("HTTP/1.1 429 Slow\r\nretry-after: 7\r\ncontent-length: 4\r\n\r\nwait")
  })
  expect(await transport().send(request(url))).toMatchObject({
    outcome: { kind: "response", status: 429, excerpt: "wait", retryAfter: "7" },
    responseStatus: 429,
    responseTruncated: false,
  })
})

test.each([301, 302, 303, 307, 308])("a redirect (%i) is the outcome and is not followed", async (status) => {
  let followed = false
  const elsewhere = await rawReceiver(() => {
    followed = true
  })
  const url = await rawReceiver(
    (socket) =>
      void socket.end(`HTTP/1.1 ${status} Go\r\nlocation: ${elsewhere}\r\ncontent-length: 0\r\n\r\n`),
  )
  expect((await transport().send(request(url))).outcome).toMatchObject({ kind: "response", status })
  expect(followed).toBe(false)
})

test("at most 64 KiB of a body are read, then the connection is dropped", async () => {
  let dropped = () => {}
  const gone = new Promise<void>((resolve) => {
    dropped = resolve
  })
  const url = await rawReceiver((socket) => {
    socket.on("close", dropped)
    socket.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
    const chunk = `10000\r\n${"x".repeat(65_536)}\r\n`
    const pour = () => {
      while (!socket.destroyed && socket.write(chunk)) {}
      socket.once("drain", pour)
    }
    pour()
  })
  const result = await transport().send(request(url))
  expect(result).toMatchObject({ outcome: { kind: "response", status: 200 }, responseTruncated: true })
  expect(result.responseBody).toHaveLength(65_536)
  await gone
})

test.each([
  ["never responds", () => {}],
  [
    "drips its body",
    (socket: Socket) => drip(socket, "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n", "x"),
  ],
  ["drips its headers", (socket: Socket) => drip(socket, "HTTP/1.1 200 OK\r\n", "x-a: b\r\n")],
  ["sends endless early hints", (socket: Socket) => drip(socket, "", "HTTP/1.1 103 Early Hints\r\n\r\n")],
])("a receiver that %s is cut off at the deadline", async (_what, onRequest) => {
  const url = await rawReceiver(onRequest)
  const startedAt = performance.now()
  expect((await transport().send(request(url, 300))).outcome).toEqual({ kind: "failure", cause: "timeout" })
  expect(performance.now() - startedAt).toBeLessThan(300 + 250)
})

function drip(socket: Socket, first: string, piece: string): void {
  if (first !== "") socket.write(first)
  const timer = setInterval(() => socket.write(piece), 20)
  socket.on("close", () => clearInterval(timer))
}

test("a connection refused, a reset and garbage each have their cause", async () => {
  const closed = createServer()
  await new Promise<void>((resolve) => closed.listen(0, "127.0.0.1", resolve))
  const { port } = closed.address() as AddressInfo
  await new Promise((resolve) => closed.close(resolve))
  const cause = async (url: string) => (await transport().send(request(url))).outcome
  expect(await cause(`http://127.0.0.1:${port}/`)).toEqual({ kind: "failure", cause: "connection_refused" })
  expect(await cause(await rawReceiver((socket) => void socket.resetAndDestroy()))).toEqual({
    kind: "failure",
    cause: "connection_reset",
  })
  expect(await cause(await rawReceiver((socket) => void socket.end("SMTP ready\r\n\r\n")))).toEqual({
    kind: "failure",
    cause: "invalid_response",
  })
  expect(await cause("http://does-not-exist.invalid/")).toEqual({ kind: "failure", cause: "dns_error" })
})

test.each([
  ["a switch of protocols", "101 Switching\r\nupgrade: websocket\r\nconnection: upgrade"],
  ["a switch of protocols to none", "101 Switching"],
  ["a status of 0", "000 None"],
  ["a status below 100", "099 Less"],
])("%s is an invalid response", async (_what, head) => {
  const url = await rawReceiver(
    (socket) => void socket.end(`HTTP/1.1 ${head}\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok`),
  )
  expect(await transport().send(request(url))).toMatchObject({
    outcome: { kind: "failure", cause: "invalid_response" },
    responseBody: null,
  })
})

test("a response whose lines end in LF alone is refused at once, without waiting for the connection to end", async () => {
  const url = await rawReceiver((socket) => void socket.write("HTTP/1.1 200 OK\ncontent-length: 2\n\nok"))
  expect((await transport().send(request(url, 20_000))).outcome).toEqual({
    kind: "failure",
    cause: "invalid_response",
  })
})

test("the location of a 304 is ignored", async () => {
  const url = await rawReceiver(
    (socket) => void socket.end("HTTP/1.1 304 Not Modified\r\nlocation: http://x.example/\r\n\r\n"),
  )
  expect((await transport().send(request(url))).outcome).toMatchObject({ status: 304, excerpt: "" })
})

test("a thousand interim responses are accepted, one more is too many", async () => {
  const url = await rawReceiver((socket) => {
    socket.write("HTTP/1.1 103 Early Hints\r\n\r\n".repeat(1001))
    socket.end("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
  })
  const few = await rawReceiver((socket) => {
    socket.write("HTTP/1.1 103 Early Hints\r\n\r\n".repeat(1000))
    socket.end("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
  })
  expect((await transport().send(request(url))).outcome).toEqual({
    kind: "failure",
    cause: "response_too_large",
  })
  expect((await transport().send(request(few))).outcome).toMatchObject({ kind: "response", status: 200 })
})

test("the limit of bytes is for each response, not for the connection", async () => {
  const hints = `HTTP/1.1 103 Early Hints\r\nx: ${"x".repeat(15_000)}\r\n\r\n`.repeat(20)
  const sockets = new Set<Socket>()
  const url = await rawReceiver((socket) => {
    const answer = () => socket.write(`${hints}HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n`)
    sockets.add(socket)
    answer()
    socket.on("data", answer)
  })
  const http = transport()
  for (let i = 0; i < 5; i++) {
    expect((await http.send(request(url))).outcome).toMatchObject({ kind: "response", status: 200 })
    // A connection is free for the next request in the turn after its response.
    await new Promise((resolve) => setImmediate(resolve))
  }
  expect(sockets.size).toBe(1)
})

test.each([
  ["ASCII", "hello", "hello"],
  ["other bytes", "h\xe9llo", Buffer.from("h\xe9llo", "latin1")],
])("a body shares no memory, so that it can be transferred to another thread: %s", async (_kind, sent, kept) => {
  const head = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n"
  const url = await rawReceiver((socket) => void socket.end(Buffer.from(head + sent, "latin1")))
  const { responseBody } = await transport().send(request(url))
  if (typeof responseBody !== "string") expect(responseBody?.buffer.byteLength).toBe(5)
  expect(typeof responseBody === "string" ? responseBody : toBuffer(responseBody!)).toEqual(kept)
})

test("no compressed response is asked for, whatever the endpoint's headers say", async () => {
  let head = ""
  const url = await rawReceiver((socket, chunk) => {
    head = chunk.toString("latin1")
    socket.end("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
  })
  const plain = request(url)
  await transport().send({ ...plain, headers: { ...plain.headers, "accept-encoding": "gzip" } })
  expect(head.match(/^accept-encoding: .*$/gim)).toEqual(["accept-encoding: identity"])
})

test("a request never waits on a connection whose response is not complete", async () => {
  const arrived: Socket[] = []
  const first = Promise.withResolvers<void>()
  const url = await rawReceiver((socket) => {
    socket.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n")
    // The body of the first response is held back; later responses are complete.
    if (arrived.length > 0) socket.write("ok")
    arrived.push(socket)
    first.resolve()
    socket.on("data", () => arrived.push(socket))
  })
  const http = transport()
  const held = http.send(request(url))
  await first.promise
  // Requests of other endpoints: after their responses, the head of the first response has been read.
  for (let i = 0; i < 2; i++) await http.send({ ...request(url), endpointId: `ep_other_${i}` })
  expect(await http.send(request(url))).toMatchObject({ responseBody: "ok" })
  expect(new Set(arrived).size).toBe(4)
  arrived[0]!.end("ok")
  // A success has no excerpt.
  expect(await held).toMatchObject({ responseBody: "ok", outcome: { excerpt: "" } })
})

test("headers beyond 16 KiB are refused", async () => {
  const url = await rawReceiver(
    (socket) => void socket.end(`HTTP/1.1 200 OK\r\nx-big: ${"x".repeat(40_000)}\r\n\r\n`),
  )
  expect((await transport().send(request(url))).outcome).toEqual({
    kind: "failure",
    cause: "response_too_large",
  })
})

test("control characters and broken UTF-8 in a body do not reach the excerpt", async () => {
  const url = await rawReceiver((socket) => {
    const body = Buffer.concat([
      Buffer.from("\u001b[31mred\u0007\r\n"),
      Buffer.from([0xff, 0xfe]),
      Buffer.from("\u202eend"),
    ])
    socket.write(`HTTP/1.1 500 No\r\ncontent-length: ${body.length}\r\n\r\n`)
    socket.end(body)
  })
  const { outcome } = await transport().send(request(url))
  expect(outcome).toMatchObject({ excerpt: expect.stringMatching(/^\[31mred \ufffd\ufffd end$/) })
})

test("an interruption ends requests in flight, and a connection is kept alive between requests", async () => {
  let connections = 0
  const server = createHttpServer((incoming, response) => {
    incoming.resume()
    if (incoming.url === "/fast") response.end("ok")
  })
  server.on("connection", () => connections++)
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const http = transport()
  for (let i = 0; i < 5; i++) await http.send(request(`${base}/fast`))
  // Two: a request right after a response finds its connection not yet free.
  expect(connections).toBeLessThanOrEqual(2)
  const hanging = http.send(request(`${base}/slow`))
  const arrived = new Promise((resolve) => server.once("request", resolve))
  await arrived
  http.interrupt()
  expect((await hanging).outcome).toEqual({ kind: "interrupted" })
})
