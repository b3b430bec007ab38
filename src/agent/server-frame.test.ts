import { expect, test } from "vitest"
import { eventFrame } from "../../test/support/fake-relay.ts"
import { readServerFrame } from "./server-frame.ts"

const read = (frame: unknown) => readServerFrame(JSON.stringify(frame))
const { kind: _kind, ...event } = eventFrame()

test("every frame of a server is read, without fields that this version does not know", () => {
  const frames = [
    { kind: "welcome", session: "s", epoch: 3, heartbeat: 20 },
    eventFrame({ base64: "AAEC", sourceId: null, traceparent: `00-${"a".repeat(32)}-${"b".repeat(16)}-01` }),
    { kind: "settled", id: "dlv_1", attempt: 2, status: "dead" },
    { kind: "settled", id: "dlv_1", attempt: 2, status: null },
    { kind: "drain" },
    { kind: "error", code: "late", detail: "too late", id: "dlv_1" },
    { kind: "error", code: "unknown_kind", detail: "no such kind", id: null },
  ]
  for (const frame of frames) expect(read({ ...frame, later: { version: 2 } })).toEqual(frame)
})

test("a frame of another kind is unknown, and no mistake", () => {
  expect(read({ kind: "greetings" })).toEqual({ kind: "unknown", name: "greetings" })
})

test("a trace context that is not valid is left out", () => {
  expect(read(eventFrame({ traceparent: "00-nonsense" }))).toMatchObject({ traceparent: null })
})

test("a deadline that is no whole number is rounded up", () => {
  expect(read(eventFrame({ deadline: 16100.000000000002 }))).toMatchObject({ deadline: 16101 })
})

test.each([
  ["no text", "kind is not a text", {}],
  ["a kind of 1000 characters", "kind has not between", { kind: "k".repeat(1000) }],
  ["an id that is a number", "id is not a text", { kind: "event", ...event, id: 1 }],
  ["no id", "id is not a text", { kind: "event", ...event, id: undefined }],
  ["an empty token", "token has not between", { kind: "event", ...event, token: "" }],
  ["a broken attempt", "attempt is not a whole number", { kind: "event", ...event, attempt: 1.5 }],
  ["a deadline of 0", "deadline is not a number of at least 1", { kind: "event", ...event, deadline: 0 }],
  ["a method with a space", "method is not an HTTP method", { kind: "event", ...event, method: "GET /" }],
  ["no date", "receivedAt is not a date", { kind: "event", ...event, receivedAt: "soon" }],
  ["headers that are an object", "headers are not", { kind: "event", ...event, headers: {} }],
  ["half a header", "headers are not", { kind: "event", ...event, headers: [["a"]] }],
  ["2001 headers", "headers are not", { kind: "event", ...event, headers: Array(2001).fill(["a", "b"]) }],
  ["two bodies", "neither one text body nor one base64", { kind: "event", ...event, base64: "AAEC" }],
  ["no body", "neither one text body", { kind: "event", ...event, body: undefined }],
  ["bad base64", "neither one text body", { kind: "event", ...event, body: undefined, base64: "A-_=" }],
  ["another status", "status is none of", { kind: "settled", id: "d", attempt: 1, status: "lost" }],
  ["another code", "code is none of", { kind: "error", code: "angry", detail: "", id: null }],
])("a frame with %s is refused", (_what, problem, frame) => {
  expect(() => read(frame)).toThrow(problem)
})

test.each([
  ["nothing", ""],
  ["no JSON", "{'kind': 'drain'}"],
  ["a list", "[]"],
  ["null", "null"],
  ["a million brackets", "[".repeat(1_000_000)],
  ["a million pairs of brackets", "[".repeat(1_000_000) + "]".repeat(1_000_000)],
])("%s is no frame", (_what, text) => {
  expect(() => readServerFrame(text)).toThrow(/^the frame is not (JSON|a JSON object)$/)
})

test("a frame with a million brackets in a field that nobody reads is read", () => {
  const deep = "[".repeat(1_000_000) + "]".repeat(1_000_000)
  expect(readServerFrame(`{"kind":"drain","deep":${deep}}`)).toEqual({ kind: "drain" })
})
