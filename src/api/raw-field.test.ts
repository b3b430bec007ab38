import fc from "fast-check"
import { expect, test } from "vitest"
import { rawField, rawItems } from "./raw-field.ts"

const raw = (json: string, name: string) => rawField(Buffer.from(json), name)?.toString() ?? null

test("a field's bytes come out as they are", () => {
  expect(raw('{"a": 1, "payload" : {"n":12345678901234567890,"f":1.0 , "t":"}\\"]"} }', "payload")).toBe(
    '{"n":12345678901234567890,"f":1.0 , "t":"}\\"]"}',
  )
  expect(raw('{"payload":1e400}', "payload")).toBe("1e400")
  expect(raw(' {\n"payload":[ [] , "x" ]\n}', "payload")).toBe('[ [] , "x" ]')
  expect(raw('{"payl\\u006fad":"ü"}', "payload")).toBe('"ü"')
})

test("the last of several counts, those inside others do not", () => {
  expect(raw('{"payload":1,"payload":2}', "payload")).toBe("2")
  expect(raw('{"a":{"payload":1},"b":["payload",{"payload":2}]}', "payload")).toBeNull()
  expect(raw("{}", "payload")).toBeNull()
})

test("whatever JSON there is, its fields are found as JSON.parse finds them", () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.nat(2), (object, indent) => {
      const text = JSON.stringify(object, null, indent)
      for (const [name, value] of Object.entries(JSON.parse(text)))
        expect(JSON.parse(raw(text, name)!)).toEqual(value)
    }),
  )
})

test("a list's items come out as they are", () => {
  const items = (json: string) => rawItems(Buffer.from(json)).map(String)
  expect(items(' [ {"a":[1,2]} , 1.0,"],[" ,[ ] ]')).toEqual(['{"a":[1,2]}', "1.0", '"],["', "[ ]"])
  expect(items("[ ]")).toEqual([])
  fc.assert(
    fc.property(fc.array(fc.jsonValue()), fc.nat(2), (list, indent) => {
      const text = JSON.stringify(list, null, indent)
      expect(items(text).map((item) => JSON.parse(item))).toEqual(JSON.parse(text))
    }),
  )
})
