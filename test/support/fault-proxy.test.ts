import { once } from "node:events"
import { type AddressInfo, connect, createServer, type Socket } from "node:net"
import { expect, onTestFinished, test } from "vitest"
import { FaultProxy } from "./fault-proxy.ts"

/** One end of a connection, and what came to it. */
class Peer {
  readonly socket: Socket
  /** Resolves with how it was closed: the error's code, or "end". */
  readonly closed: Promise<string>
  received = ""
  ended = false
  readonly #watchers = new Set<() => void>()

  constructor(socket: Socket) {
    this.socket = socket
    let code = "end"
    socket.on("data", (bytes) => {
      this.received += bytes
      for (const watcher of this.#watchers) watcher()
    })
    socket.on("end", () => {
      this.ended = true
    })
    socket.on("error", (error: NodeJS.ErrnoException) => {
      code = error.code!
    })
    this.closed = new Promise((resolve) => socket.on("close", () => resolve(code)))
    onTestFinished(() => void socket.destroy())
  }

  /** Resolves when exactly this has come, and nothing else. */
  async got(wanted: string): Promise<void> {
    await new Promise<void>((resolve) => {
      const check = () => this.received.length >= wanted.length && resolve()
      this.#watchers.add(check)
      check()
    })
    expect(this.received).toBe(wanted)
  }
}

/** A proxy to a server that answers each piece with the same in capitals, unless told otherwise, and an end with an end. */
async function start({ reply = (text: string): string | null => text.toUpperCase() } = {}) {
  const accepted: Peer[] = []
  const server = createServer({ noDelay: true, allowHalfOpen: true }, (socket) => {
    accepted.push(new Peer(socket))
    socket.on("end", () => socket.end())
    socket.on("data", (bytes) => {
      const answer = reply(bytes.toString())
      if (answer !== null) socket.write(answer)
    })
  })
  await once(server.listen(0, "127.0.0.1"), "listening")
  const { port } = server.address() as AddressInfo
  const proxy = await FaultProxy.start({ host: "127.0.0.1", port })
  onTestFinished(async () => {
    await proxy.close()
    for (const { socket } of accepted) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  })
  const direct = () => dial(port)
  return { proxy, accepted, direct, dial: () => dial(proxy.port) }
}

async function dial(port: number): Promise<Peer> {
  const peer = new Peer(connect({ port, host: "127.0.0.1", noDelay: true }))
  await once(peer.socket, "connect")
  return peer
}

/** Turns of both event loops' queues in which whatever is going to pass would pass: round trips past the proxy. */
async function roundTrips(direct: () => Promise<Peer>): Promise<void> {
  const peer = await direct()
  for (let trip = 1; trip <= 20; trip++) {
    peer.socket.write("X")
    await peer.got("X".repeat(trip))
  }
}

test("healthy, it passes bytes both ways, in order, and the end too", async () => {
  const { dial, accepted } = await start()
  const peer = await dial()
  const text = "abcdefgh".repeat(100_000)
  peer.socket.end(text)
  expect(await peer.closed).toBe("end")
  expect(peer.received).toBe(text.toUpperCase())
  expect(accepted[0]!.received).toBe(text)
})

test("a server that is not there cuts the connection", async () => {
  const { proxy } = await start()
  const gone = await FaultProxy.start({ host: "127.0.0.1", port: proxy.port })
  await proxy.close()
  const peer = new Peer(connect(gone.port, "127.0.0.1"))
  expect(await peer.closed).toBe("ECONNRESET")
  await gone.close()
})

test("a client that breaks off is broken off at the server", async () => {
  const { dial, accepted } = await start()
  const peer = await dial()
  peer.socket.write("a")
  await peer.got("A")
  peer.socket.resetAndDestroy()
  expect(await accepted[0]!.closed).toBe("ECONNRESET")
})

test("the proxy gives the URL of the server behind it", async () => {
  const { proxy } = await start()
  expect(proxy.through("postgres://me@db.example:5432/shop?sslmode=disable")).toBe(
    `postgres://me@127.0.0.1:${proxy.port}/shop?sslmode=disable`,
  )
})

test("latency is added each way, not once for each piece, and keeps the order when it changes", async () => {
  const { proxy, dial } = await start()
  const peer = await dial()
  proxy.latency(100)
  const began = performance.now()
  let sent = ""
  for (const letter of "abcdefghijklmnopqrst") {
    sent += letter
    peer.socket.write(letter)
    await new Promise((resolve) => setImmediate(resolve))
  }
  proxy.latency(0)
  sent += "z"
  peer.socket.write("z")
  await peer.got(sent.toUpperCase())
  const ms = performance.now() - began
  // Only the way there: the way back was fast again.
  expect(ms).toBeGreaterThan(95)
  expect(ms).toBeLessThan(1500)
  proxy.latency(100)
  const again = performance.now()
  peer.socket.write("!")
  await peer.got(`${sent.toUpperCase()}!`)
  expect(performance.now() - again).toBeGreaterThan(190)
})

test("a black hole takes connections and bytes, gives nothing back and closes nothing; healed, all of it passes", async () => {
  const { proxy, dial, direct, accepted } = await start()
  const before = await dial()
  before.socket.write("a")
  await before.got("A")
  proxy.blackHole()
  before.socket.write("b")
  const during = await dial()
  during.socket.write("c")
  const leaving = await dial()
  leaving.socket.end("d")
  await roundTrips(direct)
  proxy.blackHole()
  await roundTrips(direct)
  expect([before.received, during.received, leaving.received]).toEqual(["A", "", ""])
  expect([before, during, leaving].some(({ ended }) => ended)).toBe(false)
  // The one from before, and the round trips' own.
  expect(accepted.map(({ received }) => received)).toEqual(["a", "X".repeat(20), "X".repeat(20)])
  proxy.heal()
  before.socket.write("e")
  await Promise.all([before.got("ABE"), during.got("C"), leaving.closed])
  expect(leaving.received).toBe("D")
})

test("the server's bytes get nowhere in a black hole either", async () => {
  const { proxy, dial, direct, accepted } = await start()
  const peer = await dial()
  peer.socket.write("a")
  await peer.got("A")
  proxy.blackHole()
  accepted[0]!.socket.end("bye")
  await roundTrips(direct)
  expect(peer.received).toBe("A")
  expect(peer.ended).toBe(false)
  proxy.heal()
  await peer.closed
  expect(peer.received).toBe("Abye")
})

test("bytes that a black hole held are lost when the connection is reset", async () => {
  const { proxy, dial, direct, accepted } = await start()
  const old = await dial()
  old.socket.write("a")
  await old.got("A")
  proxy.blackHole()
  old.socket.write("b")
  const during = await dial()
  during.socket.write("c")
  await roundTrips(direct)
  proxy.reset()
  expect(await Promise.all([old.closed, during.closed])).toEqual(["ECONNRESET", "ECONNRESET"])
  proxy.heal()
  await roundTrips(dial)
  expect(accepted.map(({ received }) => received)).toEqual(["a", "X".repeat(20), "X".repeat(20)])
})

test("a reset cuts all connections at both ends, and new ones are welcome", async () => {
  const { proxy, dial, accepted } = await start()
  const peers = [await dial(), await dial()]
  for (const peer of peers) {
    peer.socket.write("a")
    await peer.got("A")
  }
  proxy.reset()
  const ends = [...peers, ...accepted].map(({ closed }) => closed)
  expect(await Promise.all(ends)).toEqual(Array(4).fill("ECONNRESET"))
  const next = await dial()
  next.socket.write("b")
  await next.got("B")
})

test("refusing, it cuts new connections at once and leaves old ones alone, until it heals", async () => {
  const { proxy, dial, accepted } = await start()
  const old = await dial()
  old.socket.write("a")
  await old.got("A")
  proxy.refuse()
  expect(await new Peer(connect(proxy.port, "127.0.0.1")).closed).toBe("ECONNRESET")
  old.socket.write("b")
  await old.got("AB")
  expect(accepted).toHaveLength(1)
  proxy.heal()
  const next = await dial()
  next.socket.write("c")
  await next.got("C")
})

test("the reply to what matches is lost once, on that connection only, and the server has surely done it", async () => {
  const { proxy, dial, accepted } = await start()
  const [victim, other] = [await dial(), await dial()]
  victim.socket.write("begin")
  await victim.got("BEGIN")
  other.socket.write("begin")
  await other.got("BEGIN")
  const lost = proxy.dropRepliesAfter((bytes) => bytes.includes("commit"))
  other.socket.write("insert")
  await other.got("BEGININSERT")
  victim.socket.write("commit")
  await lost
  expect(await victim.closed).toBe("ECONNRESET")
  expect(victim.received).toBe("BEGIN")
  expect(accepted[0]!.received).toBe("begincommit")
  other.socket.write("commit")
  await other.got("BEGININSERTCOMMIT")
})

test("a reply to something earlier does not break off the work on what matched", async () => {
  const { proxy, dial, direct, accepted } = await start({
    reply: (text) => (text === "commit" ? null : text),
  })
  const peer = await dial()
  peer.socket.write("insert")
  await peer.got("insert")
  const backend = accepted[0]!
  let isLost = false
  const lost = proxy
    .dropRepliesAfter((bytes) => bytes.includes("commit"))
    .then(() => {
      isLost = true
    })
  backend.socket.removeAllListeners("end")
  peer.socket.write("commit")
  await backend.got("insertcommit")
  backend.socket.write("a reply to something else")
  await once(backend.socket, "end")
  // It has been told that no more will come, and is still at work on the commit.
  await roundTrips(direct)
  expect(isLost).toBe(false)
  backend.socket.end("committed")
  await lost
  expect(await backend.closed).toBe("end")
  expect(await peer.closed).toBe("ECONNRESET")
  expect(peer.received).toBe("insert")
})

test("a server that closes without a reply is told of: then nobody knows what it did", async () => {
  const { proxy, dial, accepted } = await start({
    reply: () => {
      accepted[0]!.socket.destroy()
      return null
    },
  })
  const peer = await dial()
  const lost = proxy.dropRepliesAfter(() => true)
  peer.socket.write("commit")
  await expect(lost).rejects.toThrow("without a reply")
  expect(await peer.closed).toBe("ECONNRESET")
})

test("closed, it holds no connection open, whatever it was doing", async () => {
  const { proxy, dial, direct, accepted } = await start()
  const peer = await dial()
  peer.socket.write("a")
  await peer.got("A")
  proxy.blackHole()
  peer.socket.resetAndDestroy()
  await roundTrips(direct)
  await proxy.close()
  expect(await accepted[0]!.closed).toBe("ECONNRESET")
})
