import { expect, test } from "vitest"
import type { Endpoint, LaneWake } from "../store/store.ts"
import { HTTP, lane, scheduleConformance } from "./conformance.ts"
import { MemorySchedule } from "./memory.ts"

function make() {
  let found: readonly LaneWake[] = []
  const endpoints = new Map<string, Endpoint>()
  const store = {
    scanLanes: async (after: string | null, limit: number) =>
      found.filter(({ endpointId }) => endpointId > (after ?? "")).slice(0, limit),
    getEndpoints: async (ids: readonly string[]) =>
      ids.map((id) => endpoints.get(id)).filter((endpoint) => endpoint !== undefined),
  }
  const schedule = new MemorySchedule(store, 0)
  schedule.serve(HTTP)
  return {
    schedule,
    wake: async (lanes: readonly LaneWake[]) => schedule.wake(lanes),
    waiting: (lanes: readonly LaneWake[]) => {
      found = lanes
    },
    changeUrl: async (id: string, url: string) => {
      endpoints.set(id, { id, url } as Endpoint)
      schedule.wake([{ endpointId: id, appId: "app", dueAt: 0 }])
    },
  }
}

scheduleConformance("memory", async () => make())

test("a hundred thousand lanes are offered in order of their due times", async () => {
  const { schedule } = make()
  // Due times rotate through the applications: round-robin by application is then the order of the due times.
  const due = Array.from({ length: 100_000 }, (_, i) => (i * 7919) % 100_000)
  schedule.wake(due.map((dueAt, i) => lane(`ep-${i}`, dueAt, `app-${i % 10}`)))
  const offered = await schedule.claim(100_000, 49_999)
  expect(offered).toHaveLength(50_000)
  const times = offered.map(({ endpointId }) => due[Number(endpointId.slice(3))])
  expect(times.findIndex((time, i) => time !== i)).toBe(-1)
  expect(schedule.nextDueAt()).toBe(50_000)
})
