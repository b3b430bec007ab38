import { expect, test } from "vitest"
import { TestClock } from "../../test/support/clock.ts"
import { LogLines } from "../../test/support/log-lines.ts"
import { EventLog } from "../observe/event-log.ts"
import { EventStream } from "../observe/event-stream.ts"
import type { ScheduleListener } from "../schedule/schedule.ts"
import { Engine } from "./engine.ts"
import type { EngineParts } from "./engine-parts.ts"

test("a lease that ran out is logged", async () => {
  const log = new LogLines()
  let listener: ScheduleListener | null = null
  const parts = {
    store: {
      changedOutside: async () => false,
      purge: async () => 0,
      listRunningTasks: async () => [],
    },
    schedule: {
      serve: () => {},
      start: async (given: ScheduleListener) => {
        listener = given
      },
      claim: async () => [],
      nextDueAt: () => null,
      hasWaiting: () => false,
      sweep: async () => {},
      abandon: () => {},
    },
    transport: { interrupt: () => 0 },
    clock: new TestClock(),
    random: () => 0.5,
    logger: log.logger,
    events: new EventStream(log.logger, [new EventLog(log.logger)]),
  } as unknown as EngineParts
  const engine = new Engine(parts, {
    pollIntervalMs: 1000,
    maxPerPoll: null,
    maintenanceIntervalMs: 1000,
    maxInFlight: 1,
    laneConcurrency: 1,
    userAgent: "",
    sendTraceparent: false,
    ownOutage: null,
  })
  await engine.start()
  listener!.lost()
  expect(log.about("The lease ran out")).toMatchObject([{ level: 40, lanes: 0 }])
  await engine.whenIdle()
  engine.abandon()
})
