/** A server that breaks the protocol: the agent leaves with a reason, and its memory is bounded. */
import { expect, test } from "vitest"
import { AgentBench, heldHandler } from "../support/agents.ts"
import { eventFrame, FakeRelay } from "../support/fake-relay.ts"

async function connected(options: ConstructorParameters<typeof AgentBench>[1] = {}) {
  const relay = await FakeRelay.start()
  const bench = new AgentBench(relay, options)
  const link = await relay.link()
  await bench.report("connected")
  return { relay, bench, link }
}

test.each<[string, string | Buffer, number, string]>([
  ["text that is not JSON", "{'kind'}", 4400, "the server sent a bad frame: the frame is not JSON"],
  ["a list", "[]", 4400, "the server sent a bad frame: the frame is not a JSON object"],
  ["a million brackets", "[".repeat(1_000_000), 4400, "the server sent a bad frame: the frame is not JSON"],
  ["no kind", "{}", 4400, "the server sent a bad frame: kind is not a text"],
  ["half an event", '{"kind":"event"}', 4400, "the server sent a bad frame: method is not a text"],
  [
    "a second welcome",
    '{"kind":"welcome","session":"s","epoch":1,"heartbeat":20}',
    4400,
    "the server sent a bad frame: a second welcome",
  ],
  ["a binary message", Buffer.from("{}"), 1003, "the server sent a binary message"],
])("%s ends the connection, and it connects again", async (_what, data, code, reason) => {
  const { bench, link } = await connected()
  link.raw(data)
  expect((await bench.reconnect()).reason).toBe(reason)
  await link.until(({ closed }) => closed !== null)
  expect(link.closed).toEqual({ code, reason })
  await bench.report("connected", 2)
})

test("a frame above the limit ends the connection with a sentence; the largest below it is read", async () => {
  const { relay, bench, link } = await connected({ maxFrameBytes: 65_536 })
  const overhead = JSON.stringify(eventFrame({ body: "" })).length + 64
  link.event({ body: "a".repeat(65_536 - overhead) })
  await link.ack()
  link.event({ body: "a".repeat(65_536) })
  expect((await bench.reconnect()).reason).toBe(
    "the server sent a frame of more than 65536 bytes; allow more with --max-frame-bytes (maxFrameBytes)",
  )
  await relay.link(2)
})

test("an event before the welcome ends the connection", async () => {
  const relay = await FakeRelay.start({ welcomes: false })
  const bench = new AgentBench(relay)
  const link = await relay.link()
  link.event()
  expect((await bench.report("disconnected")).reason).toBe(
    "the server sent a bad frame: event came before welcome",
  )
})

test("unknown kinds are ignored, a thousand of them at most", async () => {
  const { bench, link } = await connected()
  for (let i = 0; i < 1000; i++) link.raw(`{"kind":"news-${i}"}`)
  link.event()
  await link.ack()
  link.raw('{"kind":"news"}')
  expect((await bench.report("disconnected")).reason).toBe(
    "the server sent a bad frame: 1000 are of unknown kinds",
  )
})

test("settled and error frames for events that nobody knows change nothing", async () => {
  const { bench, link } = await connected()
  link.send({ kind: "settled", id: "dlv_other", attempt: 1, status: "delivered" })
  link.send({ kind: "error", code: "late", detail: "x", id: "dlv_other" })
  link.send({ kind: "error", code: "unknown_kind", detail: "x", id: null })
  link.event()
  await link.ack()
  expect(bench.reports.settled).toEqual([])
  expect(bench.agent.isConnected).toBe(true)
})

test("a server that settles nothing gets a thousand acknowledgements", async () => {
  const { bench, link } = await connected()
  for (let i = 1; i <= 1000; i++) {
    link.event()
    await link.ack(i)
  }
  link.event()
  expect((await bench.report("disconnected")).reason).toBe(
    "the server sent a bad frame: 1000 acknowledgements are not settled, and more events come",
  )
})

test("a flood of events above the credit ends the connection, and runs no more than the credit", async () => {
  const held = heldHandler<"success">()
  const { bench, link } = await connected({ handle: held.handle })
  for (let i = 0; i < 1000; i++) link.event()
  await bench.report("disconnected")
  expect(held.calls).toHaveLength(16)
  for (const call of held.calls) call.end("success")
})

test("a server that does not read is left, and acknowledgements do not pile up", async () => {
  const { bench, link } = await connected({ handle: () => ({ body: "a".repeat(65_536) }) })
  link.stopReading()
  for (let n = 1; bench.reports.disconnected.length === 0; n++) {
    link.event()
    await Promise.race([bench.report("handled", n), bench.report("disconnected")])
  }
  expect(bench.reports.disconnected[0]!.reason).toBe("the server does not read what the agent sends")
})

test("a server that pings for ever and does not read is left", async () => {
  const { bench, link } = await connected()
  link.stopReading()
  await link.pingUntil(() => bench.reports.disconnected.length > 0)
  await bench.report("disconnected")
})
