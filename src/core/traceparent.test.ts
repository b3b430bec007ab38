import { expect, test } from "vitest"
import { cleanTraceparent, parseTraceparent, writeTraceparent } from "./traceparent.ts"

const traceId = "4bf92f3577b34da6a3ce929d0e0e4736"
const spanId = "00f067aa0ba902b7"

test("a traceparent is read and written", () => {
  const text = `00-${traceId}-${spanId}-01`
  const parsed = { traceId, spanId, isSampled: true }
  expect(parseTraceparent(text)).toEqual(parsed)
  expect(writeTraceparent(parsed)).toBe(text)
  expect(parseTraceparent(`00-${traceId}-${spanId}-00`)).toMatchObject({ isSampled: false })
})

test("flags and fields of later versions are not passed on", () => {
  expect(cleanTraceparent(`00-${traceId}-${spanId}-ff`)).toBe(`00-${traceId}-${spanId}-01`)
  expect(cleanTraceparent(`cc-${traceId}-${spanId}-08-what-will-be`)).toBe(`00-${traceId}-${spanId}-00`)
  expect(cleanTraceparent(null)).toBe(null)
})

test.each([
  ["nothing", ""],
  ["another text", "b3: 1"],
  ["the forbidden version", `ff-${traceId}-${spanId}-01`],
  ["a version that is too long", `000-${traceId}-${spanId}-01`],
  ["upper case", `00-${traceId.toUpperCase()}-${spanId}-01`],
  ["a trace of zeros", `00-${"0".repeat(32)}-${spanId}-01`],
  ["a span of zeros", `00-${traceId}-${"0".repeat(16)}-01`],
  ["a short trace", `00-${traceId.slice(1)}-${spanId}-01`],
  ["no flags", `00-${traceId}-${spanId}`],
  ["more than version 00 has", `00-${traceId}-${spanId}-01-more`],
  ["two headers in one", `00-${traceId}-${spanId}-01, 00-${traceId}-${spanId}-01`],
  ["a line break", `00-${traceId}-${spanId}-01\n`],
  ["a later version that goes on without a dash", `01-${traceId}-${spanId}-01more`],
])("%s is no traceparent", (_, text) => {
  expect(parseTraceparent(text)).toBe(null)
})
