/** Which connection a request uses, and when that connection is reused or closed. */
import { type AddressInfo, createServer, type Socket } from "node:net"
import { createServer as createTlsServer, type TLSSocket } from "node:tls"
import { describe, expect, onTestFinished, test } from "vitest"
import { Authority } from "../../test/egress/certificates.ts"
import { TestClock } from "../../test/support/clock.ts"
import { loopbackGuard } from "../../test/support/harness.ts"
import { HttpTransport } from "./http.ts"
import type { OutboundRequest, WebhookHead } from "./transport.ts"

const ANSWER = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
const DELIVERED = { outcome: { kind: "response", status: 200 } }
const WEBHOOK: WebhookHead = {
  contentType: "text/plain",
  messageId: "msg_1",
  timestampSeconds: 1,
  signature: "v1,",
  authorization: null,
  traceparent: null,
  passedOn: [],
  delivery: { id: "dlv_1", attemptCount: 0, manual: false, eventType: "a", receivedAt: 0, inbound: null },
}

interface Visit {
  readonly socket: Socket
  readonly connection: number
  readonly head: string
}

/** A receiver that responds when the test says so, and records the connection of each request. */
class Receiver {
  readonly visits: Visit[] = []
  readonly server = createServer((socket) => this.#connected(socket))
  #connections = 0
  #onVisit = () => {}
  respondsAtOnce = false

  static async start(port = 0): Promise<Receiver> {
    const receiver = new Receiver()
    await new Promise<void>((resolve) => receiver.server.listen(port, "127.0.0.1", resolve))
    onTestFinished(() => {
      for (const { socket } of receiver.visits) socket.destroy()
      receiver.server.close()
    })
    return receiver
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port
  }

  #connected(socket: Socket): void {
    const connection = ++this.#connections
    socket.on("error", () => {})
    socket.on("data", (bytes) => {
      this.visits.push({ socket, connection, head: bytes.toString("latin1") })
      if (this.respondsAtOnce) socket.write(ANSWER)
      this.#onVisit()
    })
  }

  async hasSeen(requests: number): Promise<void> {
    while (this.visits.length < requests)
      await new Promise<void>((resolve) => {
        this.#onVisit = resolve
      })
  }

  get connections(): number[] {
    return this.visits.map(({ connection }) => connection)
  }
}

function start() {
  const clock = new TestClock()
  const transport = new HttpTransport(clock, loopbackGuard(clock))
  onTestFinished(() => transport.close())
  const send = (port: number, more: Partial<OutboundRequest> = {}) =>
    transport.send({
      endpointId: "ep_1",
      version: 1,
      url: `http://127.0.0.1:${port}/hook`,
      headers: {},
      body: Buffer.from("hello"),
      timeoutMs: 5000,
      connectTimeoutMs: 1000,
      tls: {},
      ...more,
    })
  return { clock, transport, send }
}

/** A connection is free for the next request in the turn after its response. */
const nextTurn = () => new Promise((resolve) => setImmediate(resolve))
/** Within three seconds: after four seconds an idle connection would be closed anyway. */
const closed = (socket: Socket) =>
  new Promise<void>((resolve, reject) => {
    const late = setTimeout(() => reject(new Error("the connection was kept")), 3000)
    socket.once("close", () => {
      clearTimeout(late)
      resolve()
    })
  })

test("concurrent requests have a connection each, and later requests reuse the connection that was freed last", async () => {
  const { send } = start()
  const receiver = await Receiver.start()
  const together: ReturnType<typeof send>[] = []
  for (let i = 1; i <= 3; i++) {
    together.push(send(receiver.port))
    await receiver.hasSeen(i)
  }
  for (const i of [0, 2, 1]) {
    receiver.visits[i]!.socket.write(ANSWER)
    expect(await together[i]).toMatchObject(DELIVERED)
    await nextTurn()
  }
  receiver.respondsAtOnce = true
  for (let i = 0; i < 3; i++) {
    expect(await send(receiver.port)).toMatchObject(DELIVERED)
    await nextTurn()
  }
  expect(receiver.connections).toEqual([1, 2, 3, 2, 2, 2])
})

test("each phase of a request is timed; a reused connection has only the time to the first byte", async () => {
  const { clock, send } = start()
  const receiver = await Receiver.start()
  const first = send(receiver.port)
  await receiver.hasSeen(1)
  clock.advance(40)
  receiver.visits[0]!.socket.write(ANSWER)
  expect((await first).timing).toMatchObject({ dnsMs: 0, connectMs: 0, tlsMs: null, firstByteMs: 40 })
  await nextTurn()
  const second = send(receiver.port)
  await receiver.hasSeen(2)
  clock.advance(7)
  receiver.visits[1]!.socket.write(ANSWER)
  expect((await second).timing).toMatchObject({ dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: 7 })
  await nextTurn()
  const third = send(receiver.port)
  await receiver.hasSeen(3)
  clock.advance(9)
  receiver.visits[2]!.socket.end()
  await receiver.hasSeen(4)
  clock.advance(3)
  receiver.visits[3]!.socket.write(ANSWER)
  expect((await third).timing).toMatchObject({ dnsMs: 0, connectMs: 0, firstByteMs: 3 })
})

test.each<[string, (stage: ReturnType<typeof start>) => void, number]>([
  ["was forgotten", ({ transport }) => transport.forget("ep_1"), 1],
  ["has changed", () => {}, 2],
  ["was used for five minutes", ({ clock }) => clock.advance(300_000), 1],
])("the connections of an endpoint that %s are closed, after the requests in flight on them have finished", async (_what, leave, version) => {
  const stage = start()
  const receiver = await Receiver.start()
  const send = (version = 1) => stage.send(receiver.port, { version, timeoutMs: 600_000 })
  const first = send()
  await receiver.hasSeen(1)
  const inFlight = send()
  await receiver.hasSeen(2)
  const [free, busy] = receiver.visits.map(({ socket }) => socket)
  const left = [closed(free!), closed(busy!)]
  free!.write(ANSWER)
  expect(await first).toMatchObject(DELIVERED)
  await nextTurn()
  leave(stage)
  const after = send(version)
  await receiver.hasSeen(3)
  expect(receiver.visits[2]!.connection).toBe(3)
  busy!.write(ANSWER)
  expect(await inFlight).toMatchObject(DELIVERED)
  await Promise.all(left)
  receiver.visits[2]!.socket.write(ANSWER)
  expect(await after).toMatchObject(DELIVERED)
})

test("the connections of an endpoint without requests are closed after half a minute", async () => {
  const { clock, send } = start()
  const receiver = await Receiver.start()
  receiver.respondsAtOnce = true
  expect(await send(receiver.port)).toMatchObject(DELIVERED)
  await nextTurn()
  const left = closed(receiver.visits[0]!.socket)
  clock.advance(60_000)
  await left
  expect(await send(receiver.port)).toMatchObject(DELIVERED)
  expect(receiver.connections).toEqual([1, 2])
})

test("the next request opens a new connection after one that was refused, and after one that the receiver closed", async () => {
  const { send } = start()
  const before = await Receiver.start()
  const { port } = before
  await new Promise((resolve) => before.server.close(resolve))
  for (let i = 0; i < 3; i++) {
    const refused = { outcome: { kind: "failure", cause: "connection_refused" } }
    expect(await send(port)).toMatchObject(refused)
    await nextTurn()
  }
  const receiver = await Receiver.start(port)
  receiver.respondsAtOnce = true
  expect(await send(port)).toMatchObject(DELIVERED)
  await nextTurn()
  const { socket } = receiver.visits[0]!
  const gone = closed(socket)
  socket.end()
  await gone
  expect(await send(port)).toMatchObject(DELIVERED)
  expect(receiver.connections).toEqual([1, 2])
})

test("a request that times out closes its connection, and the next request opens another", async () => {
  const { clock, send } = start()
  const receiver = await Receiver.start()
  const late = send(receiver.port)
  await receiver.hasSeen(1)
  const gone = closed(receiver.visits[0]!.socket)
  clock.advance(5000)
  expect(await late).toMatchObject({ outcome: { kind: "failure", cause: "timeout" } })
  const next = send(receiver.port)
  await receiver.hasSeen(2)
  receiver.visits[1]!.socket.write(ANSWER)
  expect(await next).toMatchObject(DELIVERED)
  await gone
  expect(receiver.connections).toEqual([1, 2])
})

describe("a reused connection that ends before any byte of the response", () => {
  /** A receiver that responds to the first request and leaves the second, on the same connection, to the test. */
  async function reused(more: Partial<OutboundRequest> = {}) {
    const stage = start()
    const receiver = await Receiver.start()
    receiver.respondsAtOnce = true
    expect(await stage.send(receiver.port)).toMatchObject(DELIVERED)
    await nextTurn()
    receiver.respondsAtOnce = false
    const sent = stage.send(receiver.port, more)
    await receiver.hasSeen(2)
    return { ...stage, receiver, sent }
  }

  test.each<[string, (socket: Socket) => void]>([
    ["a close", (socket) => socket.end()],
    ["a reset", (socket) => socket.resetAndDestroy()],
  ])("by %s: the request is sent again, byte for byte, on a fresh connection", async (_what, end) => {
    const { receiver, sent } = await reused({ webhook: WEBHOOK })
    receiver.respondsAtOnce = true
    end(receiver.visits[1]!.socket)
    expect(await sent).toMatchObject(DELIVERED)
    expect(receiver.connections).toEqual([1, 1, 2])
    expect(receiver.visits[2]!.head).toBe(receiver.visits[1]!.head)
    expect(receiver.visits[2]!.head).toContain("webhook-id: msg_1")
  })

  test("the request is sent again only once: a second failure is the outcome", async () => {
    const { receiver, sent } = await reused()
    receiver.visits[1]!.socket.end()
    await receiver.hasSeen(3)
    receiver.visits[2]!.socket.end()
    expect(await sent).toMatchObject({ outcome: { kind: "failure", cause: "connection_reset" } })
    expect(receiver.connections).toEqual([1, 1, 2])
  })

  test("the request does not move to another idle connection, which may be dead too", async () => {
    const { send } = start()
    const receiver = await Receiver.start()
    const both = [send(receiver.port), send(receiver.port)]
    await receiver.hasSeen(2)
    for (const { socket } of receiver.visits) socket.write(ANSWER)
    await Promise.all(both)
    await nextTurn()
    const sent = send(receiver.port)
    await receiver.hasSeen(3)
    receiver.respondsAtOnce = true
    receiver.visits[2]!.socket.end()
    expect(await sent).toMatchObject(DELIVERED)
    expect(receiver.connections[3]).toBe(3)
  })

  test("the request keeps its deadline", async () => {
    const { clock, receiver, sent } = await reused()
    clock.advance(3000)
    receiver.visits[1]!.socket.end()
    await receiver.hasSeen(3)
    clock.advance(2000)
    expect(await sent).toMatchObject({ outcome: { kind: "failure", cause: "timeout" } })
    expect(receiver.connections).toEqual([1, 1, 2])
  })

  test("the outcome is the failure to open the fresh connection", async () => {
    const { receiver, sent } = await reused()
    receiver.server.close()
    receiver.visits[1]!.socket.resetAndDestroy()
    expect(await sent).toMatchObject({ outcome: { kind: "failure", cause: "connection_refused" } })
  })

  test("the request fails when a byte of the response was read", async () => {
    const { receiver, sent } = await reused()
    receiver.visits[1]!.socket.end("H")
    expect(await sent).toMatchObject({ outcome: { kind: "failure", cause: "connection_reset" } })
    expect(receiver.connections).toEqual([1, 1])
  })

  test("the request is interrupted when our shutdown ended the connection", async () => {
    const { transport, receiver, sent } = await reused()
    transport.interrupt()
    expect(await sent).toMatchObject({ outcome: { kind: "interrupted" } })
    expect(receiver.connections).toEqual([1, 1])
  })

  test("the request is sent again over TLS too", async () => {
    const { send } = start()
    const authority = new Authority()
    const sockets: TLSSocket[] = []
    const seen: TLSSocket[] = []
    const server = createTlsServer(authority.certificate("x", { names: "IP:127.0.0.1" }), (socket) => {
      sockets.push(socket)
      socket
        .on("error", () => {})
        .on("data", () => {
          if (seen.includes(socket)) return socket.destroy()
          seen.push(socket)
          return socket.write(ANSWER)
        })
    })
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    onTestFinished(() => void server.close())
    const { port } = server.address() as AddressInfo
    for (let connections = 1; connections <= 3; connections++) {
      const secure = { url: `https://127.0.0.1:${port}/hook`, tls: { ca: authority.cert } }
      expect(await send(port, secure)).toMatchObject(DELIVERED)
      await nextTurn()
      expect(sockets).toHaveLength(connections)
    }
  })
})

test("a fresh connection that ends before any byte of the response is a failed attempt", async () => {
  const { send } = start()
  const receiver = await Receiver.start()
  const sent = send(receiver.port)
  await receiver.hasSeen(1)
  receiver.visits[0]!.socket.end()
  expect(await sent).toMatchObject({ outcome: { kind: "failure", cause: "connection_reset" } })
  expect(receiver.connections).toEqual([1])
})

/** Webhooks with this value in each of the fields that come from users. */
function webhooksWith(value: string) {
  return ["contentType", "messageId", "authorization"].map((field) => ({
    webhook: { ...WEBHOOK, [field]: value },
  }))
}

test("a request with a forbidden character in a header fails without using a connection", async () => {
  const { send } = start()
  const receiver = await Receiver.start()
  receiver.respondsAtOnce = true
  expect(await send(receiver.port)).toMatchObject(DELIVERED)
  await nextTurn()
  for (const value of ["a\nb", "a\rb", "a\0b", "\u0100"]) {
    for (const bad of [{ headers: { "x-bad": value } }, ...webhooksWith(value)]) {
      const refused = await send(receiver.port, bad)
      expect(refused).toMatchObject({ outcome: { kind: "failure", cause: "network_error" } })
    }
  }
  expect(await send(receiver.port)).toMatchObject(DELIVERED)
  expect(receiver.connections).toEqual([1, 1])
})

test("a passed on header with a forbidden character is left out, and the others are sent as they came", async () => {
  const { send } = start()
  const receiver = await Receiver.start()
  receiver.respondsAtOnce = true
  const values = ["a\nb: c", "a\rb", "a\0b", "\u0100"].map((value) => ["x-bad", value] as const)
  const names = ["x bad", "x-bad:", "x-bad\r\nx", ""].map((name) => [name, "1"] as const)
  const passedOn = [["X-Kept", "1"], ...values, ["x-kept", "\u00fc\t2"], ...names, ["X-Empty", ""]] as const
  expect(await send(receiver.port, { webhook: { ...WEBHOOK, passedOn } })).toMatchObject(DELIVERED)
  const { head } = receiver.visits[0]!
  const lines = "svix-signature: v1,\r\nX-Kept: 1\r\nx-kept: \u00fc\t2\r\nX-Empty: \r\ncontent-length: "
  expect(head).toContain(lines)
  expect(head).not.toMatch(/bad/)
})

test("requests that wait for hanging handshakes time out alone, and closing the transport closes all their sockets", async () => {
  const { clock, transport, send } = start()
  const sockets: Socket[] = []
  const came = Promise.withResolvers<void>()
  // The TLS handshake is never answered.
  const server = createServer((socket) => {
    socket.on("error", () => {}).resume()
    sockets.push(socket)
    if (sockets.length === 2) came.resolve()
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const hang = () => send(port, { url: `https://127.0.0.1:${port}/hook`, connectTimeoutMs: 60_000 })
  const first = hang()
  const second = hang()
  await came.promise
  clock.advance(5000)
  for (const late of [first, second])
    expect(await late).toMatchObject({ outcome: { kind: "failure", cause: "timeout" } })
  const third = hang()
  await expect.poll(() => sockets.length).toBe(3)
  const left = sockets.map(closed)
  await transport.close()
  expect(await third).toMatchObject({ outcome: { kind: "interrupted" } })
  await Promise.all(left)
})

test("further connections of an endpoint resume its TLS session", async () => {
  const { send } = start()
  const authority = new Authority()
  const reused: boolean[] = []
  const waiting: TLSSocket[] = []
  const server = createTlsServer(authority.certificate("x", { names: "IP:127.0.0.1" }), (socket) => {
    reused.push(socket.isSessionReused())
    socket.on("error", () => {})
    socket.on("data", () => waiting.push(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const secure = () => send(port, { url: `https://127.0.0.1:${port}/hook`, tls: { ca: authority.cert } })
  const answered = async (...sent: ReturnType<typeof secure>[]) => {
    await expect.poll(() => waiting.length).toBe(sent.length)
    for (const socket of waiting.splice(0)) socket.write(ANSWER)
    for (const one of sent) expect(await one).toMatchObject(DELIVERED)
    await nextTurn()
  }
  await answered(secure())
  await answered(secure(), secure())
  expect(reused).toEqual([false, true])
})

test.each([
  ["four seconds", "", 3999, 1],
  ["four seconds", "", 4000, 2],
  ["the time that the receiver announces, less a second", "keep-alive: timeout=3\r\n", 1900, 1],
  ["the time that the receiver announces, less a second", "keep-alive: timeout=3\r\n", 2000, 2],
  ["no time if the receiver announces none", "keep-alive: timeout=0\r\n", 0, 2],
  ["four seconds, even if the receiver announces more", "keep-alive: timeout=600\r\n", 4000, 2],
])("an idle connection is reused for %s", async (_what, header, idleMs, connection) => {
  const { clock, send } = start()
  const receiver = await Receiver.start()
  // The sweep closes idle connections too. It first runs five seconds after the endpoint's first request.
  const first = send(receiver.port, { timeoutMs: 600_000 })
  await receiver.hasSeen(1)
  clock.advance(4999)
  receiver.visits[0]!.socket.write(ANSWER.replace("\r\n\r\n", `\r\n${header}\r\n`))
  expect(await first).toMatchObject(DELIVERED)
  await nextTurn()
  receiver.respondsAtOnce = true
  clock.advance(idleMs)
  expect(await send(receiver.port)).toMatchObject(DELIVERED)
  expect(receiver.connections).toEqual([1, connection])
})

test("the sweep closes a connection that is idle for too long, while its endpoint has another request in flight", async () => {
  const { clock, send } = start()
  const receiver = await Receiver.start()
  const first = send(receiver.port, { timeoutMs: 600_000 })
  await receiver.hasSeen(1)
  const inFlight = send(receiver.port, { timeoutMs: 600_000 })
  await receiver.hasSeen(2)
  receiver.visits[0]!.socket.write(ANSWER)
  expect(await first).toMatchObject(DELIVERED)
  await nextTurn()
  const left = closed(receiver.visits[0]!.socket)
  clock.advance(15_000)
  await left
  receiver.visits[1]!.socket.write(ANSWER)
  expect(await inFlight).toMatchObject(DELIVERED)
})

test("an idle connection is closed when bytes come without a request", async () => {
  const { send } = start()
  const receiver = await Receiver.start()
  receiver.respondsAtOnce = true
  expect(await send(receiver.port)).toMatchObject(DELIVERED)
  await nextTurn()
  const { socket } = receiver.visits[0]!
  const left = closed(socket)
  socket.write(ANSWER)
  await left
  expect(await send(receiver.port)).toMatchObject(DELIVERED)
  expect(receiver.connections).toEqual([1, 2])
})

test("a connection is not reused in the turn of its response: the receiver may have closed it right behind", async () => {
  const { send } = start()
  const receiver = await Receiver.start()
  receiver.respondsAtOnce = true
  expect(await send(receiver.port)).toMatchObject(DELIVERED)
  expect(await send(receiver.port)).toMatchObject(DELIVERED)
  expect(receiver.connections).toEqual([1, 2])
})

test("a response before the whole request was written counts, and its connection is closed", async () => {
  const { send } = start()
  const receiver = await Receiver.start()
  const sent = send(receiver.port, { body: Buffer.alloc(20_000_000) })
  await receiver.hasSeen(1)
  const { socket } = receiver.visits[0]!
  socket.pause()
  const left = closed(socket)
  socket.write(ANSWER.replace("200 OK", "413 Large"))
  expect(await sent).toMatchObject({ outcome: { kind: "response", status: 413 } })
  socket.resume()
  await left
})

test("a body that ends with the connection is complete, even if the connection ends with a reset", async () => {
  const { send } = start()
  const receiver = await Receiver.start()
  const sent = send(receiver.port)
  await receiver.hasSeen(1)
  const { socket } = receiver.visits[0]!
  socket.write("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nok", () => socket.resetAndDestroy())
  expect(await sent).toMatchObject({ outcome: { kind: "response", status: 200 } })
})

test("a connection that opens after its request timed out is used by the next request", async () => {
  const { clock, send } = start()
  const authority = new Authority()
  const held: (() => void)[] = []
  // The handshake waits until the test lets it continue.
  const secured = createTlsServer(authority.certificate("x", { names: "IP:127.0.0.1" }), (socket) => {
    socket.on("error", () => {}).on("data", () => socket.write(ANSWER))
  })
  const server = createServer((socket) => {
    socket.on("error", () => {})
    held.push(() => secured.emit("connection", socket))
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const secure = () =>
    send(port, {
      ...{ url: `https://127.0.0.1:${port}/hook`, tls: { ca: authority.cert } },
      ...{ connectTimeoutMs: 60_000, timeoutMs: 5000 },
    })
  const late = secure()
  await expect.poll(() => held.length).toBe(1)
  clock.advance(5000)
  expect(await late).toMatchObject({ outcome: { kind: "failure", cause: "timeout" } })
  held[0]!()
  await new Promise<void>((resolve) => secured.once("secureConnection", () => resolve()))
  await nextTurn()
  await nextTurn()
  expect(await secure()).toMatchObject(DELIVERED)
  expect(held.length).toBe(1)
})

test("a request after close is interrupted and not sent", async () => {
  const { transport, send } = start()
  const receiver = await Receiver.start()
  await transport.close()
  expect(await send(receiver.port)).toMatchObject({ outcome: { kind: "interrupted" } })
  expect(receiver.visits).toEqual([])
})

test("a request with an invalid header name fails and is not sent", async () => {
  const { send } = start()
  const receiver = await Receiver.start()
  for (const name of ["x-a\r\nx-b", "x\u010ay", "x y", ""])
    expect(await send(receiver.port, { headers: { [name]: "1" } })).toMatchObject({
      outcome: { kind: "failure", cause: "network_error" },
    })
  expect(receiver.visits).toEqual([])
})

test("a response that arrived with the deadline counts, even if it was not read yet", async () => {
  const { clock, send } = start()
  const receiver = await Receiver.start()
  const sent = send(receiver.port)
  await receiver.hasSeen(1)
  // Sockets are read after the timers of the same turn, and a deadline is a timer.
  setTimeout(() => {
    receiver.visits[0]!.socket.write(ANSWER)
    clock.advance(5000)
  })
  expect(await sent).toMatchObject(DELIVERED)
})

test("a finished request leaves no timer, and an interruption does not close its connection", async () => {
  const { clock, transport, send } = start()
  const receiver = await Receiver.start()
  const first = send(receiver.port)
  await receiver.hasSeen(1)
  const timers = clock.timers
  receiver.visits[0]!.socket.write(ANSWER)
  expect(await first).toMatchObject(DELIVERED)
  expect(clock.timers).toBe(timers - 1)
  await nextTurn()
  transport.interrupt()
  const second = send(receiver.port)
  await receiver.hasSeen(2)
  receiver.visits[1]!.socket.write(ANSWER)
  expect(await second).toMatchObject(DELIVERED)
  expect(receiver.connections).toEqual([1, 1])
})

test("requests that share their headers object go each to its own URL", async () => {
  const { send } = start()
  const receiver = await Receiver.start()
  receiver.respondsAtOnce = true
  const headers = { "x-shared": "1" }
  for (const path of ["one", "two", "one"])
    await send(receiver.port, { headers, endpointId: path, url: `http://127.0.0.1:${receiver.port}/${path}` })
  expect(receiver.visits.map(({ head }) => head.split(" ")[1])).toEqual(["/one", "/two", "/one"])
})
