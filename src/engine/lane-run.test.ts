/** What a run does with its lane when it has nothing to send. */
import { expect, test } from "vitest"
import { TestClock } from "../../test/support/clock.ts"
import type { LaneFetch, LaneWork } from "../store/store.ts"
import { type Crew, PollBudget } from "./crew.ts"
import { LaneRun } from "./lane-run.ts"
import { LaneState } from "./lane-state.ts"
import { ApplicationRates } from "./limits.ts"

/** A run of an open lane where nothing is due: what it tells the engine first, and which lanes were closed by then. */
async function runWithNothingDue(mayRest: boolean) {
  const closed: string[] = []
  const store = {
    fetch: async ([{ endpointId }]: [LaneFetch]): Promise<LaneWork[]> => [
      {
        endpointId,
        endpoint: null,
        lost: false,
        held: null,
        deleted: false,
        deliveries: [],
        nextDueAt: null,
        open: true,
      },
    ],
    closeLane: async (endpointId: string) => void closed.push(endpointId),
  }
  const crew = {
    store,
    clock: new TestClock(),
    budget: new PollBudget(null),
    settler: { flush() {} },
    laneConcurrency: 1,
    stopping: () => false,
    mayRest: () => mayRest,
  } as unknown as Crew
  const claim = { endpointId: "ep", appId: "app", token: 1 }
  const told = Promise.withResolvers<string>()
  const run = new LaneRun(crew, claim, new LaneState(claim.endpointId, new ApplicationRates()), {
    rests: (rests) => told.resolve(rests ? "rests" : "works"),
    finished: () => told.resolve("finished"),
  })
  run.start()
  return { told: await told.promise, closed }
}

test("a run with nothing to do keeps its lane open and rests", async () => {
  expect(await runWithNothingDue(true)).toEqual({ told: "rests", closed: [] })
})

test("where as many rest as may, it closes its lane and gives it back at once", async () => {
  expect(await runWithNothingDue(false)).toEqual({ told: "finished", closed: ["ep"] })
})
