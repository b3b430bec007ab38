import { once } from "node:events"
import { type AddressInfo, createServer, type Socket } from "node:net"
import { setImmediate as turn } from "node:timers/promises"
import { expect, onTestFinished, test } from "vitest"
import { TestClock } from "../../../test/support/clock.ts"
import { HttpTransport } from "../http.ts"
import { Guard } from "./guard.ts"
import { parseEgress } from "./settings.ts"

const ANSWER = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"

/** A transport and a receiver that answers as told: with the path of the request, on its connection. */
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
  const guard = new Guard(parseEgress({ allow: ["127.0.0.0/8"], ports: "any" }), clock)
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

test("however many connections are not needed any more, all are closed", async () => {
  const waiting: Socket[] = []
  const { clock, open, send } = await start((_path, socket) => {
    if (waiting.push(socket) === 40) for (const one of waiting) one.write(ANSWER)
  })
  await Promise.all(Array.from({ length: 40 }, () => send("/")))
  expect(open.size).toBe(40)
  // By then they are free.
  await turn()
  clock.advance(15_000)
  await expect.poll(() => open.size).toBe(0)
})

test("of connections whose receiver keeps them for different times, those that it still keeps are used again", async () => {
  const seen = new Set<Socket>()
  const short = ANSWER.replace("content-length", "keep-alive: timeout=2\r\ncontent-length")
  const { clock, open, send } = await start((path, socket) => {
    seen.add(socket)
    setTimeout(() => socket.write(path === "/short" ? short : ANSWER), path === "/short" ? 20 : 0)
  })
  await Promise.all([send("/long"), send("/short")])
  await turn()
  clock.advance(2000)
  await send("/long")
  expect(seen.size).toBe(2)
  await expect.poll(() => open.size).toBe(1)
})

test("two answers that come in pieces, by turns, are each read whole", async () => {
  const sockets = new Map<string, Socket>()
  const { send } = await start((path, socket) => void sockets.set(path, socket))
  const answers = [send("/a"), send("/b")]
  await expect.poll(() => sockets.size).toBe(2)
  const texts = new Map([...sockets.keys()].map((path) => [path, ANSWER.replace("ok", path)]))
  for (let at = 0; at < ANSWER.length; at += 5) {
    for (const [path, socket] of sockets) socket.write(texts.get(path)!.slice(at, at + 5))
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
  const bodies = (await Promise.all(answers)).map(({ responseBody }) => responseBody!.toString())
  expect(bodies).toEqual(["/a", "/b"])
})
