import { once } from "node:events"
import { type AddressInfo, connect, createServer } from "node:net"
import { expect, onTestFinished, test } from "vitest"
import type { Clerk } from "./clerk.ts"
import { Client } from "./client.ts"

const REQUEST =
  "POST /api/v1/app/acme/msg HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ph_1_2\r\n" +
  "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
const KEEP_ALIVE_MS = 200

test("a connection between two requests is kept for as long as clients are told, and a second more", async () => {
  const answer = { status: 202, requestId: "a", retryAfterSeconds: null, body: "{}" }
  const clerk = { answer: async () => answer } as unknown as Clerk
  const limits = { headersMs: 100, keepAliveMs: KEEP_ALIVE_MS, bodyLimit: 100 }
  const owner = {
    takeOver() {
      throw new Error("a connection at rest is nothing for the HTTP server")
    },
    left() {},
  }
  const server = createServer((socket) => void new Client(socket, clerk, limits, owner)).listen(
    0,
    "127.0.0.1",
  )
  onTestFinished(() => void server.close())
  await once(server, "listening")
  const { port } = server.address() as AddressInfo
  const socket = connect(port, "127.0.0.1")
  let restsSince = 0
  for (let request = 0; request < 2; request++) {
    restsSince = performance.now()
    socket.write(REQUEST)
    await once(socket, "data")
  }
  await once(socket, "close")
  const restedMs = performance.now() - restsSince
  expect(restedMs).toBeGreaterThan(KEEP_ALIVE_MS + 900)
  expect(restedMs).toBeLessThan(10_000)
})
