/** The schedule of the one process that owns a file. */
import { expect, test } from "vitest"
import { MemorySchedule } from "../../src/schedule/memory.ts"

test("a busy lane with a retry far ahead does not pile up alarms", async () => {
  const schedule = new MemorySchedule({ scanLanes: async () => [] }, 0)
  const tomorrow = 86_400_000
  schedule.wake([{ endpointId: "a", appId: "app", dueAt: 0 }])
  for (let i = 0; i < 20_000; i++) {
    const [claim] = await schedule.claim(1, i)
    schedule.wake([{ endpointId: "a", appId: "app", dueAt: i }])
    await schedule.release(claim!, tomorrow, i)
    if (i % 2 === 0) schedule.wake([{ endpointId: "a", appId: "app", dueAt: tomorrow - i }])
  }
  expect(schedule.alarms).toBeLessThan(2000)
})
