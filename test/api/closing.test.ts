/** A stop: requests in flight are finished, later requests are refused, and the store is closed last. */
import { connect } from "node:net"
import { expect, test } from "vitest"
import type { Routes } from "../../src/api/context.ts"
import { healthRoutes } from "../../src/api/routes/health.ts"
import { probeRoutes } from "./support/probe.ts"
import { ApiServer } from "./support/server.ts"

test("a request in flight is finished before Posthorn closes", async () => {
  const { promise: opened, resolve: open } = Promise.withResolvers<void>()
  const { promise: reached, resolve: reach } = Promise.withResolvers<void>()
  const server = await ApiServer.start({
    routes: [
      probeRoutes({
        created: () => {
          reach()
          return opened
        },
      }),
    ],
    // Longer than the test may take: the connection of the last answer must not be waited for.
    closeTimeoutMs: 100_000,
  })
  const answer = server.call("POST", "/app", { body: { name: "Acme" }, headers: { "idempotency-key": "k" } })
  await reached
  const closed = server.app.close()
  open()
  expect(await answer).toMatchObject({ status: 201, body: { name: "Acme" } })
  await closed
  await expect(server.posthorn.applications.list()).rejects.toMatchObject({ code: "closed" })
  await expect(fetch(`${server.url}/api/v1/health`)).rejects.toThrow()
})

test("a request that comes while the server stops is refused at once, for another server to take", async () => {
  const { promise: opened, resolve: open } = Promise.withResolvers<void>()
  const { promise: stopping, resolve: stop } = Promise.withResolvers<void>()
  const hold: Routes = (app) =>
    void app.addHook("preClose", () => {
      stop()
      return opened
    })
  const server = await ApiServer.start({ routes: [probeRoutes(), healthRoutes, hold] })
  const closed = server.app.close()
  await stopping
  const answer = await server.call("GET", "/app")
  expect(answer).toMatchObject({ status: 503, body: { code: "closing" } })
  expect(answer.headers.get("retry-after")).toBe("1")
  expect(answer.headers.get("connection")).toBe("close")
  expect(await server.call("GET", "/health", { key: null })).toMatchObject({
    status: 503,
    body: { code: "closing" },
  })
  open()
  await closed
})

test("a client that is too slow is cut off in the end", async () => {
  const server = await ApiServer.start({ routes: [probeRoutes()], closeTimeoutMs: 50 })
  const socket = connect(Number(new URL(server.url).port), "127.0.0.1")
  const { promise: hungUp, resolve } = Promise.withResolvers<void>()
  socket.on("error", () => {}).on("close", () => resolve())
  socket.write("POST /api/v1/app HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n")
  await new Promise((done) => server.app.server.getConnections((_error, count) => done(count)))
  await server.app.close()
  await hungUp
})
