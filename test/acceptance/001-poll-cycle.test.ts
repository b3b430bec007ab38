/** Seed 001, UC-0269: the poll every 5000 ms, and at most 5 deliveries in a cycle. */
import { expect, test } from "vitest"
import { Harness } from "../support/harness.ts"

/** Without a hint: only a poll finds it. */
const DUE_NOW = "UPDATE webhook_deliveries SET next_retry_at = NULL WHERE status = 'failed'"

/** How many requests have come once nothing more is going on. */
async function sent(harness: Harness, atLeast: number): Promise<number> {
  await harness.published("delivery.attempt", atLeast)
  await harness.quiet()
  return harness.receiver.requests.length
}

test("the poll interval is 5000 ms unless told", async () => {
  const harness = await Harness.start()
  harness.receiver.always("/", 500)
  await harness.endpoint({ retry: { delays: [3600], maxAttempts: 5 } })
  await harness.send()
  await harness.published("delivery.attempt", 1)
  for (const count of [2, 3]) {
    await harness.sql(DUE_NOW)
    expect(await harness.attemptAfter(5000)).toMatchObject({ attempt_count: count })
  }
})

test("pollIntervalMs sets another interval", async () => {
  const harness = await Harness.start({ pollIntervalMs: 700 })
  harness.receiver.always("/", 500)
  await harness.endpoint({ retry: { delays: [3600], maxAttempts: 5 } })
  await harness.send()
  await harness.published("delivery.attempt", 1)
  await harness.sql(DUE_NOW)
  await harness.attemptAfter(700)
})

test.each([
  ["one endpoint", 1],
  ["four endpoints", 4],
])("the first poll after a restart dispatches 5 of 12 past-due rows of %s, the next ones 5 and 2", async (_, endpoints) => {
  const harness = await Harness.start({ open: false })
  await harness.open({ deliver: false })
  for (let n = 1; n <= endpoints; n++) await harness.endpoint({ retry: "gateway" }, `/${n}`)
  for (let n = 1; n <= 12 / endpoints; n++) await harness.send({ n })
  await harness.restart({ deliver: true, maxPerPoll: 5 })
  expect(await sent(harness, 5)).toBe(5)
  harness.clock.advance(4999)
  expect(await sent(harness, 5)).toBe(5)
  harness.clock.advance(1)
  expect(await sent(harness, 10)).toBe(10)
  harness.clock.advance(5000)
  expect(await sent(harness, 12)).toBe(12)
  const ids = harness.receiver.requests.map(({ id, path }) => `${path} ${id}`)
  expect(new Set(ids).size).toBe(12)
})

test("with at most 5 per poll, deliveries that a send wakes count too: 12 sends go out as 5, 5 and 2", async () => {
  const harness = await Harness.start({ maxPerPoll: 5 })
  await harness.endpoint({ retry: "gateway" })
  await harness.quiet()
  for (let n = 1; n <= 12; n++) await harness.send({ n })
  expect(await sent(harness, 5)).toBe(5)
  harness.clock.advance(5000)
  expect(await sent(harness, 10)).toBe(10)
  harness.clock.advance(5000)
  expect(await sent(harness, 12)).toBe(12)
})

test("with at most 5 per poll, retries that come due between two polls count too", async () => {
  const harness = await Harness.start({ maxPerPoll: 5 })
  harness.receiver.queue("/", 500, 500, 500)
  await harness.endpoint({ retry: { delays: [1], maxAttempts: 2 } })
  await harness.quiet()
  for (let n = 1; n <= 3; n++) await harness.send({ n })
  expect(await sent(harness, 3)).toBe(3)
  harness.clock.advance(1000)
  expect(await sent(harness, 5)).toBe(5)
  harness.clock.advance(4000)
  expect(await sent(harness, 6)).toBe(6)
})

test("without maxPerPoll, 12 past-due rows are all dispatched in the first poll cycle", async () => {
  const harness = await Harness.start({ open: false })
  await harness.open({ deliver: false })
  await harness.endpoint({ retry: "gateway" })
  for (let n = 1; n <= 12; n++) await harness.send({ n })
  await harness.restart({ deliver: true })
  expect(await sent(harness, 12)).toBe(12)
})
