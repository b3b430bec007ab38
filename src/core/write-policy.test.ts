import { expect, test } from "vitest"
import { parsePolicy } from "./parse-policy.ts"
import { PRESETS } from "./presets.ts"
import { writePolicy } from "./write-policy.ts"

test.each([
  ...Object.values(PRESETS),
  parsePolicy({ delays: { strategy: "exponential", base: 1, factor: 3 }, maxAge: 60 }),
  parsePolicy({ delays: { strategy: "linear", base: 5, cap: 50 }, maxAttempts: 3, retryAfter: 10 }),
  parsePolicy({ delays: { strategy: "fixed", base: 5 }, maxAttempts: 3, jitter: "full", retention: {} }),
])("a policy that is written down is read as the same: %#", (policy) => {
  expect(parsePolicy(JSON.parse(JSON.stringify(writePolicy(policy))))).toEqual(policy)
})
