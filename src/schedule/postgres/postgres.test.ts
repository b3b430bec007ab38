import { LaneWorld } from "../../../test/support/lanes.ts"
import { scheduleConformance } from "../conformance.ts"
import { sharedScheduleConformance } from "./conformance.ts"

scheduleConformance("postgres", async () => {
  const world = await LaneWorld.create()
  const { schedule } = await world.worker()
  return {
    schedule,
    wake: (lanes) => world.wake(lanes, schedule),
    waiting: (lanes) => {
      world.waiting = [...lanes]
    },
  }
})

sharedScheduleConformance("postgres")
