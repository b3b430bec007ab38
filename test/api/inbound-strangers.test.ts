/** What strangers who know one URL of a source, or none, can take from other requests. */
import { createHmac } from "node:crypto"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { expect, test } from "vitest"
import type { SourceInput } from "../../src/sources/sources.ts"
import { RawClient } from "./support/raw-client.ts"
import { ApiServer, type ApiServerOptions } from "./support/server.ts"

setFlagsFromString("--expose-gc")
const collectGarbage = runInNewContext("gc") as () => void

function heapUsed(): number {
  collectGarbage()
  return process.memoryUsage().heapUsed
}

const CHUNKED = "Host: x\r\nTransfer-Encoding: chunked\r\n\r\n"

async function start(input: Partial<SourceInput> = {}, options: ApiServerOptions = {}) {
  const server = await ApiServer.start(options)
  const { posthorn } = server
  await posthorn.applications.create({ uid: "acme", name: "Acme" })
  const source = await posthorn.sources.create("acme", {
    name: "hook",
    ...(input.verification === "none" ? {} : { verification: "github", secret: "secret" }),
    ...input,
  } as SourceInput)
  const client = () => new RawClient(server.app.server)
  return { server, posthorn, source, client }
}

test("clients that go on sending after a refusal take no place of other requests", async () => {
  const { server, client } = await start({}, { maxRequests: 5 })
  for (let n = 0; n < 5; n++) {
    const stranger = client()
    await stranger.write(`POST /in/x HTTP/1.1\r\n${CHUNKED}1\r\na\r\n`)
    expect((await stranger.answer()).status).toBe(404)
  }
  expect((await server.call("GET", "/app")).status).toBe(200)
})

test("slow bodies to one source leave room for messages and for other sources", async () => {
  const { server, posthorn, source, client } = await start()
  const other = await posthorn.sources.create("acme", { name: "other", verification: "none" })
  const strangers = Array.from({ length: 65 }, client)
  for (const one of strangers) await one.write(`POST ${source.path} HTTP/1.1\r\n${CHUNKED}`)
  expect((await strangers.at(-1)!.answer()).status).toBe(429)
  const message = { eventType: "invoice.paid", payload: {} }
  expect((await server.call("POST", "/app/acme/msg", { body: message })).status).toBe(202)
  const response = await fetch(server.url + other.path, { method: "POST", body: "{}" })
  expect(response.status).toBe(202)
})

test("slow bodies to many sources leave room for messages and for other sources", async () => {
  const { server, posthorn, client } = await start({}, { maxRequests: 40 })
  const create = (name: string) => posthorn.sources.create("acme", { name, verification: "none" })
  for (let n = 0; n < 6; n++) {
    const { path } = await create(`known-${n}`)
    // The server looks the source up for the first one.
    expect((await fetch(server.url + path, { method: "POST" })).status).toBe(202)
    for (let k = 0; k < 10; k++)
      await client().write(`POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{`)
  }
  const message = { eventType: "invoice.paid", payload: {} }
  expect((await server.call("POST", "/app/acme/msg", { body: message })).status).toBe(202)
  const other = await create("other")
  const response = await fetch(server.url + other.path, { method: "POST", body: "{}" })
  expect(response.status).toBe(202)
})

test("a body in chunks of a byte takes little more memory than its bytes", async () => {
  const { source, client } = await start()
  const one = client()
  await one.write(`POST ${source.path} HTTP/1.1\r\n${CHUNKED}`)
  const before = heapUsed()
  const piece = "1\r\na\r\n".repeat(10_000)
  for (let n = 0; n < 20; n++) await one.write(piece)
  // 200 000 buffers would be 40 MB.
  expect(heapUsed() - before).toBeLessThan(20_000_000)
  await one.write("0\r\n\r\n")
  expect((await one.answer()).status).toBe(401)
})

test("a source that is deleted while a body comes takes nothing more", async () => {
  const { posthorn, source, client } = await start()
  const signature = createHmac("sha256", "secret").update("{}").digest("hex")
  const one = client()
  await one.write(
    `POST ${source.path} HTTP/1.1\r\nHost: x\r\nX-Hub-Signature-256: sha256=${signature}\r\nContent-Length: 2\r\n\r\n{`,
  )
  await posthorn.sources.delete("acme", "hook")
  await one.write("}")
  expect((await one.answer()).status).toBe(404)
  expect((await posthorn.messages.list("acme")).data).toEqual([])
})

test("a source that is disabled while a body comes takes nothing more, and its operator sees who asked", async () => {
  const { server, posthorn, source, client } = await start({ verification: "none" })
  // The source is cached now: the next request is admitted as soon as the server has read it.
  expect((await fetch(server.url + source.path, { method: "POST" })).status).toBe(202)
  const one = client()
  await one.write(`POST ${source.path}/deep HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{`)
  await posthorn.sources.update("acme", "hook", { enabled: false })
  await one.write("}")
  expect((await one.answer()).status).toBe(404)
  await posthorn.context.receiver.flush()
  expect(await posthorn.sources.activity("acme", "hook")).toMatchObject({
    ...{ accepted: 1, refused: { unknown: 1 } },
    recent: [{ reason: "unknown", detail: "disabled", path: "/deep" }],
  })
})

test("ids that are numbers of 19 digits are not taken for duplicates of each other", async () => {
  const { posthorn, source } = await start({ verification: "none", deduplication: { pointer: "/id" } })
  const answers = []
  for (const id of ["1234567890123456780", "1234567890123456781", "17", "17"])
    answers.push(
      await posthorn.sources.receive(source.token, { method: "POST", headers: {}, body: `{"id":${id}}` }),
    )
  expect(answers.map(({ status }) => status)).toEqual([202, 202, 202, 202])
  expect((await posthorn.messages.list("acme")).data).toHaveLength(3)
})

test("a tolerance without a signed time is refused", async () => {
  const { posthorn } = await start()
  const verification = { scheme: "hmac", header: "x-sig", toleranceSeconds: 5 } as const
  await expect(
    posthorn.sources.create("acme", { name: "b", secret: "x", verification }),
  ).rejects.toMatchObject({
    code: "invalid_input",
    message: expect.stringContaining("{timestamp}"),
  })
})
