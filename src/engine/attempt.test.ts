import { expect, test } from "vitest"
import { TestClock } from "../../test/support/clock.ts"
import { createLogger } from "../observe/log.ts"
import type { ClaimedDelivery } from "../store/store.ts"
import { attempt } from "./attempt.ts"
import type { LaneDependencies } from "./lane-dependencies.ts"
import { LaneState } from "./lane-state.ts"
import { ApplicationRates } from "./limits.ts"

test.each([
  "sendableSince",
  "heldUntil",
] as const)("a gate whose %s fails is a fault of our own", async (name) => {
  const clock = new TestClock()
  const lane = new LaneState("app", new ApplicationRates(), 1, Math.random)
  lane.gate[name] = () => {
    throw new Error("a mistake of ours")
  }
  const deps = { clock, logger: createLogger("silent") } as unknown as LaneDependencies
  const delivery = { id: "dlv", manual: false, attemptCount: 0, ageFrom: null } as ClaimedDelivery
  expect(await attempt(deps, lane, delivery, false)).toMatchObject({
    outcome: { kind: "fault", detail: "a mistake of ours" },
    kind: "first",
    dueAt: clock.now(),
    span: null,
  })
})
