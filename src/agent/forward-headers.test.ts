import { expect, test } from "vitest"
import { eventFrame } from "../../test/support/fake-relay.ts"
import type { EventFrame } from "../core/relay-protocol.ts"
import { eventFrom } from "./event.ts"
import { forwardedHeaders } from "./forward-headers.ts"

const TRACE = `00-${"a".repeat(32)}-${"b".repeat(16)}-01`

function forwarded(fields: Partial<EventFrame>) {
  const event = eventFrame({ messageId: "msg_1", id: "dlv_1", attempt: 3, ...fields })
  const flat = forwardedHeaders(eventFrom(event), "localhost:3000")
  return flat.flatMap((name, i) => (i % 2 === 0 ? [[name, flat[i + 1]]] : []))
}

const OWN = [
  ["posthorn-message-id", "msg_1"],
  ["posthorn-delivery-id", "dlv_1"],
  ["posthorn-attempt", "3"],
]

test("headers keep their order, case and repetition, cookies and logins too", () => {
  const headers: EventFrame["headers"] = [
    ["X-GitHub-Event", "push"],
    ["Cookie", "a=1"],
    ["authorization", "Bearer x"],
    ["x-twice", "1"],
    ["X-Twice", "2"],
    ["Accept-Encoding", "gzip"],
  ]
  expect(forwarded({ headers, body: "ü" })).toEqual([
    ["host", "localhost:3000"],
    ...headers,
    ...OWN,
    ["content-length", "2"],
    ["connection", "close"],
  ])
})

test("headers of the connection that the webhook came over are left out, with those that Connection names", () => {
  const headers: EventFrame["headers"] = [
    ["Host", "hooks.example.com"],
    ["Content-Length", "99"],
    ["Connection", "keep-alive, X-Hop , upgrade"],
    ["Keep-Alive", "timeout=5"],
    ["Transfer-Encoding", "chunked"],
    ["TE", "trailers"],
    ["Trailer", "x"],
    ["Upgrade", "h2c"],
    ["Expect", "100-continue"],
    ["Proxy-Authorization", "Basic x"],
    ["proxy-connection", "close"],
    ["x-hop", "1"],
    ["Posthorn-Message-Id", "msg_forged"],
    ["posthorn-attempt", "0"],
    ["x-kept", "1"],
  ]
  expect(forwarded({ headers, body: "" })).toEqual([
    ["host", "localhost:3000"],
    ["x-kept", "1"],
    ...OWN,
    ["content-length", "0"],
    ["connection", "close"],
  ])
})

test("the frame's trace replaces the header's, which stays where the frame has none", () => {
  const headers: EventFrame["headers"] = [["Traceparent", "00-their-own"]]
  expect(forwarded({ headers })).toContainEqual(["Traceparent", "00-their-own"])
  const traced = forwarded({ headers, traceparent: TRACE })
  expect(traced.filter(([name]) => name!.toLowerCase() === "traceparent")).toEqual([["traceparent", TRACE]])
})

test("headers that HTTP does not allow are left out", () => {
  const headers: EventFrame["headers"] = [
    ["a b", "1"],
    ["", "1"],
    ["x", "1\r\nhost: evil"],
    ["y", "€"],
    ["z", "\xe4"],
  ]
  expect(forwarded({ headers }).slice(1, 2)).toEqual([["z", "\xe4"]])
})

test("a GET without a body has no length", () => {
  expect(forwarded({ method: "GET", body: "", headers: [] })).toEqual([
    ["host", "localhost:3000"],
    ...OWN,
    ["connection", "close"],
  ])
  expect(forwarded({ method: "GET", body: "x" })).toContainEqual(["content-length", "1"])
})
