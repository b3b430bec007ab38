/** Fault 16: the wall clock is set by +1 h, −1 h, +1 year. No mass early firing, no starvation. For dates see test/engine/dates.test.ts. */
import { expect, test } from "vitest"
import { verifySignature } from "../../src/index.ts"
import { Harness } from "../support/harness.ts"

const HOUR = 3_600_000

test.each([
  HOUR,
  -HOUR,
  365 * 24 * HOUR,
])("a jump of %i ms neither fires retries early nor starves them", async (jump) => {
  const harness = await Harness.start()
  harness.receiver.always("/", 500)
  await harness.endpoint({ retry: { delays: [600], maxAttempts: 3, breaker: false } })
  for (let i = 0; i < 20; i++) await harness.send()
  await harness.published("delivery.attempt", 20)
  harness.clock.jumpWall(jump)
  // The steady clock gives way to the wall by at most 5 %, so ten minutes end between 9.5 and 10.6 minutes from here.
  harness.clock.advance(9.4 * 60_000)
  await harness.posthorn.engine!.pollOnce()
  expect(harness.receiver.requests).toHaveLength(20)
  harness.clock.advance(1.3 * 60_000)
  await harness.published("delivery.attempt", 40)
})

test("signatures carry the wall clock, whatever the schedule thinks", async () => {
  const harness = await Harness.start()
  const id = await harness.endpoint()
  harness.clock.jumpWall(HOUR)
  await harness.send()
  const [request] = await harness.receiver.arrived("/", 1)
  const { key } = await harness.posthorn.endpoints.secret("acme", id)
  expect(() =>
    verifySignature(key, request!.headers, request!.body, { nowMs: harness.clock.wallNow() }),
  ).not.toThrow()
})

test("new messages are sent at once after any jump", async () => {
  const harness = await Harness.start()
  await harness.endpoint()
  for (const jump of [HOUR, -2 * HOUR, 365 * 24 * HOUR, -365 * 24 * HOUR]) {
    harness.clock.jumpWall(jump)
    harness.clock.advance(2000)
    const before = harness.receiver.requests.length
    await harness.send()
    await harness.receiver.arrived("/", before + 1)
  }
})
