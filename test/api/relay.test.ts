/** Agents over real WebSockets: keys, refusals, frames that no agent sends, and what an agent's key reaches. */
import { once } from "node:events"
import { connect, type Socket } from "node:net"
import { expect, onTestFinished, test } from "vitest"
import { WebSocket } from "ws"
import {
  CLOSE,
  type EventFrame,
  MOST_AGENT_FRAME_BYTES,
  RELAY_PATH,
  RELAY_PROTOCOL,
  type ServerFrame,
} from "../../src/core/relay-protocol.ts"
import type { KeyInput } from "../../src/resources/keys.ts"
import { Watchers } from "../support/watchers.ts"
import { EventReader } from "./support/event-reader.ts"
import { ApiServer, type ApiServerOptions } from "./support/server.ts"

class Client {
  readonly frames: ServerFrame[] = []
  closed: { readonly code: number; readonly reason: string } | null = null
  readonly #socket: WebSocket
  readonly #watchers = new Watchers()

  constructor(socket: WebSocket) {
    this.#socket = socket
    socket.on("message", (data) => {
      this.frames.push(JSON.parse(String(data)))
      this.#watchers.changed()
    })
    socket.on("close", (code, reason) => {
      this.closed = { code, reason: String(reason) }
      this.#watchers.changed()
    })
    socket.on("error", () => {})
  }

  say(frame: object | string | Buffer): void {
    this.#socket.send(typeof frame === "string" || Buffer.isBuffer(frame) ? frame : JSON.stringify(frame))
  }

  async came<K extends ServerFrame["kind"]>(kind: K, count = 1): Promise<Extract<ServerFrame, { kind: K }>> {
    const all = () => this.frames.filter((one): one is Extract<ServerFrame, { kind: K }> => one.kind === kind)
    await this.#watchers.until(() => all().length >= count || this.closed !== null)
    if (all().length < count) throw new Error(`closed: ${JSON.stringify(this.closed)}`)
    return all()[count - 1]!
  }

  ended(): Promise<void> {
    return this.#watchers.until(() => this.closed !== null)
  }

  get socket(): WebSocket {
    return this.#socket
  }
}

async function start(options: ApiServerOptions = {}) {
  const server = await ApiServer.start(options)
  const { posthorn } = server
  const app = async (uid: string, tenant = posthorn.context.orgId) => {
    const of = posthorn.tenant(tenant)
    await of.applications.create({ uid, name: uid })
    const { id } = await of.endpoints.create(uid, { url: "relay://hub", retry: "relay" })
    return id
  }
  const key = async (input: Partial<KeyInput> = {}) =>
    (await posthorn.keys.create({ name: "hub", scope: "agent", appId: "acme", ...input })).token
  const open = async (token: string | null, path = RELAY_PATH, protocol = RELAY_PROTOCOL) => {
    const headers = token === null ? {} : { authorization: `Bearer ${token}` }
    const socket = new WebSocket(`${server.url.replace("http", "ws")}${path}`, protocol, { headers })
    socket.on("error", () => {})
    onTestFinished(() => socket.terminate())
    return socket
  }
  const join = async (token: string, name = "hub") => {
    const socket = await open(token)
    const client = new Client(socket)
    await once(socket, "open")
    client.say({ kind: "hello", agent: name, version: "test" })
    await client.came("welcome")
    return client
  }
  const send = (uid = "acme") => posthorn.send(uid, { eventType: "door.opened", payload: { n: 1 } })
  return { server, posthorn, app, key, open, join, send }
}

const ackOf = ({ id, attempt, token }: EventFrame, result = "success") => ({
  kind: "ack",
  id,
  attempt,
  token,
  result,
})

test("an agent gets the events of its endpoint, and its acknowledgement is their outcome", async () => {
  const { app, join, key, posthorn, send } = await start()
  await app("acme")
  const client = await join(await key())
  const { id } = await send()
  const event = await client.came("event")
  expect(event.messageId).toBe(id)
  client.say(ackOf(event))
  expect(await client.came("settled")).toMatchObject({ id: event.id, status: "delivered" })
  expect(await posthorn.deliveries.get(event.id)).toMatchObject({ status: "delivered", attemptCount: 1 })
})

test("an endpoint that is created while its agent is connected is served at once", async () => {
  const { join, key, posthorn, send } = await start()
  await posthorn.applications.create({ uid: "acme", name: "Acme" })
  const client = await join(await key())
  await posthorn.endpoints.create("acme", { url: "relay://hub" })
  await send()
  client.say(ackOf(await client.came("event")))
  await client.came("settled")
})

async function refusalOf(
  socket: WebSocket,
): Promise<{ status: number; body: { code: string; detail: string } }> {
  const [, response] = (await once(socket, "unexpected-response")) as [
    unknown,
    import("node:http").IncomingMessage,
  ]
  const chunks = await Array.fromAsync(response)
  return { status: response.statusCode!, body: JSON.parse(Buffer.concat(chunks as Buffer[]).toString()) }
}

test.each([
  ["no key", async () => null, 401, "authentication_failed"],
  [
    "an unknown key",
    async () => "ph_0123456789abcdef_0123456789abcdef0123456789abcdef",
    401,
    "authentication_failed",
  ],
  [
    "an admin's key",
    async ({ server }: Awaited<ReturnType<typeof start>>) => server.key,
    403,
    "insufficient access",
  ],
  [
    "an application's key",
    async ({ key }: Awaited<ReturnType<typeof start>>) => key({ scope: "application" }),
    403,
    "insufficient access",
  ],
] as const)("%s is refused before the upgrade", async (_what, tokenOf, status, code) => {
  const world = await start()
  await world.app("acme")
  const socket = await world.open(await tokenOf(world))
  expect(await refusalOf(socket)).toMatchObject({ status, body: { code, detail: expect.any(String) } })
})

test("another subprotocol is refused with the one that is spoken", async () => {
  const { app, key, open } = await start()
  await app("acme")
  const socket = await open(await key(), RELAY_PATH, "mqtt")
  expect(await refusalOf(socket)).toMatchObject({
    status: 400,
    body: { detail: expect.stringContaining(RELAY_PROTOCOL) },
  })
})

test("a request without an upgrade, as a proxy makes it that passes no WebSockets, is told so", async () => {
  const { server, key } = await start()
  await server.posthorn.applications.create({ uid: "acme", name: "Acme" })
  const headers = { authorization: `Bearer ${await key()}` }
  const response = await fetch(`${server.url}${RELAY_PATH}`, { headers })
  expect([response.status, response.headers.get("upgrade")]).toEqual([426, "websocket"])
  expect(await response.json()).toEqual({
    code: "upgrade_required",
    detail: expect.stringContaining("a proxy in between must pass on the headers Upgrade and Connection"),
  })
})

test("an upgrade to another protocol or path is answered as plain HTTP", async () => {
  const { server } = await start()
  const { hostname, port } = new URL(server.url)
  const socket = connect(Number(port), hostname)
  onTestFinished(() => void socket.destroy())
  socket.write("GET /api/v1/health/ping HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n")
  const [first] = (await once(socket, "data")) as [Buffer]
  expect(first.toString()).toMatch(/^HTTP\/1\.1 204/)
})

test("an agent's key reaches its own endpoints, and nothing else", async () => {
  const { app, join, key, posthorn, send, server } = await start()
  const endpointId = await app("acme")
  await app("other")
  const second = await posthorn.endpoints.create("acme", { url: "relay://hub", uid: "second" })
  const token = await key({ endpointIds: [endpointId] })
  const client = await join(token)
  await send("other")
  await send("acme")
  const event = await client.came("event")
  expect(event.endpointId).toBe(endpointId)
  client.say(ackOf(event))
  await client.came("settled")
  expect(client.frames.filter(({ kind }) => kind === "event")).toHaveLength(1)
  expect(await posthorn.deliveries.list({ endpoint: second.id, app: "acme" })).toMatchObject({
    data: [{ status: "pending", attemptCount: 0 }],
  })
  for (const [method, path] of [
    ["GET", "/app"],
    ["GET", "/app/acme"],
    ["GET", "/app/acme/endpoint"],
    ["GET", "/auth/whoami"],
    ["GET", "/events"],
    ["POST", "/app/acme/msg"],
  ] as const) {
    const body = method === "POST" ? { body: { eventType: "a", payload: {} } } : {}
    expect([path, (await server.call(method, path, { key: token, ...body })).status]).toEqual([path, 403])
  }
})

test("a key that is revoked ends its agent's connection", async () => {
  const { app, join, key, posthorn } = await start()
  await app("acme")
  const token = await key()
  const client = await join(token)
  await posthorn.keys.revoke(token.split("_")[1]!)
  await posthorn.agentHub!.checkOnce()
  await client.ended()
  expect(client.closed).toMatchObject({ code: 4401 })
})

test("the newest connection of an agent replaces the older one", async () => {
  const { app, join, key, send } = await start()
  await app("acme")
  const token = await key()
  const old = await join(token)
  const client = await join(token)
  await old.ended()
  expect(old.closed).toMatchObject({ code: 4409 })
  await send()
  client.say(ackOf(await client.came("event")))
  await client.came("settled")
})

test("an agent that says hello twice is closed, and nobody counts as connected after it", async () => {
  const { app, key, open, posthorn } = await start()
  await app("acme")
  const socket = await open(await key())
  const client = new Client(socket)
  await once(socket, "open")
  for (const agent of ["hub", "ghost"]) client.say({ kind: "hello", agent, version: "test" })
  await client.ended()
  expect(client.closed).toMatchObject({ code: 4400 })
  await expect
    .poll(async () => (await posthorn.agents.list()).data.map(({ name, connected }) => [name, connected]), {
      timeout: 20_000,
    })
    .toEqual([["hub", false]])
  expect(posthorn.agentHub!.counts.agents).toBe(0)
})

test("two tenants may have agents of one name", async () => {
  const { app, join, key, posthorn, send } = await start()
  await app("acme")
  await app("acme", "org_other")
  const other = await posthorn.tenant("org_other").keys.create({ name: "hub", scope: "agent", appId: "acme" })
  const [ours, theirs] = [await join(await key()), await join(other.token)]
  await send()
  ours.say(ackOf(await ours.came("event")))
  await ours.came("settled")
  expect(theirs.frames.map(({ kind }) => kind)).toEqual(["welcome"])
  expect(theirs.closed).toBeNull()
})

test.each([
  ["binary", Buffer.from([0, 1, 2]), 1003],
  ["larger than the limit", "x".repeat(MOST_AGENT_FRAME_BYTES + 1), 1009],
  ["not JSON", "hello", 4400],
  [
    "another tenant's delivery",
    { kind: "ack", id: "dlv_x", attempt: 1, token: "t", result: "success" },
    4403,
  ],
] as const)("a frame that is %s closes that connection alone", async (_what, frame, code) => {
  const { app, join, key, posthorn, send } = await start()
  await app("acme")
  await posthorn.applications.create({ uid: "other", name: "other" })
  await posthorn.endpoints.create("other", { url: "relay://hub" })
  const neighbour = await join(await key({ appId: "other" }))
  const client = await join(await key())
  client.say(frame as string)
  await client.ended()
  expect(client.closed!.code).toBe(code)
  await send("other")
  neighbour.say(ackOf(await neighbour.came("event")))
  await neighbour.came("settled")
})

/** A WebSocket without a library, for frames that no library writes. */
async function rawSocket(url: string, token: string): Promise<Socket> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  onTestFinished(() => void socket.destroy())
  socket.on("error", () => {})
  socket.write(
    `GET ${RELAY_PATH} HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n` +
      `sec-websocket-key: ${Buffer.alloc(16).toString("base64")}\r\nsec-websocket-protocol: ${RELAY_PROTOCOL}\r\nauthorization: Bearer ${token}\r\n\r\n`,
  )
  await once(socket, "data")
  return socket
}

test("a flood of fragments and of pings is cut, and the server's memory stays bounded", async () => {
  const { app, key, server } = await start()
  await app("acme")
  const token = await key()
  const before = process.memoryUsage.rss()
  // A text frame of one byte that says that more follows; masked with zeros.
  const fragment = Buffer.from([0x00, 0x81, 0, 0, 0, 0, 0x61])
  const first = Buffer.from([0x01, 0x81, 0, 0, 0, 0, 0x61])
  const ping = Buffer.from([0x89, 0x80, 0, 0, 0, 0])
  for (const flood of [
    Buffer.concat([first, ...Array(100_000).fill(fragment)]),
    Buffer.concat(Array(100_000).fill(ping)),
  ]) {
    const socket = await rawSocket(server.url, token)
    const closed = new Promise((resolve) => socket.on("close", resolve))
    socket.resume()
    socket.write(flood)
    await closed
  }
  expect(process.memoryUsage.rss() - before).toBeLessThan(100_000_000)
})

test("an agent that pings without end is told why its connection is closed", async () => {
  const { app, join, key } = await start()
  await app("acme")
  const client = await join(await key())
  for (let i = 0; i < 1000; i++) client.socket.ping()
  await client.ended()
  expect(client.closed).toMatchObject({
    code: CLOSE.flood,
    reason: expect.stringContaining("frames without a use"),
  })
})

test("a server that stops asks its agents to leave, and ends when they have", async () => {
  const { server, app, join, key } = await start({ closeTimeoutMs: 600_000 })
  await app("acme")
  const client = await join(await key())
  const stopped = server.app.close()
  await client.came("drain")
  client.socket.close(1000)
  await stopped
})

test("an agent that does not leave a server that stops is cut off after the timeout", async () => {
  const { server, app, join, key } = await start({ closeTimeoutMs: 10 })
  await app("acme")
  const client = await join(await key())
  await server.app.close()
  await client.ended()
  expect(client.frames.at(-1)).toEqual({ kind: "drain" })
})

test("refused connections are counted by the reason, and a frame that is too large as such", async () => {
  const { app, join, key, open, posthorn, server } = await start({ options: { metrics: true } })
  await app("acme")
  const token = await key()
  await refusalOf(await open(null))
  await refusalOf(await open(server.key))
  await refusalOf(await open(token, RELAY_PATH, "mqtt"))
  const client = await join(token)
  client.say("x".repeat(MOST_AGENT_FRAME_BYTES + 1))
  await client.ended()
  const text = await posthorn.registry!.metrics()
  const counted = text.split("\n").filter((line) => /^posthorn_relay_connections_total.* [1-9]/.test(line))
  expect(counted).toEqual([
    'posthorn_relay_connections_total{result="accepted"} 1',
    'posthorn_relay_connections_total{result="refused_key"} 2',
    'posthorn_relay_connections_total{result="refused_protocol"} 1',
    'posthorn_relay_connections_total{result="closed_too_big"} 1',
  ])
})

test("live events tell of agents, to keys of their application and no other", async () => {
  const { app, join, key, posthorn, server } = await start()
  const endpointId = await app("acme")
  await app("other")
  const portal = async (appId: string) =>
    (await posthorn.keys.create({ name: appId, scope: "application", appId })).token
  const kinds = "kind=agent.connected&kind=agent.disconnected"
  const ours = await EventReader.open(server.url, { key: await portal("acme"), query: `?${kinds}` })
  const theirs = await EventReader.open(server.url, { key: await portal("other"), query: `?${kinds}` })
  const ofEndpoint = await EventReader.open(server.url, {
    ...{ key: server.key, query: `?app_id=acme&endpoint_id=${endpointId}` },
  })
  const client = await join(await key())
  client.socket.close(1000)
  await ours.until(() => ours.events.length === 2)
  expect(ours.events.map(({ kind, data }) => [kind, data.agent, data.reason])).toEqual([
    ["agent.connected", "hub", null],
    ["agent.disconnected", "hub", "done"],
  ])
  expect([theirs.events, ofEndpoint.events]).toEqual([[], []])
})

test("a refused upgrade leaves no connection behind, though its client keeps its half open", async () => {
  const { server } = await start()
  const { hostname, port } = new URL(server.url)
  const open = () =>
    new Promise<number>((resolve) => server.app.server.getConnections((_, count) => resolve(count)))
  const before = await open()
  for (let n = 0; n < 5; n++) {
    const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true })
    onTestFinished(() => void socket.destroy())
    socket.on("error", () => {})
    socket.write(`GET ${RELAY_PATH} HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n`)
    const [answer] = (await once(socket, "data")) as [Buffer]
    expect(answer.toString()).toMatch(/^HTTP\/1\.1 401/)
  }
  await expect.poll(open, { timeout: 20_000 }).toBe(before)
})
