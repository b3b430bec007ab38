import { describe, expect, test } from "vitest"
import { nearest } from "./nearest.ts"
import { column, columnRight, printable, wrapped } from "./text.ts"

describe("printable", () => {
  test("shows escape sequences, control characters and line breaks as their codes", () => {
    expect(printable("a\x1b[2Jb\x07c\r\nd\x9b1m\u2028e")).toBe("a\\x1b[2Jb\\x07c\\x0d\\x0ad\\x9b1m\\u{2028}e")
  })

  test("shows characters that turn the direction of text, and halves of a pair, as their codes", () => {
    expect(printable("\u202egnp.exe \ud800")).toBe("\\u{202e}gnp.exe \\u{d800}")
  })

  test("leaves letters of every script as they are", () => {
    expect(printable("Zahlung für 東京, 5 €")).toBe("Zahlung für 東京, 5 €")
  })
})

describe("columns", () => {
  test("are filled up to their width, on either side", () => {
    expect(column("ab", 4)).toBe("ab  ")
    expect(columnRight("ab", 4)).toBe("  ab")
  })

  test("are cut to their width, and say so", () => {
    expect(column("abcdef", 4)).toBe("abc…")
    expect(columnRight("abcdef", 4)).toBe("abc…")
  })
})

describe("nearest", () => {
  test("finds the name that is a slip of the finger away", () => {
    expect(nearest("dmeo", ["serve", "demo", "dead"])).toBe("demo")
    expect(nearest("--kep", ["--help", "--keep"])).toBe("--keep")
  })

  test("finds none when nothing is close", () => {
    expect(nearest("frobnicate", ["serve", "demo"])).toBeNull()
  })
})

test.each([
  ["one two three", 20, ["one two three"]],
  ["one two three", 7, ["one two", "three"]],
  ["one two three", 3, ["one", "two", "thr", "ee"]],
  ["a 東京東京 b", 3, ["a", "東京東", "京 b"]],
  ["", 5, [""]],
])("%j in %i columns", (text, width, lines) => {
  expect(wrapped(text, width)).toEqual(lines)
})
