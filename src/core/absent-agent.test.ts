import { expect, test } from "vitest"
import { givenUpAt, heldUntil } from "./absent-agent.ts"
import { PRESETS } from "./presets.ts"

const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000

test("a delivery is given up at the end of its age, or an hour after whatever held it beyond that", () => {
  const policy = PRESETS.relay
  expect(givenUpAt(1000, policy, 0)).toBe(1000 + 7 * DAY_MS)
  expect(givenUpAt(1000, policy, 6 * DAY_MS)).toBe(1000 + 7 * DAY_MS)
  expect(givenUpAt(1000, policy, 8 * DAY_MS)).toBe(8 * DAY_MS + HOUR_MS)
  expect(givenUpAt(null, policy, 0)).toBeNull()
  expect(givenUpAt(1000, { ...policy, maxAge: null }, 0)).toBeNull()
})

test("an endpoint was held until it was resumed, and its Retry-After and its breaker's open time were over", () => {
  const none = { resumedAt: null, holdUntil: null, protection: { until: null } }
  expect(heldUntil(none)).toBe(0)
  expect(heldUntil({ ...none, resumedAt: 5, holdUntil: 7 })).toBe(7)
  expect(heldUntil({ ...none, holdUntil: 7, protection: { until: 9 } })).toBe(9)
})
