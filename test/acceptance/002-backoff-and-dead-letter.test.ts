/** Seed 002, work order 05: backoff, status transitions and dead-letter processing. */
import { pino } from "pino"
import { expect, test } from "vitest"
import { delayMs } from "../../src/core/backoff.ts"
import { PRESETS } from "../../src/index.ts"
import { Harness } from "../support/harness.ts"
import { Receiver } from "../support/receiver.ts"

const DAY_MS = 86_400_000
const DELAYS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3600, 3600, 3600]

test("retry intervals: 1s, 2s, 4s ... max 1 hour", async () => {
  const harness = await Harness.start()
  harness.receiver.always("/", 500)
  await harness.endpoint({ retry: "relay" })
  await harness.send()
  await harness.published("delivery.attempt", 1)
  for (const [i, seconds] of DELAYS.entries()) {
    expect((await harness.rows())[0]).toMatchObject({
      status: "failed",
      attempt_count: i + 1,
      next_retry_at: harness.clock.now() + seconds * 1000,
    })
    await harness.attemptAfter(seconds * 1000)
  }
})

test("the delay does not overflow, not even at attempt 1000", async () => {
  const delays = [1000, 1001, 2 ** 31, Number.MAX_SAFE_INTEGER].map((n) =>
    delayMs(PRESETS.relay, n, () => 0.5),
  )
  expect(delays).toEqual([3_600_000, 3_600_000, 3_600_000, 3_600_000])

  const harness = await Harness.start()
  harness.receiver.always("/", 500)
  await harness.endpoint({ retry: "relay" })
  await harness.send()
  await harness.published("delivery.attempt", 1)
  await harness.close()
  await harness.sql("UPDATE webhook_deliveries SET attempt_count = 999, next_retry_at = NULL")
  await harness.open()
  await harness.published("delivery.attempt", 2)
  expect((await harness.rows())[0]).toMatchObject({
    status: "failed",
    attempt_count: 1000,
    next_retry_at: harness.clock.now() + 3_600_000,
  })
})

test("pending → delivered on 2xx", async () => {
  const harness = await Harness.start()
  harness.receiver.always("/", 202)
  await harness.endpoint({ retry: "relay" })
  await harness.send()
  await harness.published("delivery.delivered", 1)
  expect((await harness.rows())[0]).toMatchObject({
    status: "delivered",
    attempt_count: 1,
    delivered_at: harness.clock.now(),
  })
})

test("a failed delivery (5xx, or no answer at all) retries after backoff", async () => {
  const harness = await Harness.start()
  const gone = await Receiver.start()
  const nobody = gone.url()
  await gone.close()
  for (const status of [500, 502, 503, 599]) {
    harness.receiver.queue(`/${status}`, status)
    await harness.endpoint({ retry: "relay" }, `/${status}`)
  }
  await harness.endpoint({ retry: "relay", url: nobody })
  await harness.send()
  await harness.published("delivery.attempt", 5)
  const retried = { status: "failed", attempt_count: 1, next_retry_at: harness.clock.now() + 1000 }
  expect(await harness.rows()).toMatchObject([retried, retried, retried, retried, retried])
  harness.clock.advance(1000)
  await harness.published("delivery.delivered", 4)
})

test("a 4xx response stops retrying immediately", async () => {
  const harness = await Harness.start()
  const statuses = [400, 401, 404, 408, 410, 422, 425, 429, 499]
  for (const status of statuses) {
    harness.receiver.always(`/${status}`, status)
    await harness.endpoint({ retry: "relay" }, `/${status}`)
  }
  await harness.send()
  const dead = await harness.published("delivery.dead", statuses.length)
  expect(dead.every(({ reason }) => reason === "rejected")).toBe(true)
  expect(await harness.sql("SELECT * FROM webhook_deliveries ORDER BY error_detail")).toMatchObject(
    statuses.map((status) => ({
      status: "dead",
      dead_reason: "rejected",
      attempt_count: 1,
      next_retry_at: null,
      error_detail: `HTTP ${status}: answer ${status}`,
    })),
  )
  harness.clock.advance(3_600_000)
  await harness.poll()
  await harness.quiet()
  expect(harness.receiver.requests).toHaveLength(statuses.length)
})

test("webhooks pending for 7 days become dead letters, which triggers a notification", async () => {
  const harness = await Harness.start()
  harness.receiver.always("/", 500)
  const endpointId = await harness.endpoint({ retry: "relay" })
  const messageId = await harness.send()
  const receivedAt = harness.clock.now()
  let [attempt] = await harness.published("delivery.attempt", 1)
  for (let n = 2; attempt!.next_retry_at! < receivedAt + 7 * DAY_MS; n++) {
    harness.clock.advance(attempt!.next_retry_at! - harness.clock.now())
    attempt = (await harness.published("delivery.attempt", n)).at(-1)
  }
  expect(attempt?.next_retry_at).toBe(receivedAt + 7 * DAY_MS)
  const attempts = attempt!.attempt_count
  // 12 attempts in the first 4095 seconds, then one an hour.
  expect(attempts).toBe(12 + Math.ceil((7 * 86_400 - 4095) / 3600))

  harness.clock.advance(receivedAt + 7 * DAY_MS - 1 - harness.clock.now())
  await harness.quiet()
  expect((await harness.rows())[0]).toMatchObject({ status: "failed", attempt_count: attempts })
  harness.clock.advance(1)
  expect(await harness.published("delivery.dead", 1)).toMatchObject([
    {
      webhook_id: endpointId,
      message_id: messageId,
      reason: "expired",
      last_error: "HTTP 500: answer 500",
      at: receivedAt + 7 * DAY_MS,
    },
  ])
  expect((await harness.rows())[0]).toMatchObject({
    status: "dead",
    dead_reason: "expired",
    attempt_count: attempts,
    next_retry_at: null,
    error_detail: "HTTP 500: answer 500",
  })
  expect(harness.receiver.to("/")).toHaveLength(attempts)
})

test("retry attempts are logged with webhook id and attempt number", async () => {
  const lines: Record<string, unknown>[] = []
  const logger = pino({ level: "info" }, { write: (line: string) => void lines.push(JSON.parse(line)) })
  const harness = await Harness.start({ logger })
  harness.receiver.queue("/", 500, 500)
  const endpointId = await harness.endpoint({ retry: "relay" })
  await harness.send()
  await harness.published("delivery.attempt", 1)
  await harness.attemptAfter(1000)
  await harness.attemptAfter(2000)
  await harness.quiet()
  const [row] = await harness.rows()
  const retries = lines.filter(({ msg }) => msg === "Webhook delivery scheduled for retry")
  expect(retries).toMatchObject([
    { delivery_id: row?.id, endpoint_id: endpointId, attempts: 1, next_attempt: 2, delay_seconds: 1 },
    { delivery_id: row?.id, endpoint_id: endpointId, attempts: 2, next_attempt: 3, delay_seconds: 2 },
  ])
})
