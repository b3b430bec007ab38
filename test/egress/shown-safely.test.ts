/** Answers of receivers are kept as bytes and shown as harmless text; values of customers cannot become a header. */
import pino from "pino"
import { describe, expect, onTestFinished, test } from "vitest"
import { systemClock } from "../../src/core/clock.ts"
import { printable } from "../../src/core/text.ts"
import type { EndpointInput, MessageInput } from "../../src/index.ts"
import { HttpTransport } from "../../src/transport/http.ts"
import { Harness, loopbackGuard } from "../support/harness.ts"
import { Hostile } from "../support/hostile.ts"

const ESCAPES = "\u001b[2J\u001b]0;owned\u0007\u009b31m"
const BIDI = "\u202egnp.exe\u2066\u200b\ufeff"
const NASTY: { readonly [name: string]: Buffer } = {
  "that is not UTF-8": Buffer.from([0xff, 0xfe, 0xc3, 0x28, 0xed, 0xa0, 0x80, 0xf4, 0x90, 0x80, 0x80]),
  "of every byte": Buffer.from(Array.from({ length: 256 }, (_, byte) => byte)),
  "with terminal escapes": Buffer.from(`before${ESCAPES}after`),
  "that turns the direction of text": Buffer.from(`before${BIDI}after`),
  "that forges a log line": Buffer.from('no\r\n{"level":30,"msg":"delivered"}\u2028\u2029\u0085next'),
  "with private, tagged and lone characters": Buffer.from("a\u{e0041}\u{f0000}\ue000\uffff\u{10ffff}b"),
}

/** Bytes that a terminal, a log viewer or a JSON reader would act on instead of showing. */
const ACTS = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u

async function hostile(): Promise<Hostile> {
  const started = await Hostile.start()
  onTestFinished(() => started.close())
  return started
}

/** The library with a logger whose lines are kept as they would be written. */
async function withLog(): Promise<{ harness: Harness; lines: string[] }> {
  const lines: string[] = []
  const logger = pino({ level: "debug" }, { write: (line: string) => void lines.push(line) })
  const harness = await Harness.start({ logger, retry: { delays: [30], maxAttempts: 1 } })
  return { harness, lines }
}

/** Each line is one JSON object and holds nothing that a terminal acts on. */
function expectSafeLines(lines: readonly string[]): void {
  expect(lines.length).toBeGreaterThan(0)
  for (const line of lines) {
    expect(line.endsWith("\n")).toBe(true)
    expect(line.slice(0, -1)).not.toMatch(ACTS)
    expect(() => JSON.parse(line)).not.toThrow()
  }
}

describe("a body", () => {
  test.each(
    Object.entries(NASTY),
  )("%s is kept as it came and shown without what acts", async (_name, body) => {
    const receiver = await hostile()
    const { harness, lines } = await withLog()
    const head = `HTTP/1.1 500 No\r\ncontent-length: ${body.length}\r\n\r\n`
    await harness.endpoint({ url: receiver.answer("nasty", head, body) })
    await harness.send()
    const [dead] = await harness.published("delivery.dead", 1)
    const [attempt] = await harness.published("delivery.attempt", 1)
    const { data } = await harness.posthorn.attempts.list()
    const [row] = await harness.rows()

    expect(Buffer.compare(data[0]!.responseBody!, body)).toBe(0)
    for (const text of [row!.error_detail, dead!.last_error, attempt!.error, data[0]!.error]) {
      expect(text).toMatch(/^HTTP 500: /)
      expect(text).not.toMatch(ACTS)
      expect(Buffer.from(text as string).toString()).toBe(text)
    }
    expectSafeLines(lines)
    expect(printable(dead!.last_error!)).not.toMatch(ACTS)
  })

  test("is shown only as far as a line goes, and a character cut in two is no break in the text", async () => {
    const receiver = await hostile()
    const { harness } = await withLog()
    const body = Buffer.from("€".repeat(10_000))
    await harness.endpoint({
      url: receiver.answer("long", `HTTP/1.1 500 No\r\ncontent-length: ${body.length}\r\n\r\n`, body),
    })
    await harness.send()
    const [dead] = await harness.published("delivery.dead", 1)
    expect(dead!.last_error!.length).toBeLessThan(600)
    expect(dead!.last_error).not.toMatch(ACTS)
  })
})

test("a status line and headers full of escapes reach neither the log nor the events", async () => {
  const receiver = await hostile()
  const { harness, lines } = await withLog()
  const nasty = `${ESCAPES.replaceAll("\u0007", "").replaceAll("\u001b", "")}${BIDI}`
  const head = `HTTP/1.1 500 ${nasty}\r\nserver: ${nasty}\r\nretry-after: ${nasty}\r\nlocation: ${nasty}\r\n`
  await harness.endpoint({ url: receiver.answer("nasty", head, "content-length: 2\r\n\r\nno") })
  await harness.send()
  const [dead] = await harness.published("delivery.dead", 1)
  expect(dead!.last_error).toBe("HTTP 500: no")
  expectSafeLines(lines)
})

test.each([
  "\u001b",
  "\u0007",
  "\u0000",
])("a header with the control character %j is no answer", async (char) => {
  const receiver = await hostile()
  const { harness, lines } = await withLog()
  await harness.endpoint({
    url: receiver.answer("control", `HTTP/1.1 200 OK\r\nserver: a${char}b\r\ncontent-length: 0\r\n\r\n`),
  })
  await harness.send()
  const [attempt] = await harness.published("delivery.attempt", 1)
  expectSafeLines(lines)
  // Taken or refused: in neither case is it shown.
  expect(attempt!.error ?? "").toMatch(/^(invalid_response)?$/)
})

test("the operator's detail of bytes that are no HTTP is one safe line", async () => {
  const receiver = await hostile()
  const { harness, lines } = await withLog()
  await harness.endpoint({ url: receiver.answer("garbage", ESCAPES, NASTY["of every byte"]!) })
  await harness.send()
  const [dead] = await harness.published("delivery.dead", 1)
  expect(dead!.last_error).toBe("invalid_response")
  expectSafeLines(lines)
})

test("a redirect's target is shown, and safely", async () => {
  const receiver = await hostile()
  const { harness, lines } = await withLog()
  const head =
    "HTTP/1.1 302 Found\r\nlocation: http://169.254.169.254/latest/\u009b31m\r\ncontent-length: 0\r\n\r\n"
  await harness.endpoint({ url: receiver.answer("away", head) })
  await harness.send()
  const [dead] = await harness.published("delivery.dead", 1)
  expect(dead!.last_error).toContain("http://169.254.169.254/latest/")
  expect(dead!.last_error).not.toMatch(ACTS)
  expectSafeLines(lines)
})

describe("Retry-After", () => {
  const NOW_PLUS = (days: number) => new Date(Date.now() + days * 86_400_000).toUTCString()
  test.each([
    ["10 years in seconds", String(10 * 365 * 86_400), 86_400],
    ["10 years as a date", NOW_PLUS(3650), 86_400],
    ["more digits than a number has", "9".repeat(400), 30],
    ["negative", "-5", 30],
    ["a date in the past", NOW_PLUS(-3650), 30],
    ["a fraction", "1.5", 30],
    ["junk", "soon 2030; DROP TABLE", 30],
    ["not ASCII", "½\u009b31m", 30],
    ["given twice", "5\r\nretry-after: 7000", 30],
  ])("%s waits neither for ever nor not at all", async (_name, value, seconds) => {
    const receiver = await hostile()
    const harness = await Harness.start({ retry: { delays: [30], maxAttempts: 3, retryAfter: true } })
    // The harness starts at a time of its own; a date is relative to the machine's.
    harness.clock.advance(Math.max(0, Date.now() - harness.clock.now()))
    const head = `HTTP/1.1 503 No\r\nretry-after: ${value}\r\ncontent-length: 0\r\n\r\n`
    await harness.endpoint({ url: receiver.answer("later", head) })
    await harness.send()
    const [attempt] = await harness.published("delivery.attempt", 1)
    expect(attempt!.next_retry_at! - harness.clock.now()).toBe(seconds * 1000)
  })
})

describe("header injection", () => {
  const BREAKS = [
    "\r\nx-injected: 1",
    "\nx-injected: 1",
    "\rx-injected: 1",
    "\u0000",
    "\u000b",
    "\u007f",
    "\u2028",
  ]

  test.each(BREAKS)("%j is refused wherever a customer's text becomes a header", async (text) => {
    const { posthorn, receiver } = await Harness.start()
    await posthorn.applications.create({ uid: "acme", name: "Acme" })
    const refused = (field: string, attempt: Promise<unknown>) =>
      expect(attempt).rejects.toMatchObject({ code: "invalid_input", field })
    const creating = (input: Partial<EndpointInput>) =>
      posthorn.endpoints.create("acme", { url: receiver.url(), ...input })
    const sending = (input: Partial<MessageInput>) =>
      posthorn.send("acme", { eventType: "a", payload: {}, ...input })

    await refused("headers.x-mine", creating({ headers: { "x-mine": `a${text}b` } }))
    await refused(`headers.x-mine${text}`, creating({ headers: { [`x-mine${text}`]: "a" } }))
    await refused("uid", creating({ uid: `a${text}` }))
    await refused("auth.token", creating({ auth: { type: "bearer", token: `a${text}b` } }))
    await refused("auth.username", creating({ auth: { type: "basic", username: `a${text}`, password: "b" } }))
    await refused("contentType", sending({ contentType: `text/plain${text}` }))
    await refused("eventType", sending({ eventType: `a${text}` }))
    await refused("eventId", sending({ eventId: `a${text}` }))
  })

  test.each(
    BREAKS,
  )("%j in a URL is taken out or encoded, and never breaks the request line", async (text) => {
    const harness = await Harness.start()
    const path = `/hook${text} HTTP/1.1\r\nx-injected: 1\r\n\r\n?q=${text}#${text}`
    await harness.endpoint({ url: harness.receiver.url(path) })
    await harness.send()
    await harness.published("delivery.delivered", 1)
    const [request, ...more] = harness.receiver.requests
    expect(more).toEqual([])
    expect(request!.headers["x-injected"]).toBeUndefined()
    expect(request!.path).toMatch(/^\/hook[\x21-\x7e]*$/)
  })

  test("a token server cannot put a header into the request by its token", async () => {
    const receiver = await hostile()
    const { harness } = await withLog()
    const answer = JSON.stringify({ access_token: "t\r\nx-injected: 1", expires_in: 3600 })
    const head = `HTTP/1.1 200 OK\r\ncontent-length: ${Buffer.byteLength(answer)}\r\n\r\n`
    const tokenUrl = receiver.answer("token", head, answer)
    await harness.endpoint({ auth: { type: "oauth2", tokenUrl, clientId: "a", clientSecret: "b" } })
    await harness.send()
    const [dead] = await harness.published("delivery.dead", 1)
    expect(dead!.last_error).toBe("auth_error")
    expect(harness.receiver.requests).toEqual([])
  })

  test("even what was never checked cannot break out of its header", async () => {
    const receiver = await hostile()
    const clock = systemClock()
    const transport = new HttpTransport(clock, loopbackGuard(clock))
    onTestFinished(() => transport.close())
    const { outcome } = await transport.send({
      endpointId: "ep_1",
      version: 1,
      url: receiver.answer("ok", "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"),
      headers: { "x-mine": "a\r\nx-injected: 1" },
      body: Buffer.from("hello"),
      timeoutMs: 5000,
      connectTimeoutMs: 5000,
      tls: {},
    })
    expect(outcome.kind).toBe("failure")
    expect(receiver.requests.size).toBe(0)
  })
})
