/** Forwarding to a local program: requests as they came, its answers as outcomes, and a program that is down, slow or rude. */
import { createServer, type RequestListener } from "node:http"
import { createServer as createTlsServer } from "node:https"
import { type AddressInfo, createServer as createTcpServer, type Socket } from "node:net"
import { expect, onTestFinished, test } from "vitest"
import type { AckFrame, EventFrame } from "../../src/core/relay-protocol.ts"
import { Authority } from "../egress/certificates.ts"
import { AgentBench } from "../support/agents.ts"
import { eventFrame, FakeRelay } from "../support/fake-relay.ts"
import { Receiver } from "../support/receiver.ts"

/** An agent that forwards to this URL, and a function that sends it an event and waits for the acknowledgement. */
async function forwarding(forward: string) {
  const relay = await FakeRelay.start()
  const bench = new AgentBench(relay, { forward, maxFrameBytes: 100_663_296 })
  const link = await relay.link()
  await bench.report("connected")
  let sent = 0
  const event = (fields: Partial<EventFrame> = {}): Promise<AckFrame> => {
    link.event(fields)
    return link.ack(++sent)
  }
  return { bench, link, event }
}

async function receiver(): Promise<Receiver> {
  const one = await Receiver.start()
  onTestFinished(() => one.close())
  return one
}

/** A program that answers by hand. */
async function program(answer: RequestListener): Promise<string> {
  const server = createServer(answer)
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** A program that speaks no HTTP, or breaks off. */
async function tcpProgram(connected: (socket: Socket) => void): Promise<string> {
  const sockets: Socket[] = []
  const server = createTcpServer((socket) => {
    sockets.push(socket.on("error", () => {}))
    connected(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

test("method, path, query, headers and body arrive as they came, with the ids of the delivery", async () => {
  const local = await receiver()
  const { bench, event } = await forwarding(local.url("/hooks/"))
  const { timers } = bench.clock
  const frame = eventFrame({
    method: "PATCH",
    path: "/a%20b/",
    query: "?c=%2F&d",
    headers: [
      ["X-GitHub-Event", "push"],
      ["x-twice", "1"],
      ["X-Twice", "2"],
      ["Host", "hooks.example.com"],
      ["Connection", "keep-alive"],
    ],
    body: '{"naïve":true}',
    attempt: 2,
  })
  expect(await event(frame)).toMatchObject({ result: "success", status: 200 })
  expect(bench.clock.timers).toBe(timers)
  const [got] = local.requests
  expect(got!.path).toBe("/hooks/a%20b/?c=%2F&d")
  expect(got!.body.toString()).toBe('{"naïve":true}')
  expect(got!.rawHeaders).toEqual([
    ...["host", new URL(local.url()).host],
    ...["X-GitHub-Event", "push", "x-twice", "1", "X-Twice", "2"],
    ...["posthorn-message-id", frame.messageId, "posthorn-delivery-id", frame.id, "posthorn-attempt", "2"],
    ...["content-length", "15", "connection", "close"],
  ])
})

test("every method is forwarded but CONNECT, with and without a body", async () => {
  const methods: string[] = []
  const url = await program((request, response) => {
    methods.push(request.method!)
    response.end("ok")
  })
  const { event } = await forwarding(url)
  const all = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PURGE"]
  for (const method of all)
    for (const body of ["", "x"]) expect(await event({ method, body })).toMatchObject({ result: "success" })
  expect(methods).toEqual(all.flatMap((method) => [method, method]))
  expect(await event({ method: "CONNECT" })).toMatchObject({
    result: "permanent",
    error: "CONNECT is not forwarded",
  })
})

test("binary and large bodies are exact", async () => {
  const local = await receiver()
  const { event } = await forwarding(local.url("/"))
  const bytes = Buffer.from(Array.from({ length: 256 }, (_, i) => i))
  const large = Buffer.alloc(8 * 1024 * 1024, bytes)
  for (const body of [bytes, large, Buffer.from([0xff]), Buffer.from("\ufeff{}")]) {
    await event({ base64: body.toString("base64") })
    expect(local.requests.at(-1)!.body.equals(body)).toBe(true)
  }
  await event({ body: "\ufeffnaïve 😀\0" })
  expect(local.requests.at(-1)!.body.toString()).toBe("\ufeffnaïve 😀\0")
})

test.each([
  [200, "success"],
  [204, "success"],
  [302, "transient"],
  [404, "permanent"],
  [410, "permanent"],
  [408, "transient"],
  [425, "transient"],
  [429, "transient"],
  [500, "transient"],
  [503, "transient"],
])("the answer %i is %s", async (status, result) => {
  const url = await program((_request, response) => {
    response
      .writeHead(status, { location: "/elsewhere", "retry-after": "17" })
      .end(status === 204 ? "" : "because")
  })
  const { event } = await forwarding(url)
  expect(await event()).toMatchObject({
    result,
    status,
    error: null,
    retryAfter: result === "transient" ? 17 : null,
    response: status === 204 ? null : { body: "because" },
  })
})

test("a Retry-After that is a date is passed on in seconds", async () => {
  let at = ""
  const url = await program((_request, response) => response.writeHead(429, { "retry-after": at }).end())
  const { bench, event } = await forwarding(url)
  at = new Date(bench.clock.wallNow() + 90_000).toUTCString()
  expect(await event()).toMatchObject({ retryAfter: 90 })
  at = "soon"
  expect(await event()).toMatchObject({ retryAfter: null })
})

test("at most 64 KiB of a response are read, and bytes are passed on as base64", async () => {
  const { promise: left, resolve } = Promise.withResolvers<void>()
  const url = await program((request, response) => {
    // It never ends its answer.
    if (request.url === "/endless") response.on("close", resolve).write(Buffer.alloc(70_000, "a"))
    else response.end(Buffer.from([0xff, 0]))
  })
  const { event } = await forwarding(url)
  expect(await event({ path: "/endless" })).toMatchObject({
    result: "success",
    response: { body: "a".repeat(65_536), truncated: true },
  })
  await left
  expect((await event()).response).toEqual({ base64: "/wA=" })
})

test("a program that is down is a transient failure with a sentence", async () => {
  const { event } = await forwarding("http://127.0.0.1:1")
  expect(await event()).toMatchObject({
    result: "transient",
    status: null,
    error: "http://127.0.0.1:1 refused the connection",
  })
})

test.each([
  [
    "closes the connection at once",
    (socket: Socket) => socket.end(),
    "closed the connection without an answer",
  ],
  [
    "resets the connection",
    (socket: Socket) => void socket.once("data", () => socket.resetAndDestroy()),
    "closed the connection without an answer",
  ],
  [
    "breaks off its answer",
    (socket: Socket) =>
      void socket.once("data", () => socket.end("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhal")),
    "broke off its answer",
  ],
  [
    "speaks another protocol",
    (socket: Socket) => void socket.write("SSH-2.0-OpenSSH\r\n"),
    "cannot be used: HPE_INVALID_CONSTANT",
  ],
  [
    "switches protocols",
    (socket: Socket) =>
      void socket.once("data", () =>
        socket.write("HTTP/1.1 101 x\r\nupgrade: y\r\nconnection: upgrade\r\n\r\n"),
      ),
    "closed the connection without an answer",
  ],
])("a program that %s is a transient failure", async (_does, connected, error) => {
  const url = await tcpProgram(connected as (socket: Socket) => void)
  const { event } = await forwarding(url)
  expect(await event()).toMatchObject({ result: "transient", status: null, error: `${url} ${error}` })
})

test("a program that does not answer within the event's deadline is a transient failure", async () => {
  const { promise: asked, resolve } = Promise.withResolvers<void>()
  const url = await program((_request, response) => {
    // A slow body counts too.
    response.write("so far")
    resolve()
  })
  const { bench, link, event } = await forwarding(url)
  const ack = event({ deadline: 20_000 })
  await asked
  bench.clock.advance(19_999)
  await link.flushed()
  expect(link.acks).toEqual([])
  bench.clock.advance(1)
  expect(await ack).toMatchObject({ result: "transient", error: `${url} did not answer within 20 s` })
  expect(link.frames.filter(({ kind }) => kind === "working").length).toBeGreaterThan(0)
})

test("a path that leads out of the base is a permanent failure, and no request", async () => {
  const local = await receiver()
  const { event } = await forwarding(local.url("/hooks"))
  for (const path of ["/../admin", "/%2e%2e/admin"])
    expect(await event({ path })).toMatchObject({
      result: "permanent",
      status: null,
      error: `the path ${path} leads out of ${local.url("/hooks")}`,
    })
  expect(local.requests).toEqual([])
  await event({ path: "//evil.example/x" })
  expect(local.requests[0]!.path).toBe("/hooks/evil.example/x")
})

test("a program with a certificate that nobody trusts is a transient failure with a sentence", async () => {
  const certificate = new Authority().selfSigned("localhost", "IP:127.0.0.1")
  const server = createTlsServer(certificate, (_request, response) => response.end())
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  onTestFinished(() => void server.close())
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
  const { event } = await forwarding(url)
  expect((await event()).error).toBe(
    `the certificate of ${url} is refused: no authority that this machine trusts has signed it (DEPTH_ZERO_SELF_SIGNED_CERT); give its authority to this program with NODE_EXTRA_CA_CERTS=FILE`,
  )
})
