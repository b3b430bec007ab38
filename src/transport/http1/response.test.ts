/** The parser by itself, with every response cut in every way. Real sockets are in `../http.test.ts`. */
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { toBuffer } from "../../core/bytes.ts"
import { ResponseReader } from "./response.ts"

interface Read {
  readonly status: number | undefined
  readonly body: string
  readonly isComplete: boolean
  readonly leavesConnection: boolean
  readonly isTruncated: boolean
}

/** Parses the text in pieces that end at these places, each in the same buffer. */
function read(text: string, cuts: readonly number[] = [], ends = false): Read {
  const bytes = Buffer.from(text, "latin1")
  const reader = new ResponseReader()
  const buffer = Buffer.alloc(bytes.length + 16, "\r\n\r\n")
  const places = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b)
  let isComplete = false
  let from = 0
  for (const to of [...places, bytes.length]) {
    bytes.copy(buffer, 0, from, to)
    if (to > from && !isComplete) isComplete = reader.take(buffer, to - from)
    from = to
  }
  if (ends && !isComplete) isComplete = reader.end()
  const { head, body, leavesConnection, isTruncated } = reader
  return {
    status: head?.status,
    body: toBuffer(body).toString("latin1"),
    isComplete,
    leavesConnection,
    isTruncated,
  }
}

const refusal = (text: string, cuts: readonly number[] = []) => {
  try {
    read(text, cuts)
    return null
  } catch (error) {
    return (error as { failure?: string }).failure
  }
}

const OK = "HTTP/1.1 200 OK\r\n"
const COMPLETE = { isComplete: true, leavesConnection: true, isTruncated: false }

describe("a response is read to its end", () => {
  test.each([
    ["with a length", `${OK}content-length: 5\r\n\r\nhello`, 200, "hello"],
    ["with a length of 0", "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n", 500, ""],
    ["without a reason", "HTTP/1.1 201\r\ncontent-length:2\r\n\r\nok", 201, "ok"],
    ["without a body", "HTTP/1.1 204 None\r\n\r\n", 204, ""],
    ["in chunks", `${OK}transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n`, 200, "hello"],
    [
      "in chunks of all kinds",
      `${OK}Transfer-Encoding: gzip, Chunked\r\n\r\n2;a=b\r\nhe\r\nA \r\n0123456789\r\n00\r\nx: y\r\nz: \r\n\r\n`,
      200,
      "he0123456789",
    ],
    [
      "behind interim responses",
      `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nlink: x\r\n\r\nHTTP/1.1 102 Wait\r\n\r\n${OK}content-length: 2\r\n\r\nok`,
      200,
      "ok",
    ],
    [
      "with a thousand small headers",
      `${OK}${"x: y\r\n".repeat(1000)}content-length: 2\r\n\r\nok`,
      200,
      "ok",
    ],
    ["behind line breaks", `\r\n\r\n${OK}content-length: 2\r\n\r\nok`, 200, "ok"],
    ["before line breaks", `${OK}content-length: 2\r\n\r\nok\r\n\r\n`, 200, "ok"],
    [
      "of HTTP/1.0 with keep-alive",
      "HTTP/1.0 200 OK\r\nconnection: Keep-Alive\r\ncontent-length: 2\r\n\r\nok",
      200,
      "ok",
    ],
  ])("%s, however it is cut up", (_what, text, status, body) => {
    expect(read(text)).toEqual({ status, body, ...COMPLETE })
    fc.assert(
      fc.property(fc.array(fc.nat(), { maxLength: 12 }), (cuts) => {
        expect(read(text, cuts)).toEqual({ status, body, ...COMPLETE })
      }),
    )
    expect(
      read(
        text,
        Array.from(text, (_letter, i) => i),
      ),
    ).toEqual({ status, body, ...COMPLETE })
  })

  test("at the end of the connection, if it has neither length nor chunks", () => {
    const text = `${OK}x: y\r\n\r\nall that comes`
    expect(read(text)).toMatchObject({ isComplete: false })
    expect(read(text, [30], true)).toEqual({
      ...{ status: 200, body: "all that comes", isComplete: true },
      ...{ leavesConnection: false, isTruncated: false },
    })
  })
})

test.each([
  ["nothing", ""],
  ["half a head", "HTTP/1.1 200 OK\r\nx"],
  ["half a body", `${OK}content-length: 5\r\n\r\nhel`],
  ["half a chunk", `${OK}transfer-encoding: chunked\r\n\r\n5\r\nhel`],
  ["no last chunk", `${OK}transfer-encoding: chunked\r\n\r\n3\r\nhel\r\n`],
  ["no end of the trailers", `${OK}transfer-encoding: chunked\r\n\r\n0\r\n`],
])("a connection that ends after %s leaves the response incomplete", (_what, text) => {
  expect(read(text, [], true)).toMatchObject({ isComplete: false })
})

test.each<[string, string, number?]>([
  ["says close", `${OK}connection: close\r\ncontent-length: 2\r\n\r\nok`],
  ["is of HTTP/1.0", "HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok"],
  ["announces a length with a 204", "HTTP/1.1 204 None\r\ncontent-length: 2\r\n\r\n", 204],
  ["announces chunks with a 304", "HTTP/1.1 304 Same\r\ntransfer-encoding: chunked\r\n\r\n", 304],
  ["has bytes behind it", `${OK}content-length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n`],
  ["has bytes behind its chunks", `${OK}transfer-encoding: chunked\r\n\r\n0\r\n\r\nx`],
])("the connection is not reused after a response that %s", (_what, text, status = 200) => {
  expect(read(text)).toMatchObject({ status, isComplete: true, leavesConnection: false })
})

test.each([
  ["another protocol", "SSH-2.0-OpenSSH_9.6\r\n"],
  ["another protocol, by its first letter", "2"],
  ["another version", "HTTP/2.0 200 OK\r\n\r\n"],
  ["a status of two digits", "HTTP/1.1 20 OK\r\n\r\n"],
  ["a status of four digits", "HTTP/1.1 2000 OK\r\n\r\n"],
  ["a switch of protocols", "HTTP/1.1 101 Switching\r\n\r\n"],
  ["a status below 100", "HTTP/1.1 099 Less\r\n\r\n"],
  ["a header without a colon", `${OK}oops\r\n\r\n`],
  ["a header without a name", `${OK}: x\r\n\r\n`],
  ["a header with a space before its colon", `${OK}content-length : 2\r\n\r\nok`],
  ["a folded header", `${OK}x: y\r\n z\r\ncontent-length: 0\r\n\r\n`],
  ["a lone line feed", `${OK}x: y\ncontent-length: 0\r\n\r\n`],
  ["a lone carriage return", `${OK}x: y\rz\r\ncontent-length: 0\r\n\r\n`],
  ["a head of lone line feeds", "HTTP/1.1 200 OK\ncontent-length: 2\n\nok"],
  ["a status line that ends in a lone line feed", "HTTP/1.1 200 OK\n"],
  ["a lone line feed in a head that does not end", `${OK}x: y\nz`],
  ["a head of lone carriage returns", "HTTP/1.1 200 OK\rcontent-length: 2\r\rok"],
  ["a lone line feed in an interim response", `HTTP/1.1 103 Early\r\nlink: x\n\n`],
  ["a zero byte", `${OK}x: y\0\r\ncontent-length: 0\r\n\r\n`],
  ["two lengths", `${OK}content-length: 2\r\ncontent-length: 2\r\n\r\nok`],
  ["a list of lengths", `${OK}content-length: 2, 2\r\n\r\nok`],
  ["a negative length", `${OK}content-length: -1\r\n\r\n`],
  ["a length and chunks", `${OK}content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`],
  ["a chunk without a size", `${OK}transfer-encoding: chunked\r\n\r\n\r\nx`],
  ["a chunk's size in no digits", `${OK}transfer-encoding: chunked\r\n\r\nxyz\r\n`],
  ["a chunk of more than 4 GiB", `${OK}transfer-encoding: chunked\r\n\r\n123456789\r\n`],
  ["a chunk that is longer than it says", `${OK}transfer-encoding: chunked\r\n\r\n2\r\nhello\r\n0\r\n\r\n`],
  ["a chunk's size with a lone line feed", `${OK}transfer-encoding: chunked\r\n\r\n2\nok\r\n0\r\n\r\n`],
  ["an extension with a lone line feed", `${OK}transfer-encoding: chunked\r\n\r\n2;x\nok\r\n0\r\n\r\n`],
  ["a trailer with a lone line feed", `${OK}transfer-encoding: chunked\r\n\r\n0\r\nx: y\n\r\n`],
])("%s is an invalid response, however it is cut up", (_what, text) => {
  expect(refusal(text)).toBe("invalid_response")
  expect(
    refusal(
      text,
      Array.from(text, (_letter, i) => i),
    ),
  ).toBe("invalid_response")
})

describe("there is a limit for", () => {
  const chunked = `${OK}transfer-encoding: chunked\r\n\r\n`
  test.each([
    ["a head that does not end", `${OK}x: ${"y".repeat(20_000)}`],
    ["a head that ends late", `${OK}x: ${"y".repeat(20_000)}\r\n\r\n`],
    ["headers", `${OK}${"a:\r\n".repeat(5000)}\r\n`],
    ["interim responses", "HTTP/1.1 103 Early\r\n\r\n".repeat(1001)],
    ["line breaks before a response", "\r\n".repeat(300_000)],
    ["a chunk's extension", `${chunked}1;${"x".repeat(600_000)}`],
    ["trailers", `${chunked}0\r\n${"x: y\r\n".repeat(100_000)}`],
  ])("%s", (_what, text) => {
    const pieces = Array.from({ length: Math.ceil(text.length / 4096) }, (_piece, i) => i * 4096)
    expect(refusal(text, pieces)).toBe("response_too_large")
  })

  test.each([
    ["a body with a length", `${OK}content-length: 70000\r\n\r\n${"x".repeat(70_000)}`],
    ["a body in chunks", `${chunked}11170\r\n${"x".repeat(70_000)}\r\n0\r\n\r\n`],
    ["a body in chunks of a byte", `${chunked}${"1\r\nx\r\n".repeat(70_000)}0\r\n\r\n`],
    ["a body without a length", `${OK}\r\n${"x".repeat(70_000)}`],
  ])("%s: the first 64 KiB are kept", (_what, text) => {
    const whole = read(text, [4096, 8192, 65_536])
    expect(whole).toMatchObject({ status: 200, isComplete: true, isTruncated: true, leavesConnection: false })
    expect(whole.body).toHaveLength(65_536)
  })
})

test("a header that occurs twice is ignored", () => {
  const reader = new ResponseReader()
  const text = Buffer.from(
    "HTTP/1.1 503 No\r\nretry-after: 5\r\nRetry-After: 7\r\nlocation: /a\r\nkeep-alive: timeout=5, max=100\r\ncontent-length: 0\r\n\r\n",
  )
  reader.take(text, text.length)
  expect(reader.head).toMatchObject({ retryAfter: null, location: "/a", keepAliveSeconds: 5 })
})
