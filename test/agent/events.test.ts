/** Events of an agent with a handler: outcomes, working, credit, and what a cut connection leaves behind. */
import { expect, test } from "vitest"
import { MOST_WORKING_MS } from "../../src/core/relay-protocol.ts"
import type { AgentAnswer, AgentEvent } from "../../src/index.ts"
import { AgentBench, heldHandler } from "../support/agents.ts"
import { eventFrame, FakeRelay } from "../support/fake-relay.ts"

async function connected(options: ConstructorParameters<typeof AgentBench>[1] = {}) {
  const relay = await FakeRelay.start()
  const bench = new AgentBench(relay, options)
  const link = await relay.link()
  await bench.report("connected")
  return { relay, bench, link }
}

test("a handler gets the webhook as it came, and its outcome is acknowledged and settled", async () => {
  const events: AgentEvent[] = []
  const { bench, link } = await connected({
    handle: (event) => {
      events.push(event)
      return { status: 202, body: "taken" }
    },
  })
  const frame = eventFrame({
    method: "PUT",
    path: "/a%20b",
    query: "?c=1",
    headers: [["X-A", "1"]],
    base64: "AP8=",
  })
  link.send(frame)
  const ack = await link.ack()
  expect(events).toEqual([
    {
      deliveryId: frame.id,
      messageId: frame.messageId,
      endpointId: "ep_1",
      sourceId: "src_1",
      eventType: "invoice.paid",
      attempt: 1,
      manual: false,
      receivedAt: new Date(frame.receivedAt),
      method: "PUT",
      path: "/a%20b",
      query: "?c=1",
      headers: [["X-A", "1"]],
      body: Buffer.from([0, 255]),
      traceparent: null,
      deadlineMs: 30_000,
    },
  ])
  expect(ack).toEqual({
    kind: "ack",
    id: frame.id,
    attempt: 1,
    token: frame.token,
    result: "success",
    status: 202,
    error: null,
    retryAfter: null,
    response: { body: "taken" },
  })
  expect(bench.reports.handled).toMatchObject([
    { outcome: { result: "success", status: 202 }, isRepeated: false },
  ])
  link.settle(ack)
  expect(await bench.report("settled")).toEqual({ deliveryId: frame.id, attempt: 1, status: "delivered" })
})

test.each<[string, AgentAnswer, object]>([
  ["permanent", { status: 422, body: "no" }, { status: 422, response: { body: "no" } }],
  ["permanent", "permanent", { status: null, response: null }],
  ["transient", { status: 503, retryAfterSeconds: 7 }, { status: 503, retryAfter: 7 }],
  ["transient", { result: "transient", error: "no disk" }, { error: "no disk" }],
])("an outcome that is %s is acknowledged as one", async (result, answer, fields) => {
  const { link } = await connected({ handle: () => answer })
  link.event()
  expect(await link.ack()).toMatchObject({ result, ...fields })
})

test("a handler that throws is a transient failure with the error's message", async () => {
  const { link } = await connected({
    handle: async () => {
      throw new Error("the ledger is locked")
    },
  })
  link.event()
  expect(await link.ack()).toMatchObject({ result: "transient", status: null, error: "the ledger is locked" })
})

test("while a handler runs, the agent says so at every half of the deadline, for an hour at most", async () => {
  const held = heldHandler<"success">()
  const { bench, link } = await connected({ handle: held.handle })
  const frame = eventFrame({ deadline: 40_000 })
  link.send(frame)
  const call = await held.called()
  const working = () => link.frames.filter(({ kind }) => kind === "working")
  bench.clock.advance(19_999)
  await link.flushed()
  expect(working()).toEqual([])
  bench.clock.advance(1)
  await link.until(() => working().length === 1)
  expect(working()[0]).toEqual({ kind: "working", id: frame.id, token: frame.token })
  while (working().length < MOST_WORKING_MS / 20_000 - 1) {
    const seen = working().length
    bench.clock.advance(20_000)
    await link.until(() => working().length > seen)
    await link.flushed()
  }
  const most = working().length
  for (let i = 0; i < 5; i++) {
    bench.clock.advance(20_000)
    await link.flushed()
  }
  call.end("success")
  await link.ack()
  expect(working()).toHaveLength(most)
})

test("a handler that ended says nothing more", async () => {
  const { bench, link } = await connected()
  link.event()
  await link.ack()
  bench.clock.advance(40_000)
  await link.flushed()
  expect(link.frames.map(({ kind }) => kind)).toEqual(["hello", "ack"])
})

test("as many handlers run at once as the credit says", async () => {
  const held = heldHandler<"success">()
  const { bench, link } = await connected({ handle: held.handle, credit: 3 })
  for (let i = 0; i < 3; i++) link.event()
  await held.called(3)
  held.calls[1]!.end("success")
  await link.ack()
  link.event()
  await held.called(4)
  // The server may give up on 16 whose handlers still run. One more without an acknowledgement is a mistake of the server.
  for (let i = 0; i < 17; i++) link.event()
  expect((await bench.report("disconnected")).reason).toBe(
    "the server sent a bad frame: more than 19 events are in flight",
  )
  expect(held.calls).toHaveLength(4)
  await link.until(({ closed }) => closed !== null)
  expect(link.closed!.code).toBe(4400)
})

test("after a cut, new events wait until handlers of the old connection leave room", async () => {
  const held = heldHandler<"success">()
  const { relay, bench, link } = await connected({ handle: held.handle, credit: 2 })
  link.event()
  link.event()
  await held.called(2)
  link.cut()
  await bench.reconnect()
  const second = await relay.link(2)
  await bench.report("connected", 2)
  second.event({ id: "dlv_new" })
  await second.flushed()
  expect(held.calls).toHaveLength(2)
  held.calls[0]!.end("success")
  await held.called(3)
  held.calls[2]!.end("success")
  expect(await second.ack()).toMatchObject({ id: "dlv_new" })
})

test.each([
  "success",
  "permanent",
] as const)("%s that was acknowledged and not settled is repeated after a cut, without a second call", async (result) => {
  let calls = 0
  const handle = () => {
    calls++
    return { result, status: 299, body: "once" }
  }
  const { relay, bench, link } = await connected({ handle })
  const frame = eventFrame()
  link.send(frame)
  const first = await link.ack()
  link.cut()
  await bench.reconnect()
  const second = await relay.link(2)
  second.send({ ...frame, token: "another" })
  const again = await second.ack()
  expect(again).toEqual({ ...first, token: "another" })
  expect(calls).toBe(1)
  expect((await bench.report("handled", 2)).isRepeated).toBe(true)
  // Settled at last: if it comes again now, an operator wants it.
  second.settle(again)
  await bench.report("settled")
  second.send({ ...frame, token: "resent" })
  expect(await second.ack(2)).toMatchObject({ token: "resent" })
  expect(calls).toBe(2)
})

test("a transient failure is run again after a cut", async () => {
  const answers: AgentAnswer[] = ["transient", "success"]
  const { relay, bench, link } = await connected({ handle: () => answers.shift() })
  const frame = eventFrame()
  link.send(frame)
  expect((await link.ack()).result).toBe("transient")
  link.cut()
  await bench.reconnect()
  const second = await relay.link(2)
  second.send(frame)
  expect((await second.ack()).result).toBe("success")
})

test("an operator's retry, which starts at attempt 1 again, runs the handler", async () => {
  let calls = 0
  const { relay, bench, link } = await connected({
    handle: () => {
      calls++
      return "permanent"
    },
  })
  const frame = eventFrame({ attempt: 3 })
  link.send(frame)
  await link.ack()
  link.cut()
  await bench.reconnect()
  const second = await relay.link(2)
  second.send({ ...frame, attempt: 1 })
  await second.ack()
  expect(calls).toBe(2)
})

test("an event that comes again while its handler runs gets that handler's outcome", async () => {
  const held = heldHandler<AgentAnswer>()
  const { relay, bench, link } = await connected({ handle: held.handle })
  const frame = eventFrame()
  link.send(frame)
  const call = await held.called()
  link.cut()
  await bench.reconnect()
  const second = await relay.link(2)
  second.send({ ...frame, token: "second" })
  await second.flushed()
  second.send({ ...frame, token: "third", attempt: 2 })
  await second.flushed()
  bench.clock.advance(15_000)
  call.end({ status: 201 })
  const ack = await second.ack()
  expect(ack).toMatchObject({ token: "third", attempt: 2, status: 201 })
  await second.flushed()
  // The attempts before get neither a sign of work nor an outcome.
  expect(second.frames.slice(1)).toEqual([{ kind: "working", id: frame.id, token: "third" }, ack])
  expect(held.calls).toHaveLength(1)
})

test("a handler that ends while there is no connection is not called again", async () => {
  const held = heldHandler<AgentAnswer>()
  const { relay, bench, link } = await connected({ handle: held.handle })
  const frame = eventFrame()
  link.send(frame)
  const call = await held.called()
  link.cut()
  await bench.report("disconnected")
  call.end({ status: 200 })
  await bench.report("handled")
  await bench.reconnect()
  const second = await relay.link(2)
  second.send({ ...frame, token: "second" })
  expect(await second.ack()).toMatchObject({ token: "second", status: 200 })
  expect(held.calls).toHaveLength(1)
})

test("close does not wait for the settlement of a connection that is lost", async () => {
  const { bench, link } = await connected()
  link.event()
  await link.ack()
  link.cut()
  await bench.report("disconnected")
  await bench.agent.close()
})

test("an acknowledgement that was too late is repeated at the next attempt", async () => {
  let calls = 0
  const { bench, link } = await connected({
    handle: () => {
      calls++
      return "success"
    },
  })
  const frame = eventFrame()
  link.send(frame)
  await link.ack()
  link.send({ kind: "error", code: "late", detail: "too late", id: frame.id })
  link.send({ ...frame, attempt: 2, token: "second" })
  expect(await link.ack(2)).toMatchObject({ attempt: 2, token: "second", result: "success" })
  expect(calls).toBe(1)
  // Nothing more is said about it: close does not wait for that.
  link.send({ kind: "error", code: "late", detail: "too late", id: frame.id })
  await link.flushed()
  await bench.agent.close()
})

test("a callback that throws or rejects disturbs nothing", async () => {
  const thrower = () => {
    throw new Error("a callback's")
  }
  const { bench, link } = await connected({
    onHandled: thrower,
    onSettled: async () => thrower(),
  })
  link.event()
  link.settle(await link.ack())
  link.event()
  await link.ack(2)
  expect(bench.agent.isConnected).toBe(true)
})
