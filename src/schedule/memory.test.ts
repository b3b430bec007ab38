import { expect, test } from "vitest"
import type { LaneWake } from "../store/store.ts"
import { scheduleConformance } from "./conformance.ts"
import { MemorySchedule } from "./memory.ts"

function make() {
  let found: readonly LaneWake[] = []
  const scanLanes = async (after: string | null, limit: number) =>
    found.filter(({ endpointId }) => endpointId > (after ?? "")).slice(0, limit)
  const schedule = new MemorySchedule({ scanLanes }, 0)
  return {
    schedule,
    wake: async (lanes: readonly LaneWake[]) => schedule.wake(lanes),
    waiting: (lanes: readonly LaneWake[]) => {
      found = lanes
    },
  }
}

scheduleConformance("memory", async () => make())

test("a hundred thousand lanes are offered in order of their due times", async () => {
  const { schedule } = make()
  // Due times rotate through the applications: round-robin by application is then the order of the due times.
  const due = Array.from({ length: 100_000 }, (_, i) => (i * 7919) % 100_000)
  schedule.wake(due.map((dueAt, i) => ({ endpointId: `ep-${i}`, appId: `app-${i % 10}`, dueAt })))
  const offered = await schedule.claim(100_000, 49_999)
  expect(offered).toHaveLength(50_000)
  const times = offered.map(({ endpointId }) => due[Number(endpointId.slice(3))])
  expect(times.findIndex((time, i) => time !== i)).toBe(-1)
  expect(schedule.nextDueAt()).toBe(50_000)
})
