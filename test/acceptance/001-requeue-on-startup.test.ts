/** Seed 001, UC-0269: re-queue undelivered webhooks on startup. */
import { expect, test } from "vitest"
import { Harness, type HarnessOptions } from "../support/harness.ts"

/** A stopped system whose file has so many rows, each of which failed once; the receiver is well again. */
async function stoppedWithFailedRows(count: number, options: HarnessOptions = {}): Promise<Harness> {
  const harness = await Harness.start(options)
  harness.receiver.always("/", 500)
  await harness.endpoint({ retry: "gateway" })
  for (let n = 1; n <= count; n++) await harness.send({ n })
  await harness.published("delivery.attempt", count)
  await harness.close()
  harness.receiver.always("/", 200)
  harness.receiver.clear()
  return harness
}

test("S1: a restart dispatches past-due failed rows in the first poll cycle", async () => {
  const harness = await stoppedWithFailedRows(3)
  await harness.sql("UPDATE webhook_deliveries SET next_retry_at = ?", harness.clock.now() - 60_000)
  await harness.open()
  // No time passes on the clock: whatever is sent is sent in the first cycle.
  await harness.published("delivery.delivered", 3)
  expect(harness.receiver.to("/")).toHaveLength(3)
  expect((await harness.rows()).map(({ status, attempt_count }) => [status, attempt_count])).toEqual([
    ["delivered", 2],
    ["delivered", 2],
    ["delivered", 2],
  ])
})

test("S1: rows that came due while the process was down are dispatched in the first poll cycle", async () => {
  const harness = await stoppedWithFailedRows(3)
  harness.clock.advance(600_000)
  await harness.open()
  await harness.published("delivery.delivered", 3)
  expect((await harness.rows()).every(({ delivered_at }) => delivered_at === harness.clock.now())).toBe(true)
})

test("pending rows that were never tried are dispatched in the first poll cycle as well", async () => {
  const harness = await Harness.start({ open: false })
  await harness.open({ deliver: false })
  await harness.endpoint({ retry: "gateway" })
  const id = await harness.send()
  await harness.restart({ deliver: true })
  await harness.published("delivery.delivered", 1)
  expect(harness.receiver.to("/").map((request) => request.id)).toEqual([id])
})

test("no row is changed at startup, before the first dispatch has its answer", async () => {
  const harness = await stoppedWithFailedRows(3)
  harness.clock.advance(30_000)
  const before = await harness.rows()
  const answer = harness.receiver.hold("/")
  await harness.open()
  await harness.receiver.arrived("/", 1)
  expect(await harness.rows()).toEqual(before)
  answer(200)
  await harness.published("delivery.delivered", 3)
})

test("future rows wait until their scheduled time", async () => {
  const harness = await stoppedWithFailedRows(2)
  const dueAt = harness.clock.now() + 30_000
  await harness.sql("UPDATE webhook_deliveries SET next_retry_at = ? WHERE seq = 2", dueAt + 10_000)
  const before = await harness.rows()
  await harness.open()
  await harness.quiet()
  expect(await harness.rows()).toEqual(before)
  const first = await harness.attemptAfter(30_000)
  const second = await harness.attemptAfter(10_000)
  expect([first, second].map(({ webhook_delivery_id }) => webhook_delivery_id)).toEqual(
    before.map(({ id }) => id),
  )
})

test("S2 and F1: a restart does not re-queue dead rows", async () => {
  const harness = await Harness.start()
  harness.receiver.always("/", 500)
  await harness.endpoint({ retry: "gateway" })
  for (let n = 1; n <= 2; n++) await harness.send({ n }, { maxAttempts: 1 })
  await harness.published("delivery.dead", 2)
  const before = await harness.rows()
  expect(before.map(({ status }) => status)).toEqual(["dead", "dead"])
  await harness.restart()
  await harness.poll()
  await harness.quiet()
  harness.clock.advance(86_400_000)
  await harness.poll()
  await harness.quiet()
  expect(harness.receiver.to("/")).toHaveLength(2)
  expect(await harness.rows()).toEqual(before)
})

test("F1: a dead row that an operator reset while the process was down is dispatched at startup", async () => {
  const harness = await Harness.start()
  harness.receiver.queue("/", 500, 500)
  await harness.endpoint({ retry: "gateway" })
  const first = await harness.send({ n: 1 }, { maxAttempts: 1 })
  await harness.send({ n: 2 }, { maxAttempts: 1 })
  await harness.published("delivery.dead", 2)
  await harness.close()
  await harness.sql(
    "UPDATE webhook_deliveries SET status = 'pending', attempt_count = 0 WHERE message_id = ?",
    first,
  )
  await harness.open()
  await harness.published("delivery.delivered", 1)
  await harness.quiet()
  expect((await harness.rows()).map(({ status }) => status)).toEqual(["delivered", "dead"])
})

test("A1: with no undelivered rows there is no dispatch, and the poll loop runs", async () => {
  const harness = await stoppedWithFailedRows(1)
  await harness.sql("UPDATE webhook_deliveries SET status = 'dead', next_retry_at = NULL")
  await harness.open()
  await harness.quiet()
  expect(harness.receiver.to("/")).toHaveLength(0)
  await harness.sql("UPDATE webhook_deliveries SET status = 'pending', attempt_count = 0")
  harness.clock.advance(5000)
  await harness.published("delivery.delivered", 1)
})
