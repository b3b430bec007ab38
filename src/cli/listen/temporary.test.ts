import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { expect, onTestFinished, test } from "vitest"
import { Api } from "../api.ts"
import { HttpClient } from "../http-client.ts"
import { TemporaryThings } from "./temporary.ts"

/** A server that answers with the number in the path. */
async function start() {
  const deleted: string[] = []
  const server = createServer(({ method, url }, response) => {
    if (method === "DELETE") deleted.push(url!)
    if (method === "DELETE") return response.writeHead(204).end()
    response.writeHead(Number(url!.slice(-3)), { "content-type": "application/json" }).end('{"detail":"no"}')
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  onTestFinished(() => void server.close())
  const api = new Api(new HttpClient(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, null))
  return { api, deleted, things: new TemporaryThings(api, undefined) }
}

test.each([
  [409, false],
  [422, false],
  [500, true],
  [503, true],
  [504, true],
])("a thing whose making was answered with %i is deleted at the end: %j", async (status, isDeleted) => {
  const { api, deleted, things } = await start()
  const thing = { route: "/app/listen-1", command: "apps delete listen-1" }
  await expect(things.make(thing, () => api.post(`/app/${status}`))).rejects.toMatchObject({ status })
  expect(things.left !== null).toBe(isDeleted)
  await things.deleteAll()
  expect(deleted.length === 1).toBe(isDeleted)
  expect(things.left).toBeNull()
})
