/** Fault 18: 50 of 1 000 endpoints hang. The others' p99 stays within 1.2 times, and hung attempts end at the deadline. */
import { expect, test } from "vitest"
import { Harness } from "../support/harness.ts"

const ENDPOINTS = 1000
const HUNG = 50

test("the healthy ones do not notice", { timeout: 120_000 }, async () => {
  const harness = await Harness.start({ retry: { delays: [3600], maxAttempts: 5 } })
  await harness.endpoint({ eventTypes: ["warm-up"] })
  for (let i = 0; i < ENDPOINTS; i++) {
    const group = i < HUNG ? "hung" : "healthy"
    await harness.posthorn.endpoints.create("acme", {
      url: harness.receiver.url(`/${group}/${i}`),
      eventTypes: [group],
    })
    if (i < HUNG) harness.receiver.always(`/hung/${i}`, () => {})
  }
  let arrived = 0
  const healthyRound = async (alsoHung: boolean): Promise<number> => {
    if (alsoHung) await harness.posthorn.send("acme", { eventType: "hung", payload: {} })
    const before = harness.receiver.requests.length
    const startedAt = performance.now()
    await harness.posthorn.send("acme", { eventType: "healthy", payload: {} })
    arrived += ENDPOINTS - HUNG
    await harness.published("delivery.delivered", arrived)
    const latencies = harness.receiver.requests
      .slice(before)
      .filter(({ path }) => path.startsWith("/healthy"))
      .map(({ at }) => at - startedAt)
      .sort((a, b) => a - b)
    return latencies[Math.floor(latencies.length * 0.99)]!
  }
  for (let i = 0; i < 3; i++) await healthyRound(false)
  const alone: number[] = []
  for (let i = 0; i < 6; i++) alone.push(await healthyRound(false))
  // From here on 50 endpoints hang all the time, with one more message for each of them every round.
  const beside: number[] = []
  for (let i = 0; i < 6; i++) beside.push(await healthyRound(true))
  expect(Math.min(...beside)).toBeLessThan(Math.min(...alone) * 1.2)

  harness.clock.advance(30_000)
  const attempts = (await harness.published("delivery.attempt", arrived + HUNG)).filter(
    ({ success }) => !success,
  )
  expect(attempts.every(({ error, duration_ms }) => error === "timeout" && duration_ms === 30_000)).toBe(true)
})
