/** Seed 003, DEC-3: a RetryConfig for each endpoint, in its words: max_retries, base_delay, max_delay, strategy. */
import { expect, test } from "vitest"
import { Harness } from "../support/harness.ts"

/** The seconds between a failure and its retry, for every failure. */
async function delays(harness: Harness, attempts: number): Promise<(number | null)[]> {
  for (let n = 1; n < attempts; n++) {
    const latest = (await harness.published("delivery.attempt", n)).at(-1)!
    await harness.attemptAfter(latest.next_retry_at! - harness.clock.now())
  }
  const all = await harness.published("delivery.attempt", attempts)
  return all.map(({ next_retry_at, at }) => next_retry_at && (next_retry_at - at) / 1000)
}

async function startFailing(retry: object): Promise<{ harness: Harness; endpointId: string }> {
  const harness = await Harness.start()
  harness.receiver.always("/", 500)
  const endpointId = await harness.endpoint({ retry })
  await harness.send()
  return { harness, endpointId }
}

test.each([
  ["exponential", [10, 20, 40, 60, null]],
  ["linear", [10, 20, 30, 40, null]],
  ["fixed", [10, 10, 10, 10, null]],
] as const)("a RetryConfig with strategy %s is obeyed: max_retries 4, base_delay 10, max_delay 60", async (strategy, expected) => {
  const { harness } = await startFailing({ max_retries: 4, base_delay: 10, max_delay: 60, strategy })
  expect(await delays(harness, 5)).toEqual(expected)
  expect((await harness.rows())[0]).toMatchObject({
    status: "dead",
    dead_reason: "exhausted",
    attempt_count: 5,
  })
})

test("a RetryConfig is created, read, changed and taken away again with its endpoint", async () => {
  const { harness, endpointId } = await startFailing({ max_retries: 4, base_delay: 10, max_delay: 60 })
  const { endpoints } = harness.posthorn
  const read = async () => (await endpoints.get("acme", endpointId)).policy
  expect(await read()).toMatchObject({
    maxAttempts: 5,
    delays: { strategy: "exponential", base: 10, factor: 2, cap: 60 },
  })
  await endpoints.update("acme", endpointId, { retry: { max_retries: 0, base_delay: 7, strategy: "fixed" } })
  expect(await read()).toMatchObject({ maxAttempts: 1, delays: { strategy: "fixed", base: 7 } })
  await endpoints.update("acme", endpointId, { retry: "enterprise" })
  expect(await read()).toMatchObject({ maxAttempts: 6, delays: { base: 1, cap: 3600 }, jitter: [0.5, 1.5] })
  await endpoints.update("acme", endpointId, { retry: null })
  expect(await read()).toMatchObject({ maxAttempts: 10, jitter: [0.8, 1.2] })
})

test("a changed RetryConfig applies from the next settle; a due time that is written stays", async () => {
  const { harness, endpointId } = await startFailing({ max_retries: 5, base_delay: 10, strategy: "fixed" })
  await harness.published("delivery.attempt", 1)
  const dueAt = harness.clock.now() + 10_000
  await harness.posthorn.endpoints.update("acme", endpointId, {
    retry: { max_retries: 2, base_delay: 100, strategy: "fixed" },
  })
  await harness.quiet()
  expect((await harness.rows())[0]).toMatchObject({ next_retry_at: dueAt })
  const second = await harness.attemptAfter(10_000)
  expect(second).toMatchObject({ attempt_count: 2, next_retry_at: dueAt + 100_000 })
  await harness.attemptAfter(100_000)
  expect(await harness.published("delivery.dead", 1)).toMatchObject([
    { reason: "exhausted", attempt_count: 3 },
  ])
})

test("endpoints with different RetryConfigs are retried each in its own way", async () => {
  const harness = await Harness.start()
  harness.receiver.always("/payments", 500)
  harness.receiver.always("/analytics", 500)
  await harness.endpoint({ retry: { max_retries: 8, base_delay: 2, strategy: "fixed" } }, "/payments")
  await harness.endpoint({ retry: { max_retries: 1, base_delay: 3, strategy: "fixed" } }, "/analytics")
  await harness.send()
  await harness.published("delivery.attempt", 2)
  await harness.attemptAfter(2000)
  await harness.attemptAfter(1000)
  await harness.published("delivery.dead", 1)
  const rows = await harness.sql("SELECT status, attempt_count FROM webhook_deliveries ORDER BY target_url")
  expect(rows).toEqual([
    { status: "dead", attempt_count: 2 },
    { status: "failed", attempt_count: 2 },
  ])
})

test("validation refuses a bad RetryConfig, names the field and changes nothing", async () => {
  const harness = await Harness.start()
  const endpointId = await harness.endpoint({ retry: "enterprise" })
  const bad: [field: string, retry: object][] = [
    ["retry.max_retries", { max_retries: -1, base_delay: 1 }],
    ["retry.max_retries", { max_retries: 2.5, base_delay: 1 }],
    ["retry.base_delay", { max_retries: 3, base_delay: -1 }],
    ["retry.max_delay", { max_retries: 3, base_delay: 10, max_delay: 5 }],
    ["retry.strategy", { max_retries: 3, base_delay: 1, strategy: "random" }],
    ["retry.maxAttempts", { base_delay: 1, max_delay: 60 }],
    ["retry.maxRetries", { maxRetries: 3, base_delay: 1 }],
  ]
  for (const [field, retry] of bad) {
    const update = harness.posthorn.endpoints.update("acme", endpointId, { retry })
    await expect(update).rejects.toMatchObject({ name: "PosthornError", code: "invalid_input", field })
  }
  expect(await harness.posthorn.endpoints.get("acme", endpointId)).toMatchObject({ retry: "enterprise" })
})

test("is_retryable: a RetryConfig gives up at a 4xx and retries a 5xx", async () => {
  const harness = await Harness.start()
  harness.receiver.always("/missing", 404)
  harness.receiver.always("/broken", 503)
  const retry = { max_retries: 5, base_delay: 10 }
  await harness.endpoint({ retry }, "/missing")
  await harness.endpoint({ retry }, "/broken")
  await harness.send()
  await harness.published("delivery.attempt", 2)
  const rows = await harness.sql("SELECT status, dead_reason FROM webhook_deliveries ORDER BY target_url")
  expect(rows).toEqual([
    { status: "failed", dead_reason: null },
    { status: "dead", dead_reason: "rejected" },
  ])
})
