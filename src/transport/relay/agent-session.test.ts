import { expect, test } from "vitest"
import { TestClock } from "../../../test/support/clock.ts"
import { MemorySocket, TestAgent } from "../../../test/support/test-agent.ts"
import { MOST_WORKING_MS } from "../../core/relay-protocol.ts"
import { AgentSession, type NewEvent } from "./agent-session.ts"

const EVENT: NewEvent = {
  body: "{}",
  id: "dlv_1",
  attempt: 1,
  manual: false,
  messageId: "msg_1",
  eventType: "invoice.paid",
  endpointId: "ep_1",
  sourceId: null,
  receivedAt: "2031-05-18T18:00:00.000Z",
  method: "POST",
  path: "",
  query: "",
  headers: [],
  traceparent: null,
}

function start(hello: object = {}) {
  const clock = new TestClock()
  const said: string[] = []
  const acknowledged: string[] = []
  let tokens = 0
  const agent = new TestAgent(
    (socket) =>
      new AgentSession(socket, clock, () => `token-${++tokens}`, {
        greeted: (session, { agent }) => session.welcome({ session: agent, epoch: 1 }),
        reachChanged: () => void said.push("reach"),
        acknowledged: (result) => void acknowledged.push(result),
        ended: (_session, reason, detail) => void said.push(reason, detail),
      }),
    hello,
  )
  const deliver = (more: Partial<NewEvent> = {}) =>
    agent.session.deliver({ ...EVENT, ...more } as NewEvent, 30_000)
  return { agent, clock, deliver, said, acknowledged, session: agent.session, socket: agent.socket }
}

test("an acknowledgement is the outcome of its event, and the agent hears when it is written", async () => {
  const { agent, deliver, socket } = start()
  const sent = deliver()
  const event = await agent.event(1)
  expect(event).toEqual({ ...EVENT, kind: "event", token: "token-1", deadline: 30_000 })
  agent.ack(event, "permanent", { status: 422, response: { body: "no such\ninvoice" } })
  const result = await sent
  expect(result).toMatchObject({
    outcome: { kind: "ack", result: "permanent", detail: "HTTP 422: no such invoice" },
    responseStatus: 422,
  })
  expect(Buffer.from(result.responseBody as Uint8Array).toString()).toBe("no such\ninvoice")
  expect(socket.of("settled")).toEqual([])
  result.settled!("dead")
  expect(socket.of("settled")).toEqual([{ kind: "settled", id: "dlv_1", attempt: 1, status: "dead" }])
})

test.each([
  [{ error: "cannot open the door", status: null }, "cannot open the door"],
  [{ error: "busy", status: 503 }, "HTTP 503: busy"],
  [{ status: 500 }, "HTTP 500"],
  [{ response: { base64: Buffer.from([0xff, 0x41]).toString("base64"), truncated: true } }, "\ufffdA"],
  [{}, "the agent could not process the event"],
])("a transient failure with %j is told as %j", async (more, detail) => {
  const { agent, deliver } = start()
  const sent = deliver()
  agent.ack(await agent.event(1), "transient", { ...more, retryAfter: 7 } as object)
  expect(await sent).toMatchObject({ outcome: { result: "transient", detail, retryAfterSeconds: 7 } })
})

test("of a response 64 KiB are kept, also if the agent sends more", async () => {
  const { agent, deliver } = start()
  const kept = async (n: number, bytes: number) => {
    const sent = deliver({ id: `dlv_${n}` })
    agent.ack(await agent.event(n), "success", { response: { body: "a".repeat(bytes) } })
    const { responseBody, responseTruncated } = await sent
    return [responseBody?.length, responseTruncated]
  }
  expect(await kept(1, 65_536)).toEqual([65_536, false])
  expect(await kept(2, 65_537)).toEqual([65_536, true])
})

test("without an acknowledgement the event ends at its deadline, and a late one changes nothing", async () => {
  const { agent, clock, deliver, socket } = start()
  const sent = deliver()
  const event = await agent.event(1)
  clock.advance(29_999)
  expect(agent.session.inFlight).toBe(1)
  clock.advance(1)
  expect(await sent).toMatchObject({ outcome: { kind: "failure", cause: "timeout" } })
  agent.ack(event, "success")
  expect(socket.of("error")).toMatchObject([{ code: "late", id: "dlv_1" }])
  expect(socket.closedWith).toBeNull()
})

test("an acknowledgement of an earlier attempt does not end the present one", async () => {
  const { agent, clock, deliver } = start()
  const first = deliver()
  const event = await agent.event(1)
  clock.advance(30_000)
  await first
  const second = deliver({ attempt: 2 })
  agent.ack(event, "success")
  agent.ack({ ...event, attempt: 2 }, "success")
  expect(agent.session.inFlight).toBe(1)
  agent.ack(await agent.event(2), "permanent")
  expect(await second).toMatchObject({ outcome: { result: "permanent" } })
})

test("working moves the deadline, an hour at most", async () => {
  const { agent, clock, deliver } = start()
  const sent = deliver()
  const { id, token } = await agent.event(1)
  for (let passed = 0; passed < MOST_WORKING_MS; passed += 20_000) {
    agent.say({ kind: "working", id, token })
    clock.advance(20_000)
  }
  expect(await sent).toMatchObject({ outcome: { cause: "timeout" } })
})

test("the credit limits the events at once, and 0 pauses", async () => {
  const { agent, deliver, session } = start({ credit: 2 })
  void deliver()
  expect(session.reach).toBe("open")
  void deliver({ id: "dlv_2" })
  expect(session.reach).toBe("busy")
  agent.ack(await agent.event(1), "success")
  expect(session.reach).toBe("open")
  agent.say({ kind: "credit", n: 0 })
  expect(session.reach).toBe("busy")
})

test("nothing is started while the network has not taken a megabyte, and the lanes hear when it has", () => {
  const { deliver, said, session, socket } = start()
  void deliver()
  socket.bufferedBytes = 2_000_000
  expect(session.reach).toBe("busy")
  said.length = 0
  socket.flush()
  expect(said).toEqual(["reach"])
  expect(session.reach).toBe("open")
})

test("the end of the connection interrupts its events: they are no attempts", async () => {
  const { agent, deliver, said } = start()
  const sent = deliver()
  agent.cut()
  expect(await sent).toMatchObject({ outcome: { kind: "interrupted" } })
  expect(said.slice(-2)).toEqual(["lost", "the agent closed the connection with 1006"])
  expect(await deliver()).toMatchObject({ outcome: { kind: "interrupted" } })
})

test("an agent that drains gets nothing more, and is let go when its events are settled", async () => {
  const { agent, deliver, session, socket } = start()
  const sent = deliver()
  const event = await agent.event(1)
  agent.say({ kind: "drain" })
  expect(session.reach).toBe("absent")
  agent.ack(event, "success")
  const result = await sent
  expect(socket.closedWith).toBeNull()
  result.settled!("delivered")
  expect(socket.frames.at(-1)).toMatchObject({ kind: "settled" })
  expect(socket.closedWith).toMatchObject({ code: 1000 })
})

test("a server that stops asks its agents to leave", () => {
  const { session, socket } = start()
  session.drain()
  expect(socket.frames.at(-1)).toEqual({ kind: "drain" })
  expect(socket.closedWith).toMatchObject({ code: 1000 })
})

test("the server pings every 20 seconds, and closes a connection that is silent for 45", () => {
  const { clock, socket } = start()
  clock.advance(60_000)
  expect(socket.pings).toBe(4)
  socket.pong = null
  clock.advance(40_000)
  expect(socket.closedWith).toBeNull()
  clock.advance(5_000)
  expect(socket.closedWith).toMatchObject({ code: 4408 })
})

/** A session whose hub has not answered its hello. */
function unwelcomed(isGreeted: boolean) {
  const clock = new TestClock()
  const socket = new MemorySocket()
  let hellos = 0
  const session = new AgentSession(socket, clock, () => "token", {
    greeted: () => void hellos++,
    ...{ reachChanged() {}, acknowledged() {}, ended() {} },
  })
  if (isGreeted) session.read('{"kind":"hello","agent":"hub","version":"1"}')
  return { clock, socket, session, hellos: () => hellos }
}

test.each([
  ["without hello is closed after ten seconds", false, 4408],
  ["that the server could not welcome within ten seconds is asked to come again", true, 1013],
])("a connection %s", (_what, isGreeted, code) => {
  const { clock, session, socket } = unwelcomed(isGreeted)
  expect(session.reach).toBe("absent")
  clock.advance(9_999)
  expect(socket.closedWith).toBeNull()
  clock.advance(1)
  expect(socket.closedWith).toMatchObject({ code })
})

test.each([
  ["a second hello", '{"kind":"hello","agent":"ghost","version":"1"}'],
  ["credit", '{"kind":"credit","n":1}'],
  ["drain", '{"kind":"drain"}'],
])("%s before the welcome closes the connection, and the hub hears of one hello", (_what, text) => {
  const { hellos, session, socket } = unwelcomed(true)
  session.read(text)
  expect(socket.closedWith).toMatchObject({ code: 4400 })
  session.welcome({ session: "s", epoch: 1 })
  expect([hellos(), socket.frames]).toEqual([1, []])
})

test.each([
  ["no JSON", "hello", 4400],
  ["a list", "[]", 4400],
  ["no kind", "{}", 4400],
  ["a kind that is no text", '{"kind":7}', 4400],
  ["an ack without a token", '{"kind":"ack","id":"dlv_1","attempt":1,"result":"success"}', 4400],
  ["a result of another kind", '{"kind":"ack","id":"x","attempt":1,"token":"t","result":"maybe"}', 4400],
  [
    "a status that is no status",
    '{"kind":"ack","id":"x","attempt":1,"token":"t","result":"success","status":9}',
    4400,
  ],
  ["a second hello", '{"kind":"hello","agent":"hub","version":"1"}', 4400],
  ["a credit of a thousand", '{"kind":"credit","n":1000}', 4400],
  [
    "an ack of an event that it was not sent",
    '{"kind":"ack","id":"dlv_9","attempt":1,"token":"t","result":"success"}',
    4403,
  ],
  ["deep nesting", `{"kind":"ack","id":${"[".repeat(50_000)}${"]".repeat(50_000)}}`, 4400],
])("%s closes the connection", (_what, text, code) => {
  const { session, socket } = start()
  session.read(text)
  expect(socket.closedWith).toMatchObject({ code })
  expect(socket.closedWith!.reason.length).toBeGreaterThan(10)
})

test("an ack with the token of another event closes the connection", async () => {
  const { agent, deliver, socket } = start()
  void deliver()
  void deliver({ id: "dlv_2" })
  const [first, second] = [await agent.event(1), await agent.event(2)]
  agent.ack({ ...first, token: second.token }, "success")
  expect(socket.closedWith).toMatchObject({ code: 4403 })
})

test.each([["hub.example"], ["HUB"], [""], ["a".repeat(64)]])("the name %j is refused", (name) => {
  expect(start({ agent: name }).socket.closedWith).toMatchObject({ code: 4400 })
})

test("the words of an agent about itself are one line of printable text", () => {
  const heard: string[] = []
  const socket = new MemorySocket()
  const session = new AgentSession(socket, new TestClock(), () => "token", {
    greeted: (_session, { version }) => void heard.push(version),
    ...{ reachChanged() {}, acknowledged() {}, ended() {} },
  })
  session.read(
    JSON.stringify({ kind: "hello", agent: "hub", version: "hub/1\u001b[31m\n\u0000\ud800\u202e2" }),
  )
  expect(heard).toEqual(["hub/1 [31m \ufffd 2"])
})

test("an unknown kind is answered, unknown fields are ignored, and a flood of either is closed", () => {
  const { agent, socket } = start()
  agent.say({ kind: "credit", n: 3, colour: "red" })
  agent.say({ kind: "applause" })
  expect(socket.of("error")).toMatchObject([
    { code: "unknown_kind", detail: expect.stringContaining("applause") },
  ])
  for (let n = 0; n < 400; n++) agent.say({ kind: "applause" })
  expect(socket.closedWith).toMatchObject({ code: 4429 })
  expect(socket.of("error").length).toBeLessThan(301)
})

test.each([
  ["credit", { kind: "credit", n: 1 }],
  ["working", { kind: "working", id: "dlv_1", token: "token-1" }],
  ["drain", { kind: "drain" }],
])("a flood of %s is closed, also with an event in flight", async (_kind, frame) => {
  const { agent, deliver, socket } = start()
  void deliver()
  for (let n = 0; n <= 300; n++) agent.say(frame)
  expect(socket.closedWith).toMatchObject({ code: 4429 })
})

test("acknowledgements of events are no flood, however many", async () => {
  const { agent, deliver, socket } = start()
  for (let n = 1; n <= 1000; n++) {
    const sent = deliver({ id: `dlv_${n}` })
    agent.ack(await agent.event(n), "success")
    await sent
  }
  expect(socket.closedWith).toBeNull()
})

test("acknowledgements are counted by their result, late ones apart", async () => {
  const { acknowledged, agent, clock, deliver } = start()
  for (const [i, result] of (["success", "permanent", "transient"] as const).entries()) {
    const sent = deliver({ id: `dlv_${i}` })
    agent.ack(await agent.event(i + 1), result)
    await sent
  }
  void deliver({ id: "dlv_late" })
  const event = await agent.event(4)
  clock.advance(30_000)
  agent.ack(event, "success")
  expect(acknowledged).toEqual(["success", "permanent", "transient", "late"])
})

test.each([
  [1000, "done"],
  [1001, "going_away"],
  [1005, "lost"],
  [1006, "lost"],
  [4400, "bad_frame"],
  [4999, "lost"],
])("an agent that closes with %i has ended as %s", (code, reason) => {
  const { said, session, socket } = start()
  session.closed(code)
  session.closed(1006)
  expect(said).toEqual([reason, `the agent closed the connection with ${code}`])
  expect(socket.closedWith).toBeNull()
})

test("a delivery that is sent again while it is in flight ends its former attempt without an outcome", async () => {
  const { agent, deliver, socket } = start()
  const former = deliver()
  const event = await agent.event(1)
  const again = deliver()
  expect(await former).toMatchObject({ outcome: { kind: "interrupted" } })
  agent.ack(event, "permanent")
  expect(socket.of("error")).toMatchObject([{ code: "late" }])
  agent.ack(await agent.event(2), "success")
  expect(await again).toMatchObject({ outcome: { result: "success" } })
})

test("an agent that does not read is disconnected by a frame that would have to be answered", () => {
  const { agent, socket } = start()
  socket.bufferedBytes = 200_000_000
  agent.say({ kind: "applause" })
  expect(socket.closedWith).toMatchObject({ code: 4429 })
})
