import { expect, test } from "vitest"
import { MOST_AGENT_FRAME_BYTES, MOST_RESPONSE_BYTES } from "../core/relay-protocol.ts"
import { decodeBody, encodeResponse } from "./encoding.ts"

const bytes = (text: string) => Buffer.from(text)

test("text stays text, and other bytes are base64", () => {
  expect(encodeResponse(bytes('{"naïve": "\\n"}'))).toEqual({ body: '{"naïve": "\\n"}' })
  expect(encodeResponse(Buffer.from([0xff, 0xfe, 0]))).toEqual({ base64: "//4A" })
  expect(encodeResponse(bytes("\ufeffwith a mark"))).toEqual({ body: "\ufeffwith a mark" })
  expect(encodeResponse(bytes(""))).toBeNull()
})

test("a long response is cut, text between two characters", () => {
  const all = encodeResponse(Buffer.alloc(MOST_RESPONSE_BYTES, "a"))!
  expect([all.body!.length, all.truncated]).toEqual([MOST_RESPONSE_BYTES, undefined])
  for (const before of ["", "a", "aa", "aaa"]) {
    const long = Buffer.from(before + "😀".repeat(MOST_RESPONSE_BYTES / 4 + 1)).subarray(
      0,
      MOST_RESPONSE_BYTES + 1,
    )
    const cut = encodeResponse(long)!
    expect(cut.truncated).toBe(true)
    expect(long.toString().startsWith(cut.body!)).toBe(true)
    expect(MOST_RESPONSE_BYTES - Buffer.byteLength(cut.body!)).toBeLessThan(4)
  }
  const binary = encodeResponse(Buffer.alloc(100_000, 0xbf))!
  expect(decodeBody(binary).equals(Buffer.alloc(MOST_RESPONSE_BYTES, 0xbf))).toBe(true)
})

test.each([
  ["control characters", "\x01"],
  ["quotes", '"'],
  ["characters of three bytes", "€"],
  ["bytes", Buffer.from([0x80])],
])("64 KiB of %s fit in a frame", (_what, filling) => {
  const whole = Buffer.alloc(MOST_RESPONSE_BYTES * 2, filling)
  const encoded = encodeResponse(whole)!
  expect(Buffer.byteLength(JSON.stringify(encoded))).toBeLessThan(MOST_AGENT_FRAME_BYTES - 16_384)
  const decoded = decodeBody(encoded)
  // Comparing them as values takes 100 times as long.
  expect(decoded.equals(whole.subarray(0, decoded.length))).toBe(true)
})
