import { describe, expect, test } from "vitest"
import { toBuffer } from "./bytes.ts"
import { payloadBytes, requireHeaders } from "./input.ts"

const refusal = (field: string) => expect.objectContaining({ code: "invalid_input", field })

describe("custom headers", () => {
  test.each([
    ...["host", "content-length", "transfer-encoding", "connection", "te", "trailer", "upgrade", "expect"],
    ...["keep-alive", "idempotency-key", "accept-encoding", "proxy-authorization", "proxy-x", "webhook-id"],
    ...["webhook-x", "svix-id", "svix-x", "Host", "HOST", "Transfer-Encoding", "Proxy-Connection", "SVIX-Id"],
    // The Kelvin sign is a k in lower case.
    "\u212aeep-alive",
    "webhoo\u212a-id",
  ])("%s is Posthorn's own", (name) => {
    expect(() => requireHeaders({ "x-a": "1", [name]: "1" }, "headers")).toThrow(refusal(`headers.${name}`))
  })

  test.each(["", " ", "x y", "x:", "x\r\ny", "x\0", "h\u00f6st", "(x)", "x/y"])("%j is no name", (name) => {
    expect(() => requireHeaders({ [name]: "1" }, "headers")).toThrow(refusal(`headers.${name}`))
  })

  test.each(["a\r\nx-b: 1", "a\n", "\0", "\x7f", "\u0100", 7, null])("%j is no value", (value) => {
    expect(() => requireHeaders({ "x-a": value }, "headers")).toThrow(refusal("headers.x-a"))
  })

  test.each([
    "x-svix-id",
    "X-Svix-Trace",
    "x-amz-a",
    "X-Amzn-Trace-Id",
    "x-goog-a",
    "x-google-a",
    "x-gfe-a",
  ])("%s is left to those who put it there", (name) => {
    expect(() => requireHeaders({ [name]: "1" }, "headers")).toThrow(refusal(`headers.${name}`))
  })

  test("a name is given once, in whatever case", () => {
    expect(() => requireHeaders({ "X-A": "1", "x-a": "2" }, "headers")).toThrow(refusal("headers.x-a"))
  })

  test("all others are taken as they are, with the case of their names", () => {
    const given = {
      Authorization: "a",
      "X-Host": "b",
      "hosted-by": "c",
      webhook: "d",
      "x-proxy-a": "e\t\xff",
    }
    expect(requireHeaders(given, "headers")).toEqual(given)
  })

  test("one that has the name of an object's insides is not lost", () => {
    const headers = requireHeaders(JSON.parse('{"__proto__":"a","constructor":"b"}'), "headers")
    expect(Object.entries(headers)).toEqual([
      ["__proto__", "a"],
      ["constructor", "b"],
    ])
  })

  test("there are at most fifty", () => {
    const many = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, i) => [`x-${i}`, ""]))
    expect(Object.keys(requireHeaders(many(50), "headers"))).toHaveLength(50)
    expect(() => requireHeaders(many(51), "headers")).toThrow(refusal("headers"))
  })
})

test.each([
  ["a JSON value", { n: 1 }, '{"n":1}'],
  ["a JSON value that is not ASCII", { n: "é" }, '{"n":"é"}'],
  ["bytes of a larger buffer", Buffer.from("--abc--").subarray(2, 5), "abc"],
  ["bytes that are not ASCII", Buffer.from("--é--").subarray(2, 4), "é"],
])("what is written of %s is its bytes and no more, to be handed to another thread", (_what, payload, text) => {
  const { bytes } = payloadBytes(payload, undefined, 1000, (name) => name)
  expect(toBuffer(bytes).toString()).toBe(text)
  if (typeof bytes !== "string") expect(bytes.buffer.byteLength).toBe(Buffer.byteLength(text))
})
