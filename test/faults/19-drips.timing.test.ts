/** Fault 19: receivers that keep a sender waiting. Each is cut at the one absolute deadline and recorded as a timeout. */
import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { type AttemptEvent, openPosthorn, type Posthorn } from "../../src/index.ts"
import { LOOPBACK, temporaryFolder } from "../support/harness.ts"
import { STALLS } from "../support/hostile.ts"
import { Receiver } from "../support/receiver.ts"
import { hostile, transport } from "./attack.ts"

const DEADLINE_MS = 500
const LEEWAY_MS = 250
/** More than the socket buffers of both sides hold, so that it never leaves whole. */
const LARGE = Buffer.alloc(16 * 1024 * 1024, "x")
const PATHS = Object.keys(STALLS)

async function library(): Promise<Posthorn> {
  const posthorn = await openPosthorn({
    store: `sqlite:${join(temporaryFolder(), "posthorn.db")}`,
    logger: "silent",
    closeTimeoutMs: 0,
    maxPayloadBytes: LARGE.length,
    egress: LOOPBACK,
    retry: {
      delays: [3600],
      maxAttempts: 5,
      timeout: DEADLINE_MS / 1000,
      connectTimeout: 10,
      breaker: false,
    },
  })
  onTestFinished(() => posthorn.close())
  await posthorn.applications.create({ uid: "acme", name: "Acme" })
  return posthorn
}

/** Resolves with the next so many attempts. */
function attempts(posthorn: Posthorn, count: number): Promise<AttemptEvent[]> {
  const events: AttemptEvent[] = []
  return new Promise((resolve) => {
    const stop = posthorn.on("delivery.attempt", (event) => {
      events.push(event)
      if (events.length < count) return
      stop()
      resolve(events)
    })
  })
}

const request = (url: string, endpointId = "ep_1") => ({
  endpointId,
  version: 1,
  url,
  headers: { "content-type": "text/plain" },
  body: url.endsWith("/never-reads") ? LARGE : Buffer.from("hello"),
  timeoutMs: DEADLINE_MS,
  connectTimeoutMs: 10_000,
  tls: {},
})

function expectAtDeadline(tookMs: number): void {
  expect(tookMs).toBeGreaterThan(DEADLINE_MS - 10)
  expect(tookMs).toBeLessThan(DEADLINE_MS + LEEWAY_MS)
}

test.each(PATHS)("a receiver that %s is cut at the deadline, and its connection closed", async (path) => {
  const receiver = await hostile()
  const startedAt = performance.now()
  const { outcome } = await transport().send(request(receiver.url(path)))
  expectAtDeadline(performance.now() - startedAt)
  expect(outcome).toEqual({ kind: "failure", cause: "timeout" })
  expect(receiver.requests.get(path)).toBe(1)
  await receiver.deserted()
})

test("a receiver that never finishes the TLS handshake is cut at the deadline, and its connection closed soon", async () => {
  const receiver = await hostile()
  const posthorn = await library()
  await posthorn.endpoints.create("acme", { url: receiver.url("x").replace("http:", "https:") })
  const made = attempts(posthorn, 1)
  const startedAt = performance.now()
  await posthorn.send("acme", { eventType: "a.b", payload: {} })
  const [attempt] = await made
  expect(attempt).toMatchObject({ error: "timeout", success: false })
  expectAtDeadline(attempt!.duration_ms)
  await receiver.deserted()
  // Not only when the time for connecting, which is 10 s here, has passed as well.
  expect(performance.now() - startedAt).toBeLessThan(DEADLINE_MS + 2500)
})

test("early hints in any number that a drip can bring end at the deadline too", async () => {
  const receiver = await hostile()
  const deadlineMs = 2500
  const startedAt = performance.now()
  const { outcome } = await transport().send({
    ...request(receiver.url("early-hints")),
    timeoutMs: deadlineMs,
  })
  expect(outcome).toEqual({ kind: "failure", cause: "timeout" })
  expect(performance.now() - startedAt).toBeGreaterThan(deadlineMs - 10)
  expect(performance.now() - startedAt).toBeLessThan(deadlineMs + LEEWAY_MS)
})

test("thirty of each at once are all cut at the deadline", async () => {
  const receiver = await hostile()
  const http = transport()
  const send = async (path: string, i: number) => {
    const startedAt = performance.now()
    const { outcome } = await http.send(request(receiver.url(path), `${path}-${i}`))
    return { path, outcome, tookMs: performance.now() - startedAt }
  }
  const small = PATHS.filter((path) => path !== "never-reads")
  const results = await Promise.all(
    small.flatMap((path) => Array.from({ length: 30 }, (_, i) => send(path, i))),
  )
  const late = results.filter(({ tookMs }) => tookMs >= DEADLINE_MS + LEEWAY_MS)
  expect(late).toEqual([])
  expect(results.every(({ outcome }) => outcome.kind === "failure" && outcome.cause === "timeout")).toBe(true)
  await receiver.deserted()
})

test("through the library each is recorded as a timeout that took as long as the deadline", async () => {
  const receiver = await hostile()
  const posthorn = await library()
  for (const path of PATHS)
    await posthorn.endpoints.create("acme", { uid: path, url: receiver.url(path), eventTypes: [path] })
  const made = attempts(posthorn, PATHS.length)
  for (const path of PATHS)
    await posthorn.send("acme", { eventType: path, payload: path === "never-reads" ? LARGE : { n: 1 } })
  for (const { event_type, error, duration_ms, success } of await made) {
    expect({ event_type, error, success }).toEqual({ event_type, error: "timeout", success: false })
    expectAtDeadline(duration_ms)
  }
  const { data } = await posthorn.deliveries.list({ status: "failed" })
  expect(data.map(({ errorDetail }) => errorDetail)).toEqual(PATHS.map(() => "timeout"))
  await receiver.deserted()
})

test("healthy endpoints' latency beside a thousand hostile attempts stays within 1.2 times", async () => {
  const receiver = await hostile()
  const healthy = await Receiver.start()
  onTestFinished(() => healthy.close())
  const posthorn = await library()
  const HEALTHY = 200
  const HOSTILE = 125
  const ROUNDS = 8
  const kinds = PATHS.filter((path) => path !== "never-reads")
  for (let i = 0; i < HEALTHY; i++)
    await posthorn.endpoints.create("acme", { url: healthy.url(`/${i}`), eventTypes: ["healthy"] })
  for (let i = 0; i < HOSTILE; i++)
    await posthorn.endpoints.create("acme", {
      url: receiver.url(kinds[i % kinds.length]!),
      eventTypes: ["hostile"],
    })
  const p99OfHealthy = async (): Promise<number> => {
    const before = healthy.requests.length
    const all = arrivals(healthy, HEALTHY)
    const startedAt = performance.now()
    await posthorn.send("acme", { eventType: "healthy", payload: {} })
    await all
    const latencies = healthy.requests.slice(before).map(({ at }) => at - startedAt)
    return latencies.sort((a, b) => a - b)[Math.floor(HEALTHY * 0.99)]!
  }
  for (let i = 0; i < 3; i++) await p99OfHealthy()
  const alone: number[] = []
  const beside: number[] = []
  for (let round = 1; round <= ROUNDS; round++) {
    // By turns, so that both see the same machine; the best of each is the one that was least disturbed.
    alone.push(await p99OfHealthy())
    const cut = attempts(posthorn, HEALTHY + HOSTILE)
    await posthorn.send("acme", { eventType: "hostile", payload: {} })
    await receiver.arrived(round * HOSTILE)
    beside.push(await p99OfHealthy())
    await cut
    await receiver.deserted()
  }
  expect(Math.min(...beside)).toBeLessThan(Math.min(...alone) * 1.2)

  /** The paths differ for each endpoint, so each path gets one more. */
  function arrivals(of: Receiver, count: number): Promise<unknown> {
    return Promise.all(
      Array.from({ length: count }, (_, i) => of.arrived(`/${i}`, of.to(`/${i}`).length + 1)),
    )
  }
})
