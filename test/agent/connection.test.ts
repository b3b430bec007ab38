/** The agent's connection to a server: greeting, heartbeats, tries, refusals, drain. */

import type { AddressInfo } from "node:net"
import { createServer } from "node:net"
import { expect, onTestFinished, test } from "vitest"
import { CLOSE, DEAD_MS, HEARTBEAT_MS } from "../../src/core/relay-protocol.ts"
import { VERSION } from "../../src/version.ts"
import { AgentBench, heldHandler } from "../support/agents.ts"
import { FakeRelay } from "../support/fake-relay.ts"

test("it connects with its key, says hello, and is connected when the server welcomes it", async () => {
  const relay = await FakeRelay.start({ welcomes: false })
  const bench = new AgentBench(`http://127.0.0.1:${relay.port}/posthorn`, { credit: 4 })
  const link = await relay.link()
  expect(relay.requests[0]!.url).toBe("/posthorn/api/v1/relay")
  expect(relay.requests[0]!.headers).toMatchObject({
    authorization: "Bearer ph_test_key",
    "sec-websocket-protocol": "posthorn.relay.v1",
    "user-agent": `posthorn-agent/${VERSION}`,
  })
  expect(relay.requests[0]!.headers["sec-websocket-extensions"]).toBeUndefined()
  expect(link.frames).toEqual([{ kind: "hello", agent: "hub", version: `posthorn/${VERSION}`, credit: 4 }])
  expect(bench.agent.isConnected).toBe(false)
  link.welcome(7)
  expect(await bench.report("connected")).toEqual({ session: "session-7", epoch: 7 })
  expect(bench.agent.isConnected).toBe(true)
})

test("both sides ping: the agent every 20 s, and it answers the server's", async () => {
  const relay = await FakeRelay.start()
  const bench = new AgentBench(relay)
  const link = await relay.link()
  await bench.report("connected")
  await link.flushed()
  for (let n = 1; n <= 5; n++) {
    bench.clock.advance(HEARTBEAT_MS)
    await link.until(({ pings }) => pings === n)
    // The agent has read the pong, which came before this ping.
    await link.flushed()
  }
  expect(bench.reports.disconnected).toEqual([])
})

test("a server that does not answer pings is left after 45 s, and connected to again", async () => {
  const relay = await FakeRelay.start()
  const bench = new AgentBench(relay)
  const link = await relay.link()
  await bench.report("connected")
  await link.flushed()
  link.answersPings = false
  bench.clock.advance(DEAD_MS - 1)
  await link.until(({ pings }) => pings === 2)
  expect(bench.reports.disconnected).toEqual([])
  bench.clock.advance(1)
  expect(await bench.reconnect()).toEqual({
    reason: "nothing came from the server for 45 s",
    retryInMs: 500,
  })
  await link.until(({ closed }) => closed !== null)
  expect(await bench.report("connected", 2)).toMatchObject({ epoch: 2 })
})

test("any frame of the server shows that it lives", async () => {
  const relay = await FakeRelay.start()
  const bench = new AgentBench(relay)
  const link = await relay.link()
  await bench.report("connected")
  link.answersPings = false
  for (let n = 1; n <= 4; n++) {
    bench.clock.advance(DEAD_MS - 1)
    link.event()
    await bench.report("handled", n)
  }
  expect(bench.reports.disconnected).toEqual([])
})

test("delays between tries double from 0.5 to 60 s, a random part of each", async () => {
  const relay = await FakeRelay.start()
  const draws = [1, 0.5, 0.25, 1, 1, 1, 1, 0.999, 1, 1]
  const bench = new AgentBench(relay, {}, () => draws.shift()!)
  const link = await relay.link()
  relay.refuse(...Array(9).fill({ status: 503, body: '{"code":"stopping","detail":"The server stops."}' }))
  link.cut()
  for (let n = 1; n <= 9; n++) await bench.reconnect(n)
  expect(bench.reports.disconnected.map(({ retryInMs }) => retryInMs)).toEqual([
    500, 500, 500, 4000, 8000, 16_000, 32_000, 59_940, 60_000,
  ])
  expect(bench.reports.disconnected[0]!.reason).toBe("the connection broke off")
  expect(bench.reports.disconnected[1]!.reason).toBe(
    `${relay.url}/api/v1/relay answered 503: The server stops`,
  )
})

test("a connection that lasted ends the series of failures, a short one does not", async () => {
  const relay = await FakeRelay.start()
  const bench = new AgentBench(relay)
  const lasted = [0, 0, 9999, 10_000, 0]
  for (const [i, ms] of lasted.entries()) {
    const link = await relay.link(i + 1)
    await bench.report("connected", i + 1)
    bench.clock.advance(ms)
    link.cut()
    await bench.reconnect(i + 1)
  }
  expect(bench.reports.disconnected.map(({ retryInMs }) => retryInMs)).toEqual([500, 1000, 2000, 500, 1000])
})

test("a server that accepts the connection and says nothing is left after 30 s", async () => {
  const relay = await FakeRelay.start({ welcomes: false })
  const bench = new AgentBench(relay)
  await relay.link()
  bench.clock.advance(29_999)
  expect(bench.reports.disconnected).toEqual([])
  bench.clock.advance(1)
  expect((await bench.report("disconnected")).reason).toBe(
    `${relay.url} did not welcome the agent within 30 s`,
  )
})

test.each([
  404, 302, 200, 400,
])("after a connection, the answer %i is a proxy's while the server restarts: it connects again", async (status) => {
  const relay = await FakeRelay.start()
  const bench = new AgentBench(relay)
  const link = await relay.link()
  await bench.report("connected")
  relay.refuse({ status, body: "404 page not found" })
  link.cut()
  await bench.reconnect(1)
  await bench.reconnect(2)
  expect(await bench.report("connected", 2)).toMatchObject({ epoch: 2 })
})

test("after a connection, a key that was revoked ends it", async () => {
  const relay = await FakeRelay.start()
  const bench = new AgentBench(relay)
  const link = await relay.link()
  await bench.report("connected")
  relay.refuse({ status: 401, body: JSON.stringify({ code: "x", detail: "The key was revoked." }) })
  link.cut()
  await bench.reconnect()
  expect(await bench.agent.closed).toMatchObject({ code: "agent_refused" })
})

test.each([
  [
    401,
    "The key was revoked.",
    /does not take the key: The key was revoked\. It is wrong, expired or revoked; an administrator/,
  ],
  [403, "The key is for hub-2.", /does not let the key be this agent: The key is for hub-2$/],
  [404, "", /was not found\. Is it the address of a Posthorn server that has the relay\?$/],
  [
    409,
    "On SQLite only the delivering process holds agents: connect to it.",
    /refuses agents: On SQLite only the delivering/,
  ],
  [400, "No.", /relay answered 400: No$/],
  [200, "", /answered 200 without a WebSocket: does a proxy in between pass them\?$/],
])("the answer %i ends it, with a sentence", async (status, detail, sentence) => {
  const relay = await FakeRelay.start()
  relay.refuse({ status, body: JSON.stringify({ code: "x", detail }) })
  const bench = new AgentBench(relay)
  const error = await bench.agent.closed
  expect(error).toMatchObject({
    name: "PosthornError",
    code: "agent_refused",
    message: expect.stringMatching(sentence),
  })
  expect(bench.reports.disconnected).toEqual([{ reason: error!.message, retryInMs: null }])
  expect(bench.clock.timers).toBe(0)
  await bench.agent.close()
})

test("a redirect is not followed: the sentence has the address", async () => {
  const relay = await FakeRelay.start()
  relay.refuse({ status: 308, headers: { location: "https://new.example/api/v1/relay" } })
  const bench = new AgentBench(relay)
  expect((await bench.agent.closed)!.message).toMatch(
    /redirects to https:\/\/new\.example\/api\/v1\/relay\. Give/,
  )
})

test.each([408, 425, 429, 500, 502, 503, 504])("after the answer %i it tries again", async (status) => {
  const relay = await FakeRelay.start()
  relay.refuse({ status, body: "<html>\x1b[31mBusy</html>" })
  const bench = new AgentBench(relay)
  expect((await bench.reconnect()).reason).toBe(`${relay.url}/api/v1/relay answered ${status}`)
  await bench.report("connected")
})

test.each([
  [CLOSE.badKey, /^the server refuses the key: why; an administrator/],
  [CLOSE.replaced, /^another agent connected with this name: why\. Stop one of them/],
  [CLOSE.badFrame, /^the server refuses a frame of this agent \(4400\): why\./],
  [CLOSE.foreignEvent, /^the server refuses a frame of this agent \(4403\): why\./],
])("the close code %i ends it, with a sentence", async (code, sentence) => {
  const relay = await FakeRelay.start()
  const bench = new AgentBench(relay)
  const link = await relay.link()
  await bench.report("connected")
  link.close(code, "why")
  expect(await bench.agent.closed).toMatchObject({ message: expect.stringMatching(sentence) })
})

test.each([
  [CLOSE.done, "the server closed the connection: why"],
  [CLOSE.goingAway, "the server closed the connection: why"],
  [CLOSE.silent, "the server heard nothing from this agent for too long: why"],
  [CLOSE.flood, "the server closed the connection with 4429: why"],
  [1011, "the server closed the connection with 1011: why"],
])("after the close code %i it tries again", async (code, sentence) => {
  const relay = await FakeRelay.start()
  const bench = new AgentBench(relay)
  const link = await relay.link()
  await bench.report("connected")
  link.close(code, "why")
  expect((await bench.reconnect()).reason).toBe(sentence)
  await bench.report("connected", 2)
})

test("a server that speaks another protocol ends it", async () => {
  const relay = await FakeRelay.start({ protocol: null })
  const bench = new AgentBench(relay)
  expect((await bench.agent.closed)!.message).toMatch(
    /relay does not speak posthorn\.relay\.v1\. Is it a Posthorn/,
  )
})

test("no server, no name and a server without TLS are sentences, and it goes on trying", async () => {
  const relay = await FakeRelay.start()
  const plain = createServer((socket) => socket.end("SSH-2.0-OpenSSH\r\n"))
  await new Promise<void>((resolve) => plain.listen(0, "127.0.0.1", resolve))
  onTestFinished(() => void plain.close())
  const { port } = plain.address() as AddressInfo
  for (const [server, reason] of [
    [
      "http://127.0.0.1:1",
      "http://127.0.0.1:1 refused the connection; check that the server runs, and that this is its address",
    ],
    [
      "https://no-such-name.invalid",
      /^the name in https:\/\/no-such-name\.invalid cannot be resolved \(\w+\)(; check that the server runs, and that this is its address)?$/,
    ],
    [`https://127.0.0.1:${relay.port}`, /^https:\/\/127\.0\.0\.1:\d+ (does not speak TLS|closed)/],
    [`http://127.0.0.1:${port}`, /cannot be used: |closed the connection/],
  ] as const) {
    const bench = new AgentBench(server)
    const lost = await bench.reconnect()
    expect(lost.reason).toMatch(reason)
    expect(lost.retryInMs).toBe(500)
    await bench.report("disconnected", 2)
  }
})

test("close says drain, waits for the events in flight, and closes the connection", async () => {
  const relay = await FakeRelay.start()
  const held = heldHandler<"success">()
  const bench = new AgentBench(relay, { handle: held.handle })
  const link = await relay.link()
  link.event()
  const call = await held.called()
  let isClosed = false
  const closed = bench.agent.close().then(() => {
    isClosed = true
  })
  await link.until(({ frames }) => frames.at(-1)!.kind === "drain")
  call.end("success")
  const ack = await link.ack()
  expect([isClosed, link.closed]).toEqual([false, null])
  link.settle(ack)
  await closed
  await link.until((one) => one.closed !== null)
  expect(link.closed).toEqual({ code: 1000, reason: "the agent stops" })
  expect(await bench.agent.closed).toBeNull()
  expect(bench.reports.disconnected).toEqual([])
})

test("an idle agent closes at once, also before it is connected and between two tries", async () => {
  const relay = await FakeRelay.start({ welcomes: false })
  const early = new AgentBench(relay)
  await early.agent.close()
  const waiting = new AgentBench("http://127.0.0.1:1")
  await waiting.report("disconnected")
  await waiting.agent.close()
  expect([early.clock.timers, waiting.clock.timers]).toEqual([0, 0])
})

test("close waits for a handler without a connection, and not for ever", async () => {
  const relay = await FakeRelay.start()
  const held = heldHandler<"success">()
  const bench = new AgentBench(relay, { handle: held.handle, closeTimeoutMs: 5000 })
  const link = await relay.link()
  link.event()
  link.event()
  await held.called(2)
  link.cut()
  await bench.report("disconnected")
  const closed = bench.agent.close()
  held.calls[0]!.end("success")
  await bench.report("handled")
  bench.clock.advance(4999)
  expect(await Promise.race([closed.then(() => "closed"), Promise.resolve("open")])).toBe("open")
  bench.clock.advance(1)
  await closed
  held.calls[1]!.end("success")
  await bench.report("handled", 2)
})

test("when the server drains, the agent finishes what it has, leaves, and connects again", async () => {
  const relay = await FakeRelay.start()
  const held = heldHandler<"success">()
  const bench = new AgentBench(relay, { handle: held.handle })
  const link = await relay.link()
  link.event()
  const call = await held.called()
  link.send({ kind: "drain" })
  await link.flushed()
  expect(link.closed).toBeNull()
  call.end("success")
  link.settle(await link.ack())
  await link.until((one) => one.closed !== null)
  expect(link.closed).toMatchObject({ code: 1000 })
  expect((await bench.reconnect()).reason).toBe("the server stops")
  await bench.report("connected", 2)
})
