/** Which connection a request goes out on, and what becomes of it afterwards. */
import { type AddressInfo, createServer, type Socket } from "node:net"
import { createServer as createTlsServer, type TLSSocket } from "node:tls"
import { describe, expect, onTestFinished, test } from "vitest"
import { Authority } from "../../test/egress/certificates.ts"
import { TestClock } from "../../test/support/clock.ts"
import { loopbackGuard } from "../../test/support/harness.ts"
import { HttpTransport } from "./http.ts"
import type { OutboundRequest } from "./transport.ts"

const ANSWER = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
const DELIVERED = { outcome: { kind: "response", status: 200 } }

interface Visit {
  readonly socket: Socket
  readonly connection: number
  readonly head: string
}

/** A receiver that answers when it is told to, and says on which connection each request came. */
class Receiver {
  readonly visits: Visit[] = []
  readonly server = createServer((socket) => this.#connected(socket))
  #connections = 0
  #onVisit = () => {}
  answersAtOnce = false

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
      if (this.answersAtOnce) socket.write(ANSWER)
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

/** A connection is free for the next request in the turn after its answer. */
const nextTurn = () => new Promise((resolve) => setImmediate(resolve))
/** Within three seconds: after four an idle connection would be closed for that. */
const closed = (socket: Socket) =>
  new Promise<void>((resolve, reject) => {
    const late = setTimeout(() => reject(new Error("the connection was kept")), 3000)
    socket.once("close", () => {
      clearTimeout(late)
      resolve()
    })
  })

test("requests at once have a connection each, and those that follow use them again, the last one first", async () => {
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
  receiver.answersAtOnce = true
  for (let i = 0; i < 3; i++) {
    expect(await send(receiver.port)).toMatchObject(DELIVERED)
    await nextTurn()
  }
  expect(receiver.connections).toEqual([1, 2, 3, 2, 2, 2])
})

test.each<[string, (stage: ReturnType<typeof start>) => void, number]>([
  ["is forgotten", ({ transport }) => transport.forget("ep_1"), 1],
  ["has changed", () => {}, 2],
  ["was used for five minutes", ({ clock }) => clock.advance(300_000), 1],
])("an endpoint that %s leaves its connections; what is under way on them ends well", async (_what, leave, version) => {
  const stage = start()
  const receiver = await Receiver.start()
  const send = (version = 1) => stage.send(receiver.port, { version, timeoutMs: 600_000 })
  const first = send()
  await receiver.hasSeen(1)
  const underWay = send()
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
  expect(await underWay).toMatchObject(DELIVERED)
  await Promise.all(left)
  receiver.visits[2]!.socket.write(ANSWER)
  expect(await after).toMatchObject(DELIVERED)
})

test("an endpoint that is sent nothing for half a minute leaves its connections", async () => {
  const { clock, send } = start()
  const receiver = await Receiver.start()
  receiver.answersAtOnce = true
  expect(await send(receiver.port)).toMatchObject(DELIVERED)
  await nextTurn()
  const left = closed(receiver.visits[0]!.socket)
  clock.advance(60_000)
  await left
  expect(await send(receiver.port)).toMatchObject(DELIVERED)
  expect(receiver.connections).toEqual([1, 2])
})

test("one that could not be opened is opened for the next request, and one that was closed is too", async () => {
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
  receiver.answersAtOnce = true
  expect(await send(port)).toMatchObject(DELIVERED)
  await nextTurn()
  const { socket } = receiver.visits[0]!
  const gone = closed(socket)
  socket.end()
  await gone
  expect(await send(port)).toMatchObject(DELIVERED)
  expect(receiver.connections).toEqual([1, 2])
})

test("a request that was cut off takes its connection along, and the next does not wait for it", async () => {
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

describe("a reused connection that ends before any byte of the answer", () => {
  /** A receiver that answers the first request and lets the test decide about the second, which came on the same connection. */
  async function reused(more: Partial<OutboundRequest> = {}) {
    const stage = start()
    const receiver = await Receiver.start()
    receiver.answersAtOnce = true
    expect(await stage.send(receiver.port)).toMatchObject(DELIVERED)
    await nextTurn()
    receiver.answersAtOnce = false
    const sent = stage.send(receiver.port, more)
    await receiver.hasSeen(2)
    return { ...stage, receiver, sent }
  }

  const webhook = {
    ...{ contentType: "text/plain", messageId: "msg_1", timestampSeconds: 1 },
    ...{ signature: "v1,", authorization: null },
  }

  test.each<[string, (socket: Socket) => void]>([
    ["a close", (socket) => socket.end()],
    ["a reset", (socket) => socket.resetAndDestroy()],
  ])("by %s has its request sent again, byte for byte, on a fresh one", async (_what, end) => {
    const { receiver, sent } = await reused({ webhook })
    receiver.answersAtOnce = true
    end(receiver.visits[1]!.socket)
    expect(await sent).toMatchObject(DELIVERED)
    expect(receiver.connections).toEqual([1, 1, 2])
    expect(receiver.visits[2]!.head).toBe(receiver.visits[1]!.head)
    expect(receiver.visits[2]!.head).toContain("webhook-id: msg_1")
  })

  test("has it sent again once, and the next failure counts", async () => {
    const { receiver, sent } = await reused()
    receiver.visits[1]!.socket.end()
    await receiver.hasSeen(3)
    receiver.visits[2]!.socket.end()
    expect(await sent).toMatchObject({ outcome: { kind: "failure", cause: "connection_reset" } })
    expect(receiver.connections).toEqual([1, 1, 2])
  })

  test("does not use another idle connection, which may be as dead", async () => {
    const { send } = start()
    const receiver = await Receiver.start()
    const both = [send(receiver.port), send(receiver.port)]
    await receiver.hasSeen(2)
    for (const { socket } of receiver.visits) socket.write(ANSWER)
    await Promise.all(both)
    await nextTurn()
    const sent = send(receiver.port)
    await receiver.hasSeen(3)
    receiver.answersAtOnce = true
    receiver.visits[2]!.socket.end()
    expect(await sent).toMatchObject(DELIVERED)
    expect(receiver.connections[3]).toBe(3)
  })

  test("leaves its request the deadline that it had", async () => {
    const { clock, receiver, sent } = await reused()
    clock.advance(3000)
    receiver.visits[1]!.socket.end()
    await receiver.hasSeen(3)
    clock.advance(2000)
    expect(await sent).toMatchObject({ outcome: { kind: "failure", cause: "timeout" } })
    expect(receiver.connections).toEqual([1, 1, 2])
  })

  test("tells why no fresh one was to be had", async () => {
    const { receiver, sent } = await reused()
    receiver.server.close()
    receiver.visits[1]!.socket.resetAndDestroy()
    expect(await sent).toMatchObject({ outcome: { kind: "failure", cause: "connection_refused" } })
  })

  test("ends the request when a byte of the answer has come", async () => {
    const { receiver, sent } = await reused()
    receiver.visits[1]!.socket.end("H")
    expect(await sent).toMatchObject({ outcome: { kind: "failure", cause: "connection_reset" } })
    expect(receiver.connections).toEqual([1, 1])
  })

  test("ends the request when our shutdown ended it", async () => {
    const { transport, receiver, sent } = await reused()
    transport.interrupt()
    expect(await sent).toMatchObject({ outcome: { kind: "interrupted" } })
    expect(receiver.connections).toEqual([1, 1])
  })

  test("is moved over TLS too", async () => {
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

test("a fresh connection that ends before any byte of the answer is a failure", async () => {
  const { send } = start()
  const receiver = await Receiver.start()
  const sent = send(receiver.port)
  await receiver.hasSeen(1)
  receiver.visits[0]!.socket.end()
  expect(await sent).toMatchObject({ outcome: { kind: "failure", cause: "connection_reset" } })
  expect(receiver.connections).toEqual([1])
})

/** Webhooks that have it in one of the fields that others may have written. */
function webhooksWith(value: string) {
  const good = {
    contentType: "text/plain",
    messageId: "msg_1",
    timestampSeconds: 1,
    signature: "v1,",
    authorization: null,
  }
  return ["contentType", "messageId", "authorization"].map((field) => ({
    webhook: { ...good, [field]: value },
  }))
}

test("a request that is refused before it begins takes no connection", async () => {
  const { send } = start()
  const receiver = await Receiver.start()
  receiver.answersAtOnce = true
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

test("who waits for a connection that hangs holds up no other, and takes nothing along", async () => {
  const { clock, transport, send } = start()
  const sockets: Socket[] = []
  const came = Promise.withResolvers<void>()
  // A handshake that is never answered.
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
  ["as long as the receiver keeps it, less a second", "keep-alive: timeout=3\r\n", 1900, 1],
  ["as long as the receiver keeps it, less a second", "keep-alive: timeout=3\r\n", 2000, 2],
  ["not at all where the receiver keeps it for no time", "keep-alive: timeout=0\r\n", 0, 2],
  ["four seconds, however long the receiver keeps it", "keep-alive: timeout=600\r\n", 4000, 2],
])("an idle connection is used again for %s", async (_what, header, idleMs, connection) => {
  const { clock, send } = start()
  const receiver = await Receiver.start()
  // The sweep closes what is idle, too: the first comes five seconds after the endpoint's first request.
  const first = send(receiver.port, { timeoutMs: 600_000 })
  await receiver.hasSeen(1)
  clock.advance(4999)
  receiver.visits[0]!.socket.write(ANSWER.replace("\r\n\r\n", `\r\n${header}\r\n`))
  expect(await first).toMatchObject(DELIVERED)
  await nextTurn()
  receiver.answersAtOnce = true
  clock.advance(idleMs)
  expect(await send(receiver.port)).toMatchObject(DELIVERED)
  expect(receiver.connections).toEqual([1, connection])
})

test("the sweep closes a connection that is idle for too long, while its endpoint has others under way", async () => {
  const { clock, send } = start()
  const receiver = await Receiver.start()
  const first = send(receiver.port, { timeoutMs: 600_000 })
  await receiver.hasSeen(1)
  const underWay = send(receiver.port, { timeoutMs: 600_000 })
  await receiver.hasSeen(2)
  receiver.visits[0]!.socket.write(ANSWER)
  expect(await first).toMatchObject(DELIVERED)
  await nextTurn()
  const left = closed(receiver.visits[0]!.socket)
  clock.advance(15_000)
  await left
  receiver.visits[1]!.socket.write(ANSWER)
  expect(await underWay).toMatchObject(DELIVERED)
})

test("bytes that nobody asked for end an idle connection", async () => {
  const { send } = start()
  const receiver = await Receiver.start()
  receiver.answersAtOnce = true
  expect(await send(receiver.port)).toMatchObject(DELIVERED)
  await nextTurn()
  const { socket } = receiver.visits[0]!
  const left = closed(socket)
  socket.write(ANSWER)
  await left
  expect(await send(receiver.port)).toMatchObject(DELIVERED)
  expect(receiver.connections).toEqual([1, 2])
})

test("a connection is not used in the turn of its answer: the receiver may have ended it behind that", async () => {
  const { send } = start()
  const receiver = await Receiver.start()
  receiver.answersAtOnce = true
  expect(await send(receiver.port)).toMatchObject(DELIVERED)
  expect(await send(receiver.port)).toMatchObject(DELIVERED)
  expect(receiver.connections).toEqual([1, 2])
})

test("one that answers before it has read the request gets no other on that connection", async () => {
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

test("a body that ends with the connection has come, also where that ends with a reset", async () => {
  const { send } = start()
  const receiver = await Receiver.start()
  const sent = send(receiver.port)
  await receiver.hasSeen(1)
  const { socket } = receiver.visits[0]!
  socket.write("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nok", () => socket.resetAndDestroy())
  expect(await sent).toMatchObject({ outcome: { kind: "response", status: 200 } })
})

test("a connection that was not open in time for its request is there for the next", async () => {
  const { clock, send } = start()
  const authority = new Authority()
  const held: (() => void)[] = []
  // The handshake waits until it is let go on.
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

test("after the end of everything, a request is interrupted", async () => {
  const { transport, send } = start()
  const receiver = await Receiver.start()
  await transport.close()
  expect(await send(receiver.port)).toMatchObject({ outcome: { kind: "interrupted" } })
  expect(receiver.visits).toEqual([])
})

test("a header whose name is none is not sent", async () => {
  const { send } = start()
  const receiver = await Receiver.start()
  for (const name of ["x-a\r\nx-b", "x\u010ay", "x y", ""])
    expect(await send(receiver.port, { headers: { [name]: "1" } })).toMatchObject({
      outcome: { kind: "failure", cause: "network_error" },
    })
  expect(receiver.visits).toEqual([])
})

test("an answer that came with the deadline counts, though nobody had time to read it", async () => {
  const { clock, send } = start()
  const receiver = await Receiver.start()
  const sent = send(receiver.port)
  await receiver.hasSeen(1)
  // In the turn of a timer, as a deadline is: what has come is read behind it.
  setTimeout(() => {
    receiver.visits[0]!.socket.write(ANSWER)
    clock.advance(5000)
  })
  expect(await sent).toMatchObject(DELIVERED)
})

test("nothing is left of a request that has ended: no timer, and nothing that an interruption would cut", async () => {
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

test("each goes to its own URL, though they share their headers", async () => {
  const { send } = start()
  const receiver = await Receiver.start()
  receiver.answersAtOnce = true
  const headers = { "x-shared": "1" }
  for (const path of ["one", "two", "one"])
    await send(receiver.port, { headers, endpointId: path, url: `http://127.0.0.1:${receiver.port}/${path}` })
  expect(receiver.visits.map(({ head }) => head.split(" ")[1])).toEqual(["/one", "/two", "/one"])
})
