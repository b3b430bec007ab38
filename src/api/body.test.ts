import { expect, test } from "vitest"
import { parseJson } from "./body.ts"

const parse = (text: string) => parseJson(Buffer.from(text))
const nested = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`
const problem = (msg: RegExp) =>
  expect.objectContaining({
    status: 422,
    body: { detail: [{ loc: ["body"], type: "value_error.jsondecode", msg: expect.stringMatching(msg) }] },
  })

test("JSON is read as it is", () => {
  const text = `{"a":[1,2.5,"\\u00e9 é",null,true],"constructor":{"prototype":1},"b":"${"[{".repeat(400)}\\""}`
  expect(parse(text)).toEqual(JSON.parse(text))
})

test("128 levels are read, and not one more", () => {
  expect(parse(nested(128))).toEqual(JSON.parse(nested(128)))
  expect(() => parse(nested(129))).toThrow(problem(/nests deeper than 128/))
  expect(() => parse(`{"a":`.repeat(200_000))).toThrow(problem(/nests deeper/))
  expect(() => parse(`[${nested(127)},${nested(127)}]`)).not.toThrow()
})

test.each([
  "__proto__",
  "\\u005f_proto__",
  "_\\u005Fpr\\u006Fto\\u005f_",
])("a field named %s is refused", (name) => {
  expect(() => parse(`{"a":{"${name}" : {}}}`)).toThrow(problem(/__proto__/))
})

test("the same word as a value, or inside a text, is none of our business", () => {
  expect(parse('{"a":"__proto__","b":"{\\"__proto__\\":1}"}')).toEqual({
    a: "__proto__",
    b: '{"__proto__":1}',
  })
})

test.each(["{", "", "nope", '{"a":1,}', "\u0000", '"\ud800'])("%j is not JSON", (text) => {
  expect(() => parse(text)).toThrow(problem(/is not/))
})

test("bytes that are no UTF-8 are refused", () => {
  expect(() => parseJson(Buffer.from([0x22, 0xff, 0x22]))).toThrow(problem(/UTF-8/))
})
