import { expect, test } from "vitest"
import { JSON_POINTER, readPointer } from "./json-pointer.ts"

/** Of RFC 6901. */
const DOCUMENT = { foo: ["bar", "baz"], "": 0, "a/b": 1, "m~n": 8, deep: { list: [{ id: "x" }] } }

test.each([
  ["/foo", ["bar", "baz"]],
  ["/foo/0", "bar"],
  ["/", 0],
  ["/a~1b", 1],
  ["/m~0n", 8],
  ["/deep/list/0/id", "x"],
  ["/foo/2", undefined],
  ["/foo/00", undefined],
  ["/foo/length", undefined],
  ["/nothing/of/this", undefined],
  ["/constructor", undefined],
  ["/foo/0/0", undefined],
])("%s is %j", (pointer, value) => {
  expect(JSON_POINTER.test(pointer)).toBe(true)
  expect(readPointer(DOCUMENT, pointer)).toEqual(value)
})

test("a text without a slash in front, or with a broken escape, is no pointer", () => {
  for (const text of ["", "id", "data/id", "/a~2b", "/a~"]) expect(JSON_POINTER.test(text)).toBe(false)
})

test("no document makes it throw", () => {
  for (const document of [undefined, null, "text", 5, [], {}])
    expect(readPointer(document, "/a")).toBeUndefined()
})
