import { expect, test } from "vitest"
import {
  type HeaderPair,
  type InboundRequest,
  passedOn,
  readInbound,
  writeInbound,
} from "./inbound-request.ts"

const request = (...headers: HeaderPair[]): InboundRequest => ({
  sourceId: "src_1",
  method: "PUT",
  path: "/a%20b",
  query: "?q=1",
  headers,
})
const passed = (...headers: HeaderPair[]) => passedOn(request(...headers))

test("an inbound request is read as it was written", () => {
  const inbound = request(["X-A", "ü\u0000"], ["x-a", ""])
  expect(readInbound(writeInbound(inbound))).toEqual(inbound)
})

test("headers are passed on in their order, with the case of their names, however often a name occurs", () => {
  const headers = [
    ["X-GitHub-Event", "push"],
    ["Content-Encoding", "gzip"],
    ["stripe-signature", "t=1,v1=ab"],
    ["x-github-event", "again"],
    ["X-Empty", ""],
  ] as const
  expect(passed(...headers)).toEqual(headers)
})

test.each([
  ..."Host Content-Length Transfer-Encoding Connection Keep-Alive TE Trailer Upgrade Expect".split(" "),
  ..."Accept-Encoding Proxy-Authenticate Proxy-Authorization Proxy-Connection".split(" "),
  ..."HTTP2-Settings Authorization Cookie Cookie2 Set-Cookie".split(" "),
  ..."Forwarded Via CDN-Loop X-Forwarded-For X-Forwarded-Host X-Forwarded-Client-Cert X-Real-IP".split(" "),
  ..."X-Client-IP True-Client-IP CF-Connecting-IP CF-Connecting-IPv6".split(" "),
  ..."X-HTTP-Method X-HTTP-Method-Override X-Method-Override".split(" "),
  ..."Content-Type Idempotency-Key Traceparent Tracestate Baggage".split(" "),
])("%s is not passed on, in any spelling", (name) => {
  const kept = ["x-kept", "1"] as const
  const others = [name.toLowerCase(), name.toUpperCase(), name.replaceAll("-", "_")]
  expect(passed([name, "a"], kept, ...others.map((other) => [other, "b"] as const))).toEqual([kept])
})

test("headers that the request names in Connection are not passed on", () => {
  const named = [
    ["X-Hop", "1"],
    ["x-other-hop", "2"],
    ["X-Third", "3"],
    ["X-End-To-End", "4"],
  ] as const
  expect(passed(["Connection", "close,X-hop ,\tX-Other-Hop"], ["connection", "x-third"], ...named)).toEqual([
    ["X-End-To-End", "4"],
  ])
})

test("the provider's headers of Standard Webhooks and Svix get other names than Posthorn's own", () => {
  expect(
    passed(
      ["webhook-id", "1"],
      ["Webhook-Signature", "v1,a"],
      ["SVIX-Timestamp", "2"],
      ["X-Webhook-Id", "3"],
      ["webhook_signature", "v1,b"],
    ),
  ).toEqual([
    ["x-source-webhook-id", "1"],
    ["x-source-Webhook-Signature", "v1,a"],
    ["x-source-SVIX-Timestamp", "2"],
    ["X-Webhook-Id", "3"],
    ["x-source-webhook_signature", "v1,b"],
  ])
})

test("headers with a name that the request has anyway are not passed on", () => {
  const inbound = request(
    ["User-Agent", "Hookshot"],
    ["svix-id", "1"],
    ["X-Source-Svix-Id", "2"],
    ["User_Agent", "4"],
    ["x-a", "3"],
  )
  expect(passedOn(inbound, ["User-Agent", "x-source-svix-id"])).toEqual([["x-a", "3"]])
})

test("at most 100 headers are passed on, and at most 32 KiB of them", () => {
  const many = Array.from({ length: 120 }, (_, i) => [`x-${i}`, ""] as const)
  expect(passed(["Cookie", "a"], ...many)).toEqual(many.slice(0, 100))
  // A line of 8 KiB, with ": " and the line break.
  const large = ["x-large", "v".repeat(8192 - 11)] as const
  const small = ["x-small", ""] as const
  expect(passed(large, large, large, small, large, small)).toEqual([large, large, large, small, small])
  expect(passed(large, large, large, large, small)).toEqual([large, large, large, large])
})
