/** Metrics of a running Posthorn, compared with a receiver's ledger, on each store. */
import { expect, test } from "vitest"
import { noticeOf } from "../../src/alerts/dead-letter-notice.ts"
import { NO_INSTRUMENTS } from "../../src/observe/instruments.ts"
import { Harness } from "../support/harness.ts"
import { seriesOf, total } from "../support/series.ts"

const read = async ({ posthorn }: Harness) => seriesOf(await posthorn.registry!.metrics())

test("without the option there is no registry", async () => {
  expect((await Harness.start({ deliver: false })).posthorn.registry).toBeNull()
})

test("the counters agree with the receiver's ledger", async () => {
  const harness = await Harness.start({ metrics: true })
  await harness.endpoint()
  harness.receiver.always("/", (_request, response) => void response.writeHead(200).end("fine"))
  const payload = { text: "x".repeat(85) }
  for (let n = 0; n < 40; n++) await harness.send(payload)
  await harness.published("delivery.delivered", 40)
  await harness.quiet()
  const series = await read(harness)
  const { requests } = harness.receiver
  expect(requests).toHaveLength(40)
  expect(total(series, "posthorn_messages_accepted_total")).toBe(40)
  expect(total(series, "posthorn_attempts_total")).toBe(40)
  const first = { result: "succeeded", status_class: "2xx", kind: "first" }
  expect(total(series, "posthorn_attempts_total", first)).toBe(40)
  expect(total(series, "posthorn_attempts_by_number_total", { number: "1", result: "succeeded" })).toBe(40)
  expect(total(series, "posthorn_deliveries_finished_total", { outcome: "delivered" })).toBe(40)
  const sent = requests.reduce((bytes, { body }) => bytes + body.length, 0)
  expect(total(series, "posthorn_attempt_bytes_total", { direction: "out", kind: "first" })).toBe(sent)
  expect(total(series, "posthorn_attempt_bytes_total", { direction: "in" })).toBe(40 * "fine".length)
  for (const name of ["attempt_duration", "first_attempt_delay", "delivery_duration"])
    expect(total(series, `posthorn_${name}_seconds_count`)).toBe(40)
  expect(total(series, "posthorn_settle_batch_outcomes_sum")).toBe(40)
  expect(total(series, "posthorn_slots", { state: "used" })).toBe(0)
  expect(total(series, "posthorn_slots", { state: "free" })).toBe(2048)
})

test("a notification is no accepted message", async () => {
  const harness = await Harness.start({ metrics: true })
  const { alertChannels, notifier } = harness.posthorn
  await alertChannels.put("ops", { kind: "webhook", url: harness.receiver.url("/ops") })
  const notice = noticeOf(1, { since: 0, endpoints: [], more: 0 }, "warning", "key", 0)
  await notifier.notify(["ops"], notice, "key")
  await harness.receiver.arrived("/ops", 1)
  await harness.quiet()
  const series = await read(harness)
  expect(total(series, "posthorn_messages_accepted_total")).toBe(0)
  expect(total(series, "posthorn_attempts_total")).toBe(0)
  expect(total(series, "posthorn_notifications_total", { kind: "webhook", result: "delivered" })).toBe(1)
})

test("first attempts, retries, probes and an operator's attempts are told apart", async () => {
  const harness = await Harness.start({
    metrics: true,
    retry: { delays: [10], maxAttempts: 3, jitter: "none", breaker: { failures: 2, open: 60 } },
  })
  const { clock, posthorn, receiver } = harness
  await harness.endpoint()
  receiver.queue("/", 500, 503)
  await harness.send()
  await harness.published("delivery.attempt", 1)
  // The second failure opens the breaker; the attempt after it is the probe.
  await harness.attemptAfter(10_000)
  await harness.quiet()
  clock.advance(120_000)
  const [delivered] = await harness.published("delivery.delivered", 1)
  await posthorn.deliveries.retry(delivered!.webhook_delivery_id)
  await harness.published("delivery.delivered", 2)
  await harness.quiet()
  const series = await read(harness)
  const attempts = (kind: string, result: string, status_class: string) =>
    total(series, "posthorn_attempts_total", { kind, result, status_class })
  expect(attempts("first", "failed", "5xx")).toBe(1)
  expect(attempts("retry", "failed", "5xx")).toBe(1)
  expect(attempts("probe", "succeeded", "2xx")).toBe(1)
  expect(attempts("manual", "succeeded", "2xx")).toBe(1)
  expect(total(series, "posthorn_attempts_total")).toBe(receiver.requests.length)
  expect(total(series, "posthorn_retry_delay_seconds_sum")).toBeGreaterThanOrEqual(20)
  expect(total(series, "posthorn_retry_delay_seconds_count")).toBe(2)
  for (const to of ["opened", "half_open", "closed"])
    expect(total(series, "posthorn_breaker_transitions_total", { to })).toBe(1)
})

test("the delay of a first attempt leaves out the time in which an operator held the endpoint", async () => {
  const harness = await Harness.start({ metrics: true })
  const { clock, posthorn } = harness
  const endpoint = await harness.endpoint()
  await posthorn.endpoints.pause("acme", endpoint)
  await harness.send()
  await harness.quiet()
  clock.advance(3_600_000)
  await posthorn.endpoints.resume("acme", endpoint)
  await harness.published("delivery.delivered", 1)
  const series = await read(harness)
  expect(total(series, "posthorn_first_attempt_delay_seconds_count")).toBe(1)
  expect(total(series, "posthorn_first_attempt_delay_seconds_sum")).toBeLessThan(60)
  expect(total(series, "posthorn_delivery_duration_seconds_sum")).toBeGreaterThanOrEqual(3600)
})

test("retries that wait for the budget are counted as put off", async () => {
  const budget = { tokens: 10, retry: 5, timeout: 10, success: 1, perMinute: 0.1 }
  const harness = await Harness.start({
    metrics: true,
    retry: { delays: [1], maxAttempts: 5, jitter: "none", breaker: false, adaptive: false, budget },
  })
  await harness.endpoint()
  harness.receiver.always("/", 500)
  await harness.send()
  for (let n = 0; n < 4; n++) {
    await harness.quiet()
    harness.clock.advance(1000)
  }
  await harness.quiet()
  const series = await read(harness)
  expect(harness.receiver.requests.length).toBeLessThan(5)
  expect(total(series, "posthorn_retry_budget_deferred_total")).toBeGreaterThan(0)
})

test("queued retries that a timeout leaves without budget are counted as put off", async () => {
  const timeout = {
    outcome: { kind: "failure", cause: "timeout" },
    ...{ responseStatus: null, responseBody: null, responseTruncated: false, detail: null },
  } as const
  const transport = {
    send: async () => timeout,
    reachOf: () => null,
    forget() {},
    interrupt: () => 0,
    close: async () => {},
  }
  const budget = { tokens: 10, retry: 1, timeout: 10, success: 1, perMinute: 0.1 }
  const harness = await Harness.start({
    metrics: true,
    transport,
    retry: { delays: [1], maxAttempts: 5, jitter: "none", breaker: false, adaptive: false, budget },
  })
  await harness.endpoint({ concurrency: 1 })
  for (let n = 0; n < 4; n++) await harness.send()
  await harness.published("delivery.attempt", 4)
  await harness.quiet()
  harness.clock.advance(1000)
  await harness.published("delivery.attempt", 5)
  await harness.quiet()
  // Once by the fetch that follows, and at least once before by the lane's queue.
  expect(total(await read(harness), "posthorn_retry_budget_deferred_total")).toBeGreaterThan(1)
})

test("a measurement that throws is logged, and loses neither a slot nor a delivery", async () => {
  const fail = (): never => {
    throw new Error("a broken exporter")
  }
  const instruments = Object.fromEntries(Object.keys(NO_INSTRUMENTS).map((name) => [name, fail]))
  const harness = await Harness.start({ instruments: instruments as never, maxInFlight: 1 })
  await harness.endpoint()
  for (let n = 0; n < 3; n++) await harness.send()
  await harness.published("delivery.delivered", 3)
  expect(harness.receiver.requests).toHaveLength(3)
})

test("the gauges of the whole store are those of the last snapshot", async () => {
  const harness = await Harness.start({ metrics: true, retry: "gateway", monitorIntervalMs: 15_000 })
  await harness.endpoint({}, "/works")
  await harness.posthorn.endpoints.pause("acme", await harness.endpoint({}, "/paused"))
  harness.receiver.queue("/works", 500)
  await harness.send()
  await harness.published("delivery.attempt", 1)
  await harness.quiet()
  expect((await read(harness)).some(({ name }) => name === "posthorn_deliveries")).toBe(false)
  await harness.posthorn.monitor!.runOnce()
  const series = await read(harness)
  const deliveries = (state: string) => total(series, "posthorn_deliveries", { state })
  expect(["due", "scheduled", "retrying", "held"].map(deliveries)).toEqual([0, 0, 1, 1])
  expect(total(series, "posthorn_endpoints", { health: "paused" })).toBe(1)
  expect(total(series, "posthorn_endpoints")).toBe(2)
  expect(total(series, "posthorn_dead_letters")).toBe(0)
  expect(total(series, "posthorn_snapshot_timestamp_seconds")).toBe(harness.clock.now() / 1000)
})
