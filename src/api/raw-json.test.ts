import fc from "fast-check"
import { expect, test } from "vitest"
import { RawJson, serialize } from "./raw-json.ts"

test("texts are written as they were, each in its place", () => {
  const page = {
    data: [{ payload: new RawJson('{ "n": 12345678901234567890, "x": 1.50 }') }, new RawJson("-0")],
  }
  expect(serialize(page)).toBe('{"data":[{"payload":{ "n": 12345678901234567890, "x": 1.50 }},-0]}')
})

test("a value without such texts is as JSON.stringify writes it", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect(serialize(value)).toBe(JSON.stringify(value))
    }),
  )
})

test("any mix of values and texts is parsed as it was", () => {
  const node = fc.oneof(
    fc.jsonValue(),
    fc.json().map((text) => new RawJson(text)),
  )
  fc.assert(
    fc.property(fc.array(node), (nodes) => {
      const plain = JSON.parse(JSON.stringify(nodes))
      expect(JSON.parse(serialize(nodes))).toEqual(plain)
    }),
  )
})

test("a value that cannot be written leaves nothing behind", () => {
  expect(() => serialize([new RawJson("1"), 1n])).toThrow(TypeError)
  expect(serialize([new RawJson("2")])).toBe("[2]")
  expect(JSON.stringify(new RawJson("[3]"))).toBe("[3]")
})
