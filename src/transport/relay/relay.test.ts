import fc from "fast-check"
import { expect, test } from "vitest"
import { TestClock } from "../../../test/support/clock.ts"
import { TestAgent } from "../../../test/support/test-agent.ts"
import { readServerFrame } from "../../agent/server-frame.ts"
import { type InboundRequest, writeInbound } from "../../core/inbound-request.ts"
import { parsePolicy } from "../../core/parse-policy.ts"
import { timeoutMsOf } from "../../core/policy.ts"
import type { OutboundRequest, WebhookHead } from "../transport.ts"
import { AgentSession } from "./agent-session.ts"
import { RelayTransport } from "./relay.ts"

const header = fc.tuple(
  fc.stringMatching(/^[A-Za-z-]{1,20}$/),
  fc.string({
    maxLength: 40,
    unit: fc.integer({ min: 32, max: 255 }).map((code) => String.fromCharCode(code)),
  }),
)

const inbound: fc.Arbitrary<InboundRequest> = fc.record({
  sourceId: fc.constant("src_1"),
  method: fc.constantFrom("GET", "POST", "DELETE", "M-SEARCH"),
  path: fc.constantFrom("", "/", "/a%20b/../c"),
  query: fc.constantFrom("", "?", "?a=b"),
  headers: fc.array(header, { maxLength: 50 }),
})

const webhook: fc.Arbitrary<WebhookHead> = fc.record({
  contentType: fc.constantFrom("application/json", "text/plain"),
  messageId: fc.constant("msg_1"),
  timestampSeconds: fc.nat(),
  signature: fc.constant("v1,c2lnbmF0dXJl"),
  authorization: fc.option(fc.constant("Basic bmFtZTpwYXNz")),
  traceparent: fc.option(fc.constant(`00-${"a".repeat(32)}-${"b".repeat(16)}-01`)),
  passedOn: fc.constant([]),
  delivery: fc.record({
    id: fc.constant("dlv_1"),
    attemptCount: fc.nat(),
    manual: fc.boolean(),
    eventType: fc.stringMatching(/^[a-z.]{1,256}$/),
    receivedAt: fc.nat({ max: 4_000_000_000_000 }),
    inbound: fc.option(inbound.map(writeInbound)),
  }),
})

const request: fc.Arbitrary<OutboundRequest> = fc.record({
  endpointId: fc.constant("ep_1"),
  version: fc.nat(),
  url: fc.constant("relay://hub"),
  headers: fc.dictionary(fc.stringMatching(/^[a-z-]{1,20}$/), fc.string({ maxLength: 20 })),
  webhook,
  body: fc.oneof(fc.string(), fc.uint8Array()),
  timeoutMs: fc
    .double({ min: 0.001, max: 600, noNaN: true })
    .map((timeout) => timeoutMsOf(parsePolicy({ delays: [1], maxAttempts: 2, timeout }))),
  connectTimeoutMs: fc.constant(1),
  tls: fc.constant({}),
})

test("an agent accepts the event of every valid policy and message, as it was sent", async () => {
  await fc.assert(
    fc.asyncProperty(request, async (sent) => {
      const transport = new RelayTransport()
      const agent = new TestAgent(
        (socket) =>
          new AgentSession(socket, new TestClock(), () => "token", {
            greeted: (session) => session.welcome({ session: "s", epoch: 1 }),
            ...{ reachChanged() {}, acknowledged() {}, ended() {} },
          }),
      )
      transport.bind("ep_1", agent.session)
      void transport.send(sent)
      const [event] = agent.socket.of("event")
      expect(readServerFrame(JSON.stringify(event))).toEqual(event)
    }),
  )
})
