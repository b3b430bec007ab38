/** Fault 18: 50 of 1 000 endpoints hang. The others' p99 stays within 1.2 times, and hung attempts end at the deadline. */
import { expect, test } from "vitest"
import { Harness } from "../support/harness.ts"

const ENDPOINTS = 1000
const HUNG = 50
const ROUNDS = 8

test("healthy endpoints are as fast as without the hung ones", { timeout: 120_000 }, async () => {
  const harness = await Harness.start({ retry: { delays: [3600], maxAttempts: 5, breaker: false } })
  await harness.endpoint({ eventTypes: ["nothing"] })
  const create = async (i: number) => {
    const group = i < HUNG ? "hung" : "healthy"
    if (i < HUNG) harness.receiver.always(`/hung/${i}`, () => {})
    const url = harness.receiver.url(`/${group}/${i}`)
    await harness.posthorn.endpoints.create("acme", { url, eventTypes: [group] })
  }
  await Promise.all(Array.from({ length: ENDPOINTS }, (_, i) => create(i)))
  let delivered = 0
  const p99OfHealthy = async (): Promise<number> => {
    const before = harness.receiver.requests.length
    const startedAt = performance.now()
    await harness.posthorn.send("acme", { eventType: "healthy", payload: {} })
    delivered += ENDPOINTS - HUNG
    await harness.published("delivery.delivered", delivered)
    const latencies = harness.receiver.requests
      .slice(before)
      .map(({ at }) => at - startedAt)
      .sort((a, b) => a - b)
    return latencies[Math.floor(latencies.length * 0.99)]!
  }

  for (let i = 0; i < 3; i++) await p99OfHealthy()
  const alone: number[] = []
  const beside: number[] = []
  for (let round = 1; round <= ROUNDS; round++) {
    // By turns, so that both see the same machine; the best of each is the one that was least disturbed.
    alone.push(await p99OfHealthy())
    await harness.posthorn.send("acme", { eventType: "hung", payload: {} })
    for (let i = 0; i < HUNG; i++) await harness.receiver.arrived(`/hung/${i}`, round)
    beside.push(await p99OfHealthy())
    harness.clock.advance(30_000)
    const attempts = await harness.published("delivery.attempt", delivered + round * HUNG)
    const failed = attempts.filter(({ success }) => !success)
    expect(failed).toHaveLength(round * HUNG)
    expect(failed.every(({ error, duration_ms }) => error === "timeout" && duration_ms === 30_000)).toBe(true)
  }
  expect(Math.min(...beside)).toBeLessThan(Math.min(...alone) * 1.2)
})
