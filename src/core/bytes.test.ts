import { expect, test } from "vitest"
import { bytesOfText, copyOfBytes, toBuffer, writeBytes } from "./bytes.ts"

const TEXTS = {
  "an empty text": "",
  ASCII: '{"a":"\u0000\u007f"}',
  "the letters of one byte beyond it": "caf\u00e9",
  "letters of two bytes": "\u0142\u00f3d\u017a",
  "a large text": "x".repeat(20_000),
}

test.each(Object.entries(TEXTS))("%s has the same bytes in every form", (_name, text) => {
  const expected = Buffer.from(text)
  const view = Buffer.concat([Buffer.from("--"), expected, Buffer.from("--")]).subarray(
    2,
    2 + expected.length,
  )
  for (const bytes of [bytesOfText(text), copyOfBytes(view)]) {
    expect(bytes).toHaveLength(expected.length)
    expect(toBuffer(bytes)).toEqual(expected)
    const target = Buffer.alloc(expected.length + 2, "-")
    writeBytes(bytes, target, 1)
    expect(target.toString()).toBe(`-${text}-`)
  }
})

test("only ASCII that is not large is a text", () => {
  const isText = Object.entries(TEXTS).map(([name, text]) => [name, typeof bytesOfText(text) === "string"])
  expect(Object.fromEntries(isText)).toEqual({
    "an empty text": true,
    ASCII: true,
    "the letters of one byte beyond it": false,
    "letters of two bytes": false,
    "a large text": false,
  })
})

test("a copy does not change with what it was made of", () => {
  for (const first of ["a", "\u00e9"]) {
    const view = Buffer.from(first)
    const copy = copyOfBytes(view)
    view.fill("b")
    expect(toBuffer(copy).toString()).toBe(first)
  }
})
