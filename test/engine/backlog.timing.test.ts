/** A backlog that cannot go must not cost those that can. Compared within one run, and run alone, since machines are noisy. */
import { expect, test } from "vitest"
import { Harness } from "../support/harness.ts"

test("100 000 rows waiting on a paused endpoint cost the others nothing", { timeout: 60_000 }, async () => {
  const harness = await Harness.start()
  const paused = await harness.endpoint({ eventTypes: ["flood"] }, "/paused")
  await harness.endpoint({ eventTypes: ["invoice.paid"] }, "/fine")
  await harness.posthorn.endpoints.pause("acme", paused)
  const flood = Array.from({ length: 1000 }, () => ({ eventType: "flood", payload: {} }))
  const timeOf100 = async () => {
    const before = harness.receiver.to("/fine").length
    const startedAt = performance.now()
    await Promise.all(Array.from({ length: 100 }, () => harness.send()))
    await harness.receiver.arrived("/fine", before + 100)
    return performance.now() - startedAt
  }
  const fastest = async () =>
    Math.min(await timeOf100(), await timeOf100(), await timeOf100(), await timeOf100(), await timeOf100())
  const without = await fastest()
  for (let i = 0; i < 100; i++) await harness.posthorn.sendBatch("acme", flood)
  expect(await harness.posthorn.deliveries.count({ endpoint: paused, status: "pending" })).toBe(100_000)
  const withFlood = await fastest()
  expect(withFlood).toBeLessThan(Math.max(without * 1.5, without + 15))
  expect(harness.receiver.to("/paused")).toHaveLength(0)
})
