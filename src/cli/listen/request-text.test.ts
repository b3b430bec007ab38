import { expect, test } from "vitest"
import { webhook } from "../../../test/support/webhooks.ts"
import { bodyLines, requestLines, sizeText } from "./request-text.ts"

test("a request is its first line, its headers and its body", () => {
  const headers = [
    ["Content-Type", "application/json"],
    ["X-GitHub-Event", "push"],
  ] as const
  expect(requestLines(webhook({ headers, body: Buffer.from('{\n\t"a": "ü"\r\n}') }))).toEqual([
    "POST /hooks?team=core",
    "Content-Type: application/json",
    "X-GitHub-Event: push",
    "",
    "{",
    '\t"a": "ü"',
    "}",
  ])
  const bare = webhook({ method: "GET", path: "", query: "", headers: [], body: Buffer.alloc(0) })
  expect(requestLines(bare)).toEqual(["GET /", "", "(no body)"])
})

test("nothing of it can drive the terminal", () => {
  const hostile = "\x1b]0;title\x07\x1b[2J\x9b31m\r\b\u202e"
  const lines = requestLines(
    webhook({ path: `/${hostile}`, headers: [["X-Evil", hostile]], body: Buffer.from(hostile) }),
  )
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these must not be there
  for (const line of lines) expect(line).not.toMatch(/[\x00-\x1f\x7f-\x9f\u202e]/)
  expect(lines.at(-1)).toBe("\\x1b]0;title\\x07\\x1b[2J\\x9b31m\\x0d\\x08\\u{202e}")
})

test("bytes that are not text are their size and how they begin", () => {
  expect(bodyLines(Buffer.from([0xff, 0x00, 0x1b]))).toEqual(["(3 bytes, not text: ff 00 1b)"])
  expect(bodyLines(Buffer.from([0]))).toEqual(["(1 byte, not text: 00)"])
  const long = bodyLines(Buffer.alloc(5000, 0xfe))
  expect(long).toEqual([`(4.9 KiB, not text: ${Array(32).fill("fe").join(" ")} …)`])
})

test("a long text is cut, between two characters", () => {
  const [text, more, ...rest] = bodyLines(Buffer.from(`a${"é".repeat(50_000)}`))
  expect(text).toBe(`a${"é".repeat(32_767)}`)
  expect([more, rest]).toEqual(["(the first 64 KiB of 97.7 KiB)", []])
})

test.each([
  [0, "0 bytes"],
  [1, "1 byte"],
  [1023, "1023 bytes"],
  [1024, "1 KiB"],
  [1536, "1.5 KiB"],
  [1_048_576, "1 MiB"],
  [1_572_864, "1.5 MiB"],
])("%i bytes are %s", (bytes, text) => {
  expect(sizeText(bytes)).toBe(text)
})
