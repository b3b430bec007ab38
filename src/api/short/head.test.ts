import { createServer, type IncomingMessage } from "node:http"
import { type AddressInfo, connect } from "node:net"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import fc from "fast-check"
import { describe, expect, onTestFinished, test } from "vitest"
import { readHead } from "./head.ts"

setFlagsFromString("--expose-gc")
const gc = runInNewContext("gc") as () => void

const LINE = "POST /api/v1/app/acme/msg HTTP/1.1"
const FIELDS = {
  Host: "localhost",
  Authorization: "Bearer ph_1_2",
  "Content-Type": "application/json",
  "Content-Length": "2",
}

type Changes = { readonly [name: string]: string | readonly string[] | null }

function request(changes: Changes = {}, line = LINE): string {
  const lines = Object.entries({ ...FIELDS, ...changes }).flatMap(([name, value]) =>
    value === null ? [] : [value].flat().map((one) => `${name}: ${one}`),
  )
  return `${[line, ...lines].join("\r\n")}\r\n\r\n{}`
}

function read(text: string) {
  return readHead(Buffer.from(text, "latin1"))
}

test("what is remembered of a request does not keep the rest of it in memory", () => {
  const count = 1000
  const padded = (n: number) =>
    request(
      { Authorization: `Bearer ph_of_${n}`, "X-Padding": "x".repeat(7000) },
      LINE.replace("acme", `acme-and-others-${n}`),
    )
  const heapUsed = () => {
    gc()
    return process.memoryUsage().heapUsed
  }
  read(padded(0))
  const before = heapUsed()
  const kept = Array.from({ length: count }, (_, n) => {
    const { app, authorization } = read(padded(n))!
    return [app, authorization]
  })
  expect((heapUsed() - before) / count).toBeLessThan(1000)
  expect(kept.at(-1)).toEqual([`acme-and-others-${count - 1}`, `Bearer ph_of_${count - 1}`])
})

test.each([
  [8192, true],
  [8193, false],
])("a head of %i bytes is looked at: %s", (length, isRead) => {
  const rest = request({ "X-Padding": "" }).length - "{}".length
  const text = request({ "X-Padding": "x".repeat(length - rest) })
  expect(text.indexOf("\r\n\r\n") + 4).toBe(length)
  expect(read(text) !== null).toBe(isRead)
})

test("a request that sends a message is read as it stands", () => {
  const text = request({
    "idempotency-KEY": " k 1\t",
    "Svix-Req-Id": "r-1",
    "User-Agent": "x: y",
    Accept: ["*/*", "text/plain"],
    Connection: "Keep-Alive",
  })
  expect(read(text)).toEqual({
    app: "acme",
    authorization: "Bearer ph_1_2",
    idempotencyKey: "k 1",
    requestId: "r-1",
    bodyFrom: text.length - 2,
    bodyTo: text.length,
  })
})

test.each([
  "application/json",
  "Application/JSON",
  "application/json; charset=utf-8",
  "application/json;charset=UTF-8",
])("%s is JSON", (type) => {
  expect(read(request({ "Content-Type": type }))).not.toBeNull()
})

describe("is the HTTP server's:", () => {
  test.each<[string, string]>([
    ["nothing", ""],
    ["a head without its end", request().slice(0, -4)],
    ["another method", request({}, "PUT /api/v1/app/acme/msg HTTP/1.1")],
    ["a method in small letters", request({}, "post /api/v1/app/acme/msg HTTP/1.1")],
    ["another path", request({}, "POST /api/v1/app/acme/endpoint HTTP/1.1")],
    ["a path below it", request({}, "POST /api/v1/app/acme/msg/expunge-all-contents HTTP/1.1")],
    ["a slash at the end", request({}, "POST /api/v1/app/acme/msg/ HTTP/1.1")],
    ["a query", request({}, "POST /api/v1/app/acme/msg?with_content=false HTTP/1.1")],
    ["a whole URL", request({}, "POST http://x/api/v1/app/acme/msg HTTP/1.1")],
    ["an escaped name", request({}, "POST /api/v1/app/ac%6De/msg HTTP/1.1")],
    ["a name of two parts", request({}, "POST /api/v1/app/acme/x/msg HTTP/1.1")],
    ["an empty name", request({}, "POST /api/v1/app//msg HTTP/1.1")],
    ["a name that is too long", request({}, `POST /api/v1/app/${"a".repeat(257)}/msg HTTP/1.1`)],
    ["HTTP/1.0", request({}, "POST /api/v1/app/acme/msg HTTP/1.0")],
    ["two spaces", request({}, "POST  /api/v1/app/acme/msg HTTP/1.1")],
    ["no host", request({ Host: null })],
    ["no key", request({ Authorization: null })],
    ["no length", request({ "Content-Length": null })],
    ["no type", request({ "Content-Type": null })],
    ["another type", request({ "Content-Type": "text/plain" })],
    ["another charset", request({ "Content-Type": "application/json; charset=latin1" })],
    ["two hosts", request({ Host: ["a", "b"] })],
    ["two keys", request({ Authorization: ["Bearer a", "Bearer b"] })],
    ["two lengths", request({ "Content-Length": ["2", "2"] })],
    ["two idempotency keys", request({ "Idempotency-Key": ["a", "b"] })],
    ["a length with a sign", request({ "Content-Length": "+2" })],
    ["a length with a point", request({ "Content-Length": "2.0" })],
    ["a length in another base", request({ "Content-Length": "0x2" })],
    ["a length of ten digits", request({ "Content-Length": "0000000002" })],
    ["a list of lengths", request({ "Content-Length": "2, 2" })],
    ["chunks", request({ "Transfer-Encoding": "chunked" })],
    ["chunks instead of a length", request({ "Transfer-Encoding": "chunked", "Content-Length": null })],
    ["an expectation", request({ Expect: "100-continue" })],
    ["an upgrade", request({ Upgrade: "h2c", Connection: "upgrade" })],
    ["the last request", request({ Connection: "close" })],
    ["a list of connection options", request({ Connection: "keep-alive, te" })],
    ["a packed body", request({ "Content-Encoding": "gzip" })],
    ["a trailer", request({ Trailer: "x" })],
    ["a folded line", request({ "X-A": "1\r\n 2" })],
    ["a space before the colon", request().replace("Host:", "Host :")],
    ["no colon", request().replace("Host: localhost", "Host localhost")],
    ["an empty header name", request().replace("Host: localhost", "Host: localhost\r\n: x")],
    ["a bare line feed", request().replace("localhost\r\n", "localhost\n")],
    ["a bare carriage return", request({ "X-A": "1\r2" })],
    ["a NUL", request({ "X-A": "1\0" })],
    ["too many headers", request(Object.fromEntries(Array.from({ length: 61 }, (_, i) => [`X-${i}`, "1"])))],
  ])("%s", (_what, text) => {
    expect(read(text)).toBeNull()
  })
})

/** What Node's own parser makes of a request; null if it refuses it. */
async function startNode() {
  let seen: IncomingMessage | null = null
  const server = createServer((message, response) => {
    seen = message
    message.resume().on("end", () => response.end())
  })
  server.on("clientError", (_error, socket) => socket.destroy())
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  onTestFinished(() => void server.close())
  return async (text: string) => {
    seen = null
    const socket = connect((server.address() as AddressInfo).port, "127.0.0.1").on("error", () => {})
    const answered = new Promise((resolve) => socket.once("data", resolve).once("close", resolve))
    socket.write(text, "latin1")
    await answered
    socket.destroy()
    return seen as IncomingMessage | null
  }
}

test("what is read here, Node's HTTP server reads in the same way", async () => {
  const node = await startNode()
  const spice = fc.constantFrom(
    "",
    " ",
    "\t",
    ":",
    ",",
    ";",
    "\r\n",
    "\n",
    "\r",
    "\0",
    "x",
    "é",
    "\xa0",
    "\x85",
    "2",
    "-",
    "chunked",
    "keep-alive",
  )
  const name = fc.oneof(
    fc.constantFrom(
      "host",
      "Authorization",
      "content-length",
      "CONTENT-TYPE",
      "idempotency-key",
      "svix-req-id",
    ),
    fc.constantFrom("connection", "transfer-encoding", "expect", "x-other", "accept"),
    fc.string({ maxLength: 4 }),
  )
  const line = fc
    .tuple(name, spice, fc.array(spice, { maxLength: 3 }))
    .map(([n, s, v]) => `${n}${s}: ${v.join("")}`)
  let both = 0
  await fc.assert(
    fc.asyncProperty(fc.array(line, { maxLength: 3 }), fc.nat({ max: 4 }), async (extra, at) => {
      const [first, ...rest] = request().slice(0, -6).split("\r\n")
      const lines = [...rest.slice(0, at), ...extra, ...rest.slice(at)]
      const text = `${[first, ...lines].join("\r\n")}\r\n\r\n{}`
      const head = read(text)
      if (head === null) return
      const seen = await node(text)
      expect(seen).not.toBeNull()
      expect(seen).toMatchObject({ url: `/api/v1/app/${head.app}/msg`, method: "POST", httpVersion: "1.1" })
      expect(seen!.headers.authorization).toBe(head.authorization)
      expect(seen!.headers["idempotency-key"]).toBe(head.idempotencyKey)
      expect(seen!.headers["svix-req-id"]).toBe(head.requestId)
      expect(Number(seen!.headers["content-length"])).toBe(head.bodyTo - head.bodyFrom)
      expect(seen!.headers["transfer-encoding"]).toBeUndefined()
      both++
    }),
    { numRuns: 2000, seed: 1861 },
  )
  expect(both).toBeGreaterThan(100)
})
