/** Fault 20: receivers that send too much, or break off. At most 64 KiB is kept, and memory does not grow with them. */
import { once } from "node:events"
import { expect, onTestFinished, test } from "vitest"
import { toBuffer } from "../../src/core/bytes.ts"
import { Harness } from "../support/harness.ts"
import { BOMB, BREAKS, FLOODS, STALLS } from "../support/hostile.ts"
import { Program } from "../support/process.ts"
import { hostile, request, transport } from "./attack.ts"
import type { Order, Weighed } from "./flood-child.ts"

const MOST_BYTES = 65_536
const MOST_GROWTH = 5 * 1024 * 1024

const TOO_LONG = { outcome: { kind: "response", status: 200 }, responseTruncated: true }
const failure = (cause: string) => ({ outcome: { kind: "failure", cause } })

const ENDINGS: { readonly [path in keyof typeof FLOODS | keyof typeof BREAKS]: object } = {
  "endless-body": TOO_LONG,
  "ten-gigabytes": TOO_LONG,
  "one-byte-chunks": TOO_LONG,
  "endless-gzip": TOO_LONG,
  "gzip-bomb": { outcome: { kind: "response", status: 200 }, responseTruncated: false },
  "many-headers": failure("response_too_large"),
  "many-small-headers": failure("response_too_large"),
  "large-header": failure("response_too_large"),
  "endless-headers": failure("response_too_large"),
  "endless-trailers": failure("response_too_large"),
  "endless-reason": failure("response_too_large"),
  "endless-line-breaks": failure("response_too_large"),
  "endless-chunk-size": failure("response_too_large"),
  "endless-chunk-extension": failure("response_too_large"),
  "extended-crumbs": failure("response_too_large"),
  "endless-hints": failure("response_too_large"),
  "resets-at-once": failure("connection_reset"),
  "closes-at-once": failure("connection_reset"),
  "resets-after-headers": failure("connection_reset"),
  "closes-after-headers": failure("connection_reset"),
  garbage: failure("invalid_response"),
  "another-protocol": failure("invalid_response"),
  "broken-chunks": failure("invalid_response"),
}

const send = (url: string) => transport().send(request(url))

test.each(Object.entries(ENDINGS))("%s ends at once and in the right way", async (path, ending) => {
  const receiver = await hostile()
  const result = await send(receiver.url(path))
  expect(result).toMatchObject(ending)
  expect(result.responseBody?.length ?? 0).toBeLessThanOrEqual(MOST_BYTES)
  if (path === "gzip-bomb") expect(Buffer.compare(toBuffer(result.responseBody!), BOMB)).toBe(0)
  // A connection whose answer was read to its end stays open for the next request; every other is dropped.
  if (path !== "gzip-bomb") await receiver.deserted()
})

test("at most 64 KiB of a body are written down, and the attempt says that it was cut", async () => {
  const receiver = await hostile()
  const harness = await Harness.start()
  const floods = ["endless-body", "ten-gigabytes", "one-byte-chunks", "endless-gzip", "gzip-bomb"]
  for (const path of floods) await harness.endpoint({ url: receiver.url(path), uid: path })
  await harness.send()
  await harness.published("delivery.delivered", floods.length)
  for (const path of floods) {
    const { id } = await harness.posthorn.endpoints.get("acme", path)
    const { data } = await harness.posthorn.attempts.list({ endpoint: id })
    const length = path === "gzip-bomb" ? BOMB.length : MOST_BYTES
    expect(data).toMatchObject([{ responseTruncated: path !== "gzip-bomb", responseStatus: 200 }])
    expect(data[0]!.responseBody).toHaveLength(length)
  }
})

/** Told what to send, it says what it weighs afterwards. */
async function sender(): Promise<(order: Order) => Promise<Weighed>> {
  const program = Program.start(new URL("./flood-child.ts", import.meta.url), [], { talks: true })
  onTestFinished(async () => void (await program.kill()))
  await program.line(/ready/)
  return async (order) => {
    program.process.send(order)
    return (await once(program.process, "message"))[0] as Weighed
  }
}

test("memory grows by less than 5 MB over a thousand of them, and no socket stays open", {
  timeout: 120_000,
}, async () => {
  const receiver = await hostile()
  const weigh = await sender()
  const paths = [...Object.keys(STALLS), ...Object.keys(FLOODS), ...Object.keys(BREAKS)]
  // A body that was read to its end leaves a connection for the next request.
  const urls = paths.filter((path) => path !== "gzip-bomb").map((path) => receiver.url(path))
  const order = { urls, atOnce: 50, timeoutMs: 500 }
  const before = await weigh({ ...order, count: 200 })
  const after = await weigh({ ...order, count: 1000 })
  expect(after.bytes - before.bytes).toBeLessThan(MOST_GROWTH)
  expect(after.longestBody).toBe(MOST_BYTES)
  expect(after.openSockets).toBe(0)
  const { "200": ok = 0, ...failures } = after.endings
  expect(ok).toBeGreaterThan(0)
  expect(Object.keys(failures).sort()).toEqual([
    '{"kind":"failure","cause":"connection_reset"}',
    '{"kind":"failure","cause":"invalid_response"}',
    '{"kind":"failure","cause":"response_too_large"}',
    '{"kind":"failure","cause":"timeout"}',
  ])
  await receiver.deserted()
})

test("a thousand gzip bombs stay packed", async () => {
  const receiver = await hostile()
  const weigh = await sender()
  const order = { urls: [receiver.url("gzip-bomb")], atOnce: 50, timeoutMs: 10_000 }
  const before = await weigh({ ...order, count: 200 })
  const after = await weigh({ ...order, count: 1000 })
  expect(after).toMatchObject({ endings: { "200": 1000 }, longestBody: BOMB.length })
  expect(after.bytes - before.bytes).toBeLessThan(MOST_GROWTH)
})

test.each([
  "many-headers",
  "endless-headers",
  "endless-trailers",
  "many-small-headers",
  "one-byte-chunks",
  "endless-reason",
  "endless-line-breaks",
  "endless-chunk-size",
  "endless-chunk-extension",
  "extended-crumbs",
  "endless-hints",
])("%s does not hold up the loop that all endpoints share", async (path) => {
  const receiver = await hostile()
  const weigh = await sender()
  const cost = async (of: string, count: number) =>
    (await weigh({ urls: [receiver.url(of)], count, atOnce: 1, timeoutMs: 10_000 })).cpuMs
  await cost("endless-body", 30)
  await cost(path, 10)
  // The loop that every endpoint shares stands still for as long: it must not be had for one small answer.
  const [flood, plain] = [await cost(path, 30), await cost("endless-body", 30)]
  expect(flood).toBeLessThan(plain * 30)
})

test("a receiver that sends more after its answer, while no request is open, loses its connection", async () => {
  const receiver = await hostile()
  const url = receiver.treat("afterwards", (socket) => {
    socket.write("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
    FLOODS["endless-line-breaks"](socket)
  })
  const startedAt = performance.now()
  expect((await send(url)).outcome).toMatchObject({ kind: "response", status: 200 })
  await receiver.deserted()
  // Not only when it has been idle for long enough, which is 10 s.
  expect(performance.now() - startedAt).toBeLessThan(5000)
})

test("a body in pieces of one byte weighs what its bytes weigh, while it comes", async () => {
  const receiver = await hostile()
  const AT_ONCE = 32
  const LENGTH = 60_000
  const url = receiver.treat("crumbs", (socket) => {
    socket.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
    socket.write("1\r\nx\r\n".repeat(LENGTH))
  })
  const weigh = await sender()
  const before = await weigh({ urls: [url], count: AT_ONCE, atOnce: AT_ONCE, timeoutMs: 2000 })
  const order = { urls: [url], count: AT_ONCE, atOnce: AT_ONCE, timeoutMs: 4000, weighAfterMs: 3000 }
  const during = await weigh(order)
  expect(during).toMatchObject({
    longestBody: LENGTH,
    endings: { '{"kind":"failure","cause":"timeout"}': AT_ONCE },
  })
  expect(during.bytes - before.bytes).toBeLessThan(AT_ONCE * MOST_BYTES * 2 + MOST_GROWTH)
})
