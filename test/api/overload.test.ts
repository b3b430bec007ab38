/** Overload: requests are refused early with Retry-After, and no accepted message is lost. */
import { once } from "node:events"
import { connect, type Socket } from "node:net"
import { expect, onTestFinished, test } from "vitest"
import type { Store } from "../../src/store/store.ts"
import { probeRoutes } from "./support/probe.ts"
import { ApiServer } from "./support/server.ts"

/** A gate that requests wait at; resolves `reached` when so many stand there. */
function gate(count: number) {
  const opened = Promise.withResolvers<void>()
  const reached = Promise.withResolvers<void>()
  let waiting = 0
  const wait = () => {
    if (++waiting === count) reached.resolve()
    return opened.promise
  }
  return { wait, reached: reached.promise, open: opened.resolve }
}

test("a flood is answered at once: accepted and in the store, or refused with Retry-After", async () => {
  const { promise: opened, resolve: open } = Promise.withResolvers<void>()
  const server = await ApiServer.start({ routes: [probeRoutes({ created: () => opened })], maxRequests: 10 })
  const create = async (n: number) => {
    const answer = await server.call("POST", "/app", { body: { name: `app ${n}` } })
    if (answer.status === 503) open()
    return answer
  }
  const answers = await Promise.all(Array.from({ length: 300 }, (_, n) => create(n)))
  const statuses = new Set(answers.map(({ status }) => status))
  expect([...statuses].sort()).toEqual([201, 503])
  for (const { status, headers, body } of answers)
    if (status === 503) {
      expect(headers.get("retry-after")).toBe("1")
      expect(body.code).toBe("overloaded")
    }
  const accepted = answers.filter(({ status }) => status === 201).map(({ body }) => body.id)
  const inStore = new Set<string>()
  for (let cursor: string | null = null, done = false; !done; ) {
    const page = await server.posthorn.applications.list({ limit: 250, cursor })
    for (const { id } of page.data) inStore.add(id)
    ;({ cursor, done } = page)
  }
  expect(inStore).toEqual(new Set(accepted))
  expect(await server.call("GET", "/app")).toMatchObject({ status: 200 })
})

test("while all places are taken nobody gets another, and then somebody does", async () => {
  const { wait, reached, open } = gate(3)
  const server = await ApiServer.start({ routes: [probeRoutes({ wait })], maxRequests: 3 })
  const waiting = Array.from({ length: 3 }, () => server.call("GET", "/wait"))
  await reached
  expect(await server.call("GET", "/app")).toMatchObject({ status: 503 })
  open()
  for (const answer of await Promise.all(waiting)) expect(answer.status).toBe(204)
  expect(await server.call("GET", "/app")).toMatchObject({ status: 200 })
})

/** Starts a POST without a key, whose body never comes; resolves with the status line when the server answers. */
function slowPost({ url }: ApiServer, path: string, length: number): Promise<string> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  onTestFinished(() => void socket.destroy())
  socket.write(`POST ${path} HTTP/1.1\r\nhost: ${hostname}\r\ncontent-type: application/json\r\n`)
  socket.write(`content-length: ${length}\r\n\r\n{`)
  return once(socket, "data").then(([bytes]) => String(bytes).split("\r\n")[0]!)
}

test("bodies that strangers send slowly take no place of callers with a key", async () => {
  const server = await ApiServer.start({ maxRequests: 4 })
  const answers = Array.from({ length: 8 }, () => slowPost(server, "/api/v1/auth/session", 100))
  // One place in four is theirs.
  expect(await Promise.any(answers)).toMatch(/503/)
  const all = Array.from({ length: 4 }, () => server.call("GET", "/app"))
  for (const { status } of await Promise.all(all)) expect(status).toBe(200)
  expect(await server.call("POST", "/app", { body: { name: "Acme" } })).toMatchObject({ status: 201 })
})

test("strangers with large bodies leave room to sign in, and an unknown path is refused without its body", async () => {
  const server = await ApiServer.start()
  const strangers = (path: string) =>
    Promise.all(Array.from({ length: 20 }, () => slowPost(server, path, 1_000_000)))
  expect(new Set(await strangers("/nowhere"))).toEqual(new Set(["HTTP/1.1 404 Not Found"]))
  expect(new Set(await strangers("/api/v1/health"))).toEqual(new Set(["HTTP/1.1 405 Method Not Allowed"]))
  expect(new Set(await strangers("/api/v1/auth/session"))).toEqual(
    new Set(["HTTP/1.1 413 Payload Too Large"]),
  )
  const waiting = Array.from({ length: 20 }, () => slowPost(server, "/api/v1/auth/session", 4000))
  const body = { key: server.key, cookie: false }
  expect(await server.call("POST", "/auth/session", { key: null, body })).toMatchObject({ status: 201 })
  expect(await Promise.race([...waiting, "none was answered"])).toBe("none was answered")
  const long = await server.call("POST", "/auth/session", { body: { key: "x".repeat(5000) } })
  expect(long).toMatchObject({ status: 413, body: { detail: "the body is larger than 4096 bytes" } })
})

/** Long enough to reach the handler on a busy machine. */
const HANDLER_MS = 1500
const timeouts = { headersMs: 10_000, requestMs: 10_000, handlerMs: HANDLER_MS }

/** Connections that ask for a long page and read none of the answers, until the buffers of the operating system are full. */
async function deafReaders({ url }: ApiServer): Promise<void> {
  const { hostname, port } = new URL(url)
  const sockets = Array.from({ length: 20 }, () => connect(Number(port), hostname).pause())
  onTestFinished(() => sockets.forEach((socket) => void socket.destroy()))
  for (const socket of sockets) socket.on("error", () => {})
  const ask = async () => {
    for (const socket of sockets) socket.write(`GET /openapi.json HTTP/1.1\r\nhost: ${hostname}\r\n\r\n`)
    const statuses = new Set<number>()
    // One refusal may be for the requests that were just sent.
    for (let n = 0; n < 5; n++) statuses.add(await statusOf(`${url}/openapi.json`))
    return [...statuses]
  }
  await expect.poll(ask, { timeout: 20_000 }).toEqual([503])
}

const statusOf = async (url: string) => (await fetch(url)).status

test("strangers who read no answers take no place of callers with a key, of sign-ins or of pages", async () => {
  const server = await ApiServer.start({ maxRequests: 8 })
  await deafReaders(server)
  expect(await server.call("POST", "/app", { body: { name: "Acme" } })).toMatchObject({ status: 201 })
  const all = Array.from({ length: 8 }, () => server.call("GET", "/app"))
  for (const { status } of await Promise.all(all)) expect(status).toBe(200)
  const body = { key: server.key, cookie: false }
  expect(await server.call("POST", "/auth/session", { key: null, body })).toMatchObject({ status: 201 })
  expect(await (await fetch(server.url)).text()).not.toContain("overloaded")
  expect(await statusOf(`${server.url}/openapi.json`)).toBe(503)
})

test("a connection on which nothing moves is closed, and its place is free", async () => {
  const server = await ApiServer.start({ maxRequests: 4, timeouts: { ...timeouts, silenceMs: 3000 } })
  await deafReaders(server)
  const document = `${server.url}/openapi.json`
  await expect.poll(() => statusOf(document), { timeout: 20_000 }).toBe(200)
})

test("health is answered all the same", async () => {
  const server = await ApiServer.start({ maxRequests: 0 })
  expect(await server.call("GET", "/health", { key: null })).toMatchObject({ status: 200 })
  expect(await server.call("GET", "/health/ping", { key: null })).toMatchObject({ status: 204 })
  expect(await fetch(`${server.url}/docs`)).toMatchObject({ status: 503 })
})

test("a client that goes away while its request is worked on makes no room before the work is done", async () => {
  const { wait, reached, open } = gate(1)
  const server = await ApiServer.start({ routes: [probeRoutes({ wait })], maxRequests: 1 })
  const connected = once(server.app.server, "connection") as Promise<[Socket]>
  const leaving = new AbortController()
  const gone = fetch(`${server.url}/api/v1/wait`, { signal: leaving.signal }).catch(() => "gone")
  await reached
  leaving.abort()
  expect(await gone).toBe("gone")
  const [socket] = await connected
  if (!socket.closed) await once(socket, "close")
  expect(await server.call("GET", "/app")).toMatchObject({ status: 503 })
  open()
  await expect.poll(async () => (await server.call("GET", "/app")).status).toBe(200)
})

/** A store that neither reads nor writes an entry while it is held: no key, and no answer. */
function stalling() {
  const state = { held: null as Promise<void> | null }
  const wrapStore = (store: Store) =>
    new Proxy(store, {
      get(target, name) {
        const value = Reflect.get(target, name)
        if (typeof value !== "function") return value
        if (name !== "getEntry" && name !== "saveEntryIfUnchanged") return value.bind(target)
        return async (...args: unknown[]) => {
          await state.held
          return value.apply(target, args)
        }
      },
    })
  return { state, wrapStore }
}

const post = (server: ApiServer, key: string) =>
  server.call("POST", "/app", { body: { name: "x" }, headers: { "idempotency-key": key } })

test("a request that timed out keeps its place until the work on it is done", async () => {
  const { state, wrapStore } = stalling()
  const { wait, reached, open } = gate(2)
  const routes = [probeRoutes({ wait, created: wait })]
  const server = await ApiServer.start({ routes, wrapStore, maxRequests: 2, timeouts })
  await server.call("GET", "/app")
  const late = [server.call("GET", "/wait", { key: null }), post(server, "k-1")]
  await reached
  const stall = Promise.withResolvers<void>()
  state.held = stall.promise
  for (const answer of await Promise.all(late))
    expect(answer).toMatchObject({ status: 503, body: { code: "timeout" } })
  for (let n = 0; n < 3; n++)
    expect(await server.call("GET", "/app")).toMatchObject({ status: 503, body: { code: "overloaded" } })
  open()
  await expect.poll(async () => (await server.call("GET", "/wait", { key: null })).status).toBe(204)
  stall.resolve()
  await expect.poll(async () => (await post(server, "k-1")).status).toBe(201)
  expect((await server.posthorn.applications.list()).data).toHaveLength(1)
})

test("while the store stalls before the handlers, no more are let in than there are places", async () => {
  const { state, wrapStore } = stalling()
  const server = await ApiServer.start({ routes: [probeRoutes()], wrapStore, maxRequests: 3, timeouts })
  const stall = Promise.withResolvers<void>()
  state.held = stall.promise
  const first = await Promise.all(["k-1", "k-2", "k-3"].map((key) => post(server, key)))
  expect(first.map(({ body }) => body.code)).toEqual(["timeout", "timeout", "timeout"])
  expect((await post(server, "k-4")).body.code).toBe("overloaded")
  stall.resolve()
  await expect.poll(async () => (await post(server, "k-1")).status).toBe(201)
  expect((await server.posthorn.applications.list()).data).toHaveLength(1)
})

test("a store that stalls while an answer is kept costs that answer, and nothing else", async () => {
  const stall = Promise.withResolvers<void>()
  let saved = 0
  const wrapStore = (store: Store): Store => ({
    ...store,
    async saveEntryIfUnchanged(entry) {
      // The first begins the record, the second has the answer.
      if (entry.kind === "answer" && ++saved === 2) await stall.promise
      return store.saveEntryIfUnchanged(entry)
    },
  })
  const server = await ApiServer.start({ wrapStore, timeouts })
  expect(await post(server, "k-1")).toMatchObject({ status: 503, body: { code: "timeout" } })
  expect(await post(server, "k-2")).toMatchObject({ status: 201 })
  stall.resolve()
  await expect.poll(async () => (await post(server, "k-1")).status).toBe(201)
  expect((await server.posthorn.applications.list()).data).toHaveLength(2)
})

test("bodies that are announced are counted before they are read", async () => {
  const server = await ApiServer.start({
    routes: [probeRoutes()],
    maxPayloadBytes: 1000,
    maxBodyBytes: 100_000,
  })
  const begin = (length: number) => {
    const socket = connect(Number(new URL(server.url).port), "127.0.0.1")
    onTestFinished(() => void socket.destroy())
    socket.write(
      `POST /api/v1/app HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${server.key}\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${length}\r\nExpect: 100-continue\r\n\r\n`,
    )
    return {
      socket,
      answered: new Promise<string>((resolve) => socket.once("data", (data) => resolve(`${data}`))),
    }
  }
  const first = begin(60_000)
  expect(await first.answered).toMatch(/^HTTP\/1.1 100/)
  await expect
    .poll(async () => (await server.call("POST", "/app", { raw: " ".repeat(50_000) })).status)
    .toBe(503)
  expect(await server.call("POST", "/app", { body: { name: "small" } })).toMatchObject({ status: 201 })
  first.socket.destroy()
  await expect
    .poll(async () => (await server.call("POST", "/app", { raw: " ".repeat(50_000) })).status)
    .toBe(422)
})

test("without a key nothing is counted for a body", async () => {
  const server = await ApiServer.start({ routes: [probeRoutes()], maxBodyBytes: 100 })
  const answer = await server.call("POST", "/app", { key: null, raw: " ".repeat(5000) })
  expect(answer).toMatchObject({ status: 401 })
})
