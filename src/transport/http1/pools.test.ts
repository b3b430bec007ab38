import { once } from "node:events"
import { type AddressInfo, createServer, type Socket } from "node:net"
import { setImmediate as turn } from "node:timers/promises"
import { expect, onTestFinished, test } from "vitest"
import { TestClock } from "../../../test/support/clock.ts"
import { loopbackGuard } from "../../../test/support/harness.ts"
import { HttpTransport } from "../http.ts"

const ANSWER = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"

/** A transport, and a receiver whose responses the test writes, given the path and the socket of each request. */
async function start(answer: (path: string, socket: Socket) => void) {
  const clock = new TestClock()
  const open = new Set<Socket>()
  const server = createServer((socket) => {
    open.add(socket)
    socket.on("close", () => open.delete(socket)).on("error", () => {})
    socket.on("data", (bytes) => answer(bytes.toString().split(" ")[1]!, socket))
  })
  await once(server.listen(0, "127.0.0.1"), "listening")
  const { port } = server.address() as AddressInfo
  const guard = loopbackGuard(clock)
  const transport = new HttpTransport(clock, guard)
  onTestFinished(async () => {
    await transport.close()
    guard.close()
    server.close()
  })
  const send = (path: string) =>
    transport.send({
      endpointId: "ep",
      version: 1,
      url: `http://127.0.0.1:${port}${path}`,
      headers: {},
      body: new Uint8Array(),
      timeoutMs: 60_000,
      connectTimeoutMs: 60_000,
      tls: {},
    })
  return { clock, open, send }
}

test("all stale connections are closed, also when there are more than one batch", async () => {
  const waiting: Socket[] = []
  const { clock, open, send } = await start((_path, socket) => {
    if (waiting.push(socket) === 40) for (const one of waiting) one.write(ANSWER)
  })
  await Promise.all(Array.from({ length: 40 }, () => send("/")))
  expect(open.size).toBe(40)
  // They are free in the next turn.
  await turn()
  clock.advance(15_000)
  await expect.poll(() => open.size).toBe(0)
})

test.each([
  ["at the next request", 0],
  ["at the sweep", 4000],
])("only the connection whose announced idle time has passed is closed, %s", async (_when, beforeMs) => {
  const asked = new Map<string, Socket>()
  const both = Promise.withResolvers<void>()
  const { clock, open, send } = await start((path, socket) => {
    asked.set(path, socket)
    if (path === "/again") socket.write(ANSWER)
    else if (asked.size === 2) both.resolve()
  })
  const [long, short] = [send("/long"), send("/short")]
  await both.promise
  clock.advance(beforeMs)
  asked.get("/long")!.write(ANSWER)
  await long
  asked.get("/short")!.write(ANSWER.replace("content-length", "keep-alive: timeout=2\r\ncontent-length"))
  await short
  await turn()
  clock.advance(2000)
  await send("/again")
  expect(asked.get("/again")).toBe(asked.get("/long"))
  await expect.poll(() => open.size).toBe(1)
})

test("two responses that come alternately in pieces are each read whole", async () => {
  const sockets = new Map<string, Socket>()
  const both = Promise.withResolvers<void>()
  const { send } = await start((path, socket) => {
    if (sockets.set(path, socket.setNoDelay()).size === 2) both.resolve()
  })
  const answers = [send("/a"), send("/b")]
  await both.promise
  for (let at = 0; at < ANSWER.length; at += 5)
    for (const [path, socket] of sockets) {
      socket.write(ANSWER.replace("ok", path).slice(at, at + 5))
      // The transport reads it in a later turn of the event loop.
      await turn()
      await turn()
    }
  const bodies = (await Promise.all(answers)).map(({ responseBody }) => responseBody!.toString())
  expect(bodies).toEqual(["/a", "/b"])
})
