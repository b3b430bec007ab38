/** The schedule of the one process that owns a file. */
import { expect, test } from "vitest"
import { MemorySchedule } from "../../src/schedule/memory.ts"
import type { Store } from "../../src/store/store.ts"
import { Harness } from "../support/harness.ts"

test("a busy lane with a retry far ahead does not pile up alarms", async () => {
  const schedule = new MemorySchedule({ scanLanes: async () => [], getEndpoints: async () => [] }, 0)
  schedule.serve({ transports: ["http"], endpoints: [] })
  const tomorrow = 86_400_000
  const lane = { endpointId: "a", appId: "app", transport: "http" }
  schedule.wake([{ ...lane, dueAt: 0 }])
  for (let i = 0; i < 20_000; i++) {
    const [claim] = await schedule.claim(1, i)
    schedule.wake([{ ...lane, dueAt: i }])
    await schedule.release(claim!, tomorrow, i)
    if (i % 2 === 0) schedule.wake([{ ...lane, dueAt: tomorrow - i }])
  }
  expect(schedule.queueEntries).toBeLessThan(2000)
})

test("of the polls that come while another looks, one is made behind it, and sees what that one came too early for", async () => {
  let looks = 0
  let isHeld = false
  const looked = Promise.withResolvers<void>()
  const told = Promise.withResolvers<void>()
  /** While it is held, what was read is told later. */
  const wrapStore = (store: Store): Store => ({
    ...store,
    async scanLanes(after, limit) {
      const lanes = await store.scanLanes(after, limit)
      looks++
      if (isHeld) {
        looked.resolve()
        await told.promise
      }
      return lanes
    },
  })
  const harness = await Harness.start({ wrapStore, pollIntervalMs: 700 })
  harness.receiver.queue("/", 500)
  await harness.endpoint({ retry: { delays: [3600], maxAttempts: 5 } })
  await harness.send()
  await harness.published("delivery.attempt", 1)
  await harness.quiet()
  looks = 0
  isHeld = true
  harness.clock.advance(700)
  await looked.promise
  await harness.sql("UPDATE webhook_deliveries SET next_retry_at = NULL")
  harness.clock.advance(2 * 700)
  told.resolve()
  await harness.quiet()
  expect(looks).toBe(2)
  expect(harness.receiver.to("/")).toHaveLength(2)
})
