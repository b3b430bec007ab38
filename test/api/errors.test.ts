/** Errors have Svix's shapes, and no internals leak. */
import { once } from "node:events"
import { request } from "node:http"
import { connect } from "node:net"
import { expect, test } from "vitest"
import { PosthornError } from "../../src/core/errors.ts"
import type { Store } from "../../src/store/store.ts"
import { probeRoutes } from "./support/probe.ts"
import { ApiServer } from "./support/server.ts"

const start = (more = {}) => ApiServer.start({ routes: [probeRoutes()], ...more })
const invalid = (...loc: string[]) => ({
  status: 422,
  body: { detail: [{ loc, msg: expect.any(String), type: expect.stringMatching(/^value_error/) }] },
})
const told = (status: number, code: string) => ({ status, body: { code, detail: expect.any(String) } })

test("input that does not fit names where it is", async () => {
  const server = await start()
  for (const [body, ...loc] of [
    [{}, "body", "name"],
    [{ name: 5 }, "body", "name"],
    [{ name: "" }, "body", "name"],
    [{ name: "x", nmae: "y" }, "body", "nmae"],
    [{ name: "x", kind: "huge" }, "body", "kind"],
    [{ name: "x", uid: "app_x" }, "body", "uid"],
    [{ name: "x", uid: "a b" }, "body", "uid"],
    [[], "body"],
    ["text", "body"],
  ] as const)
    expect(await server.call("POST", "/app", { body }), JSON.stringify(body)).toMatchObject(invalid(...loc))
  expect(await server.call("POST", "/app", { body: { name: "x", nmae: 1 } })).toMatchObject({
    body: { detail: [{ msg: "is not supported here; known are name, uid, kind, free" }] },
  })
  expect(await server.call("POST", "/app")).toMatchObject({
    body: { detail: [{ loc: ["body"], msg: "a JSON body is required" }] },
  })
})

test("so does a query", async () => {
  const server = await start()
  for (const [query, ...loc] of [
    ["limit=251", "query", "limit"],
    ["limit=0", "query", "limit"],
    ["limit=many", "query", "limit"],
    ["limit=1&limit=2", "query", "limit"],
    ["order=up", "query", "order"],
    ["with_content=maybe", "query", "with_content"],
    ["limits=5", "query", "limits"],
    ["iterator=%20", "query", "iterator"],
    ["__proto__=1", "query", "__proto__"],
  ] as const)
    expect(await server.call("GET", `/app?${query}`), query).toMatchObject(invalid(...loc))
  expect(await server.call("GET", "/app/acme?x=1")).toMatchObject(invalid("query", "x"))
  expect(await server.call("GET", "/app/a%20b")).toMatchObject(invalid("path", "app_id"))
})

test("lists come in every spelling, and what is left out has its default", async () => {
  const server = await start()
  for (const query of ["event_types=a,b", "event_types=a&event_types=b", "event_types[0]=a&event_types[1]=b"])
    expect((await server.call("GET", `/app?${query}&with_content=false`)).body.data[0]).toEqual({
      asked: { limit: 50, event_types: ["a", "b"], with_content: false },
    })
})

test("bodies that cannot be read", async () => {
  const server = await start({ maxPayloadBytes: 1000 })
  const post = (raw: string | Uint8Array, headers = {}) => server.call("POST", "/app", { raw, headers })
  for (const raw of [
    "{",
    "nope",
    new Uint8Array([0xff]),
    `${"[".repeat(5000)}`,
    '{"name":"x","__proto__":{}}',
  ])
    expect(await post(raw)).toMatchObject({
      status: 422,
      body: { detail: [{ loc: ["body"], type: "value_error.jsondecode" }] },
    })
  expect(await post("")).toMatchObject(invalid("body"))
  for (const type of ["text/plain", "application/x-www-form-urlencoded", "nonsense"])
    expect(await post("{}", { "content-type": type })).toMatchObject(told(415, "unsupported_media_type"))
  expect(await post("{}", { "content-encoding": "gzip" })).toMatchObject(told(415, "unsupported_media_type"))
  expect(await post(JSON.stringify({ name: "x".repeat(70_000) }))).toMatchObject(
    told(413, "payload_too_large"),
  )
  expect(await post('{"name":"x"}', { "content-type": "application/json; charset=utf-8" })).toMatchObject({
    status: 201,
  })
})

test("a body of no type may come in chunks if there is nothing in it, as Go's client sends it", async () => {
  const server = await start()
  const post = async (path: string, chunks: string[], headers = {}) => {
    const authorization = `Bearer ${server.key}`
    const options = { method: "POST", headers: { authorization, "transfer-encoding": "chunked", ...headers } }
    const sent = request(`${server.url}/api/v1${path}`, options)
    for (const chunk of chunks) sent.write(chunk)
    const [answer] = await once(sent.end(), "response")
    answer.resume()
    return answer.statusCode
  }
  expect(await post("/app", [])).toBe(422)
  expect(await post("/app", ['{"name":"x"}'])).toBe(415)
  expect(await post("/app", [], { "content-type": "text/plain" })).toBe(415)
  expect(await post("/nowhere", ["x"], { "content-type": "text/plain" })).toBe(404)
  expect(await post("/app", ['{"name":', '"x"}'], { "content-type": "application/json" })).toBe(201)
})

test("routes and methods that are not there answer in JSON", async () => {
  const server = await start()
  expect(await server.call("GET", "/nowhere")).toMatchObject(told(404, "not_found"))
  expect(await server.call("GET", `/app/${"x".repeat(300)}`)).toMatchObject(told(404, "not_found"))
  const answer = await server.call("DELETE", "/app/acme/")
  expect(answer).toMatchObject(told(405, "method_not_allowed"))
  expect(answer.headers.get("allow")).toBe("GET, HEAD")
  for (const path of ["/nowhere", "/api/v1/%zz", "/api/v2/app"]) {
    const response = await fetch(server.url + path)
    expect(response.status).toBeOneOf([400, 404])
    expect(await response.json()).toEqual({ code: expect.any(String), detail: expect.any(String) })
  }
})

test("a fault of our own says nothing of itself but where the log has it", async () => {
  const server = await start()
  const answer = await server.call("GET", "/fail", { headers: { "svix-req-id": "req-5" } })
  expect(answer).toMatchObject(told(500, "server_error"))
  expect(answer.text).not.toContain("hunter2")
  expect(answer.body.detail).toContain("req-5")
  expect(answer.headers.get("x-request-id")).toBe("req-5")
  const forged = await server.call("GET", "/refuse", { headers: { "svix-req-id": 'a"b' } })
  expect(forged).toMatchObject(told(400, "invalid_range"))
  expect(forged.headers.get("x-request-id")).toMatch(/^[\w-]{36}$/)
})

test.each([
  ["store_unavailable", 503, "1"],
  ["store_in_use", 503, "1"],
  ["store_full", 503, "30"],
  ["closed", 503, "1"],
  ["conflict", 409, null],
  ["payload_too_large", 413, null],
  ["payload_gone", 400, null],
  ["store_failed", 503, "5"],
] as const)("%s is %i", async (code, status, retryAfter) => {
  const server = await start({
    wrapStore: (store: Store) =>
      new Proxy(store, {
        get(target, name) {
          const value = Reflect.get(target, name)
          if (name === "createApplication")
            return () => Promise.reject(new PosthornError(code, "at /secret/path"))
          return typeof value === "function" ? value.bind(target) : value
        },
      }),
  })
  const answer = await server.call("POST", "/app", { body: { name: "x" } })
  expect(answer.status).toBe(status)
  expect(answer.headers.get("retry-after")).toBe(retryAfter)
  if (status >= 500) expect(answer.text).not.toContain("/secret/path")
})

test("browsers anywhere may ask", async () => {
  const server = await start()
  const preflight = await fetch(`${server.url}/api/v1/app`, {
    method: "OPTIONS",
    headers: {
      origin: "https://example.com",
      "access-control-request-method": "POST",
      "access-control-request-headers": "authorization, x-own",
    },
  })
  expect(preflight.status).toBe(204)
  expect(Object.fromEntries(preflight.headers)).toMatchObject({
    "access-control-allow-origin": "*",
    "access-control-allow-methods": "POST",
    "access-control-allow-headers": "authorization, x-own",
  })
  const answer = await server.call("GET", "/app", { key: null })
  expect(answer.headers.get("access-control-allow-origin")).toBe("*")
})

/** The answer to raw bytes, until the server closes the connection. */
function sendRaw(server: ApiServer, ...parts: (string | Uint8Array)[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(server.url).port), "127.0.0.1", () => {
      for (const part of parts) socket.write(part)
    })
    let got = ""
    socket.on("data", (chunk) => {
      got += chunk
    })
    socket.on("close", () => resolve(got))
    socket.on("error", reject)
  })
}

const TEN_MEGABYTES = new Uint8Array(10_000_000).fill(32)

test("a body of 10 MB is answered with 413 every time, and the server goes on", async () => {
  const server = await start()
  for (let n = 0; n < 10; n++)
    expect(await server.call("POST", "/app", { raw: TEN_MEGABYTES })).toMatchObject(
      told(413, "payload_too_large"),
    )
  expect(await server.call("POST", "/app", { body: { name: "small" } })).toMatchObject({ status: 201 })
})

test.each([
  ["announced", [`Content-Length: ${TEN_MEGABYTES.length}\r\n\r\n`, TEN_MEGABYTES]],
  [
    "in pieces",
    [
      `Transfer-Encoding: chunked\r\n\r\n${TEN_MEGABYTES.length.toString(16)}\r\n`,
      TEN_MEGABYTES,
      "\r\n0\r\n\r\n",
    ],
  ],
])("who sends too much, %s, can send all of it and go on on the same connection", async (_how, body) => {
  const server = await start()
  const got = await sendRaw(
    server,
    `POST /api/v1/app HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${server.key}\r\nContent-Type: application/json\r\n`,
    ...body,
    "GET /api/v1/wait HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
  )
  expect(got).toMatch(/^HTTP\/1.1 413 .*"payload_too_large".*HTTP\/1.1 204 /s)
})

test("clients that dawdle are told and cut off", async () => {
  const server = await start({ timeouts: { headersMs: 200, requestMs: 400, handlerMs: 30_000 } })
  const [headers, body] = await Promise.all([
    sendRaw(server, "POST /api/v1/app HTTP/1.1\r\nHost: x\r\n"),
    sendRaw(
      server,
      `POST /api/v1/app HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${server.key}\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{`,
    ),
  ])
  for (const answer of [headers, body]) {
    expect(answer).toMatch(/^HTTP\/1.1 408 Request Timeout\r\n/)
    expect(JSON.parse(answer.split("\r\n\r\n")[1]!)).toMatchObject({ code: "timeout" })
  }
  expect(await server.call("GET", "/app")).toMatchObject({ status: 200 })
})

test("bytes that are not HTTP, and headers without end, are refused", async () => {
  const server = await start()
  expect(await sendRaw(server, "hello\r\n\r\n")).toMatch(/^HTTP\/1.1 400 Bad Request\r\n.*"generic_error"/s)
  expect(await sendRaw(server, `GET / HTTP/1.1\r\nHost: x\r\nX: ${"x".repeat(40_000)}\r\n\r\n`)).toMatch(
    /^HTTP\/1.1 431 .*"headers_too_large"/s,
  )
})

test("a handler that does not come to an end is answered for", async () => {
  const server = await ApiServer.start({
    routes: [probeRoutes({ wait: () => new Promise(() => {}) })],
    timeouts: { headersMs: 1000, requestMs: 1000, handlerMs: 50 },
  })
  const answer = await server.call("GET", "/wait")
  expect(answer).toMatchObject(told(503, "timeout"))
  expect(answer.headers.get("retry-after")).toBe("1")
})

test("a missing field does not hide a misspelt one", async () => {
  const server = await ApiServer.start({ options: { deliver: false } })
  await server.posthorn.applications.create({ uid: "acme", name: "Acme" })
  const problems = async (path: string, body: object) =>
    (await server.call("POST", path, { body })).body.detail.map(
      ({ loc, msg }: { loc: string[]; msg: string }) => [loc.join("."), msg.split(";")[0]],
    )
  expect(await problems("/app/acme/endpoint", { ulr: "https://example.com/", colour: 1 })).toEqual([
    ["body.url", "is required"],
    ["body.ulr", "is not supported here"],
    ["body.colour", "is not supported here"],
  ])
  expect(await problems("/app/acme/msg", { eventtype: "a", payload: {} })).toEqual([
    ["body.eventType", "is required"],
    ["body.eventtype", "is not supported here"],
  ])
  expect(await problems("/app/acme/msg", { payload: {}, application: { nmae: "Acme" } })).toEqual([
    ["body.eventType", "is required"],
    ["body.application.name", "is required"],
    ["body.application.nmae", "is not supported here"],
  ])
  const messages = [
    { eventType: "a", payload: {} },
    { eventType: 5, paylaod: {} },
  ]
  expect(await problems("/app/acme/msg/batch", { messages, aplication: {} })).toEqual([
    ["body.aplication", "is not supported here"],
    ["body.messages.1.paylaod", "is not supported here"],
  ])
  expect(await problems("/app", { name: 5, nmae: "A" })).toEqual([["body.nmae", "is not supported here"]])
  const crowd = Array.from({ length: 1000 }, () => ({ eventtype: "a" }))
  expect(await problems("/app/acme/msg/batch", { messages: crowd })).toHaveLength(20)
  const many = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`x${i}`, 1]))
  expect(await problems("/app", { name: "A", ...many })).toHaveLength(20)
})

test("a body or a payload that is too large is refused with the limit and its setting", async () => {
  const maxPayloadBytes = 1000
  const server = await ApiServer.start({ maxPayloadBytes, options: { deliver: false, maxPayloadBytes } })
  await server.posthorn.applications.create({ uid: "acme", name: "Acme" })
  const send = (length: number, path = "/app/acme/msg") =>
    server.call("POST", path, { body: { eventType: "a", payload: { text: "x".repeat(length) } } })
  for (const length of [1000, 100_000])
    expect(await send(length)).toMatchObject({
      status: 413,
      body: { detail: expect.stringMatching(/\b1000\b.*maxPayloadBytes, POSTHORN_MAX_PAYLOAD_BYTES/) },
    })
  expect((await send(100_000)).body.detail).toContain("all messages of a batch share them")
})

test("a refused value is named as the request names it", async () => {
  const server = await ApiServer.start()
  await server.call("POST", "/app", { body: { name: "Acme", uid: "acme" } })
  const url = "https://example.com/"
  await server.call("POST", "/app/acme/endpoint", { body: { url, uid: "hook" } })
  const refused = async (method: string, path: string, body: object) =>
    (await server.call(method, path, { body })).body.detail.map(({ loc }: { loc: string[] }) => loc)
  const rotate = "/app/acme/endpoint/hook/secret/rotate"
  expect(await refused("POST", rotate, { key: "bad" })).toEqual([["body", "key"]])
  expect(await refused("PUT", "/retry-policy/x", { delay: 1 })).toEqual([["body", "delay"]])
})
