/** Numbers in JSON stay as they were written. */
import fc from "fast-check"
import { expect, test } from "vitest"
import { parseExactly } from "./exact-json.ts"

const again = (text: string) => JSON.stringify(parseExactly(text))

test("numbers that a double cannot hold are written as they were", () => {
  for (const number of [
    "9007199254740993",
    "-12345678901234567890",
    "3.14159265358979323846",
    "1e400",
    "-1.5E+309",
    "1e-400",
    "0.10000000000000000001",
  ])
    expect(again(`{"list":[${number}],"n":${number}}`)).toBe(`{"list":[${number}],"n":${number}}`)
})

test("other numbers are numbers", () => {
  for (const number of [
    "0",
    "-0",
    "1",
    "-1.50",
    "1e3",
    "9007199254740991",
    "0.1",
    "1.7976931348623157e+308",
  ]) {
    const [held] = parseExactly(`[${number}, 12345678901234567890]`) as unknown[]
    expect(held).toBe(Number(number))
  }
})

test("texts with many digits stay texts, and text that is not JSON is refused", () => {
  expect(parseExactly('{"id":"9007199254740993"}')).toEqual({ id: "9007199254740993" })
  expect(() => parseExactly("9007199254740993,")).toThrow(SyntaxError)
})

test("everything else is as JSON.parse reads it", () => {
  fc.assert(
    fc.property(fc.json(), (text) => {
      expect(again(text)).toBe(JSON.stringify(JSON.parse(text)))
    }),
  )
})
