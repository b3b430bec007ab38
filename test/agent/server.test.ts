/** The agent and a real server, over real sockets: forwarding, outcomes, keys, and a cut connection. */
import { expect, onTestFinished, test } from "vitest"
import { type AgentOptions, connectAgent } from "../../src/index.ts"
import { ApiServer } from "../api/support/server.ts"
import { FaultProxy } from "../support/fault-proxy.ts"
import { Receiver } from "../support/receiver.ts"
import { Watchers } from "../support/watchers.ts"

async function start() {
  const server = await ApiServer.start()
  const { posthorn } = server
  const local = await Receiver.start()
  onTestFinished(() => local.close())
  await posthorn.applications.create({ uid: "acme", name: "Acme" })
  await posthorn.endpoints.create("acme", { url: "relay://hub", retry: { delays: [0.01], maxAttempts: 3 } })
  const { token: key, id: keyId } = await posthorn.keys.create({ name: "hub", scope: "agent", appId: "acme" })
  const said: string[] = []
  const watchers = new Watchers()
  const connect = (options: Partial<AgentOptions> = {}) => {
    const keep = (text: string) => {
      said.push(text)
      watchers.changed()
    }
    const agent = connectAgent({
      server: server.url,
      key,
      name: "hub",
      logger: "silent",
      ...(options.handle === undefined ? { forward: local.url("/hooks") } : {}),
      onConnected: () => keep("connected"),
      onDisconnected: ({ reason }) => keep(reason),
      onHandled: ({ outcome, isRepeated }) =>
        keep(isRepeated ? `repeated ${outcome.result}` : outcome.result),
      onSettled: ({ status }) => keep(`settled ${status}`),
      ...options,
    })
    onTestFinished(() => agent.close())
    return agent
  }
  const heard = (text: string, times = 1) =>
    watchers.until(() => said.filter((one) => one === text).length >= times)
  return { server, posthorn, local, key, keyId, connect, heard }
}

test("a webhook that a source takes in reaches the local program as it came", async () => {
  const { server, posthorn, local, connect, heard } = await start()
  const source = await posthorn.sources.create("acme", { name: "shop", verification: "none" })
  connect()
  await heard("connected")
  const body = Buffer.from([0, 255, 10, 13, 128])
  const response = await fetch(`${server.url}/in/${source.token}/orders/a%20b?c=%2F`, {
    method: "PUT",
    headers: { "X-Shop": "1", "content-type": "application/octet-stream" },
    body,
  })
  expect(response.status).toBe(202)
  await heard("settled delivered")
  const [got] = local.requests
  expect(got).toMatchObject({
    path: "/hooks/orders/a%20b?c=%2F",
    headers: {
      host: new URL(local.url()).host,
      "x-shop": "1",
      "content-type": "application/octet-stream",
      "posthorn-message-id": expect.stringMatching(/^msg_/),
      "posthorn-delivery-id": expect.stringMatching(/^dlv_/),
      "posthorn-attempt": "1",
    },
  })
  expect(got!.body.equals(body)).toBe(true)
})

test("the local program's answers are the outcomes of the delivery", async () => {
  const { posthorn, local, connect, heard } = await start()
  local.queue("/hooks", 503, 200, 422)
  connect()
  const { id } = await posthorn.send("acme", { eventType: "a", payload: { n: 1 } })
  await heard("settled delivered")
  expect(local.requests[0]!.headers).toMatchObject({ "webhook-id": id, "posthorn-message-id": id })
  const attempts = (await posthorn.attempts.list({ app: "acme", message: id })).data
  expect(attempts.map(({ responseStatus }) => responseStatus).sort()).toEqual([200, 503])
  await posthorn.send("acme", { eventType: "a", payload: { n: 2 } })
  await heard("settled dead")
  const [dead] = (await posthorn.dead.list()).data
  expect(dead).toMatchObject({ deadReason: "rejected" })
  // An operator sends it again: it is settled, so the program is asked again.
  await posthorn.dead.retry(dead!.id)
  await heard("settled delivered", 2)
  expect(local.requests).toHaveLength(4)
})

test("the largest payloads and responses fit in the frames", async () => {
  const { posthorn, connect, heard } = await start()
  // As JSON, a control character takes six bytes.
  const payloads = ["\u0001", '"', "€", Buffer.from([0x80])].map((text) => Buffer.alloc(1_048_576, text))
  const got: Uint8Array[] = []
  connect({
    handle: ({ body }) => {
      got.push(body)
      return { body: "\u0001".repeat(100_000) }
    },
  })
  for (const payload of payloads)
    await posthorn.send("acme", { eventType: "a", payload, contentType: "text/plain" })
  await heard("settled delivered", payloads.length)
  for (const payload of payloads) expect(got.some((one) => payload.equals(one))).toBe(true)
})

test("a handler that runs while the connection is cut runs once", async () => {
  const { server, posthorn, connect, heard } = await start()
  const { hostname, port } = new URL(server.url)
  const proxy = await FaultProxy.start({ host: hostname, port: Number(port) })
  onTestFinished(() => proxy.close())
  const { promise: finished, resolve: finish } = Promise.withResolvers<"success">()
  const { promise: called, resolve: call } = Promise.withResolvers<void>()
  let calls = 0
  connect({
    server: proxy.through(server.url),
    handle: () => {
      calls++
      call()
      return finished
    },
  })
  await posthorn.send("acme", { eventType: "a", payload: {} })
  await called
  proxy.reset()
  await heard("connected", 2)
  finish("success")
  await heard("settled delivered")
  expect(calls).toBe(1)
})

test("wrong and revoked keys end the agent with sentences", async () => {
  const { server, posthorn, key, keyId, connect, heard } = await start()
  const wrong = await connect({ key: "ph_0123456789abcdef_0123456789abcdef0123456789abcdef" }).closed
  expect(wrong!.message).toMatch(
    /does not take the key: .*\. It is wrong, expired or revoked; an administrator makes/,
  )
  expect((await connect({ key: server.key }).closed)!.message).toMatch(
    /does not let the key be this agent: .*--scope agent/,
  )
  const agent = connect({ key })
  await heard("connected")
  await posthorn.keys.revoke(keyId)
  await posthorn.agentHub!.checkOnce()
  expect((await agent.closed)!.message).toMatch(
    /^the server refuses the key: the key was revoked or has expired; an administrator makes/,
  )
})

test("of two agents with one name the older one ends", async () => {
  const { connect, heard } = await start()
  const first = connect()
  await heard("connected")
  const second = connect()
  expect((await first.closed)!.message).toMatch(
    /^another agent connected with this name: .* Stop one of them/,
  )
  expect(second.isConnected).toBe(true)
})
