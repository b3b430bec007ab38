import { expect, test } from "vitest"
import { parsePolicy } from "./parse-policy.ts"
import type { PolicyInput } from "./policy.ts"
import { PRESETS } from "./presets.ts"
import { previewProtection } from "./protection-preview.ts"

const textsOf = (more: PolicyInput) => {
  const preview = previewProtection(parsePolicy({ delays: [5, 300], maxAttempts: 3, ...more }))
  return {
    breaker: preview.breaker.text,
    budget: preview.budget.text,
    adaptive: preview.adaptive.text,
    autoDisable: preview.autoDisable.text,
  }
}

test("the standard policy says what protects its endpoints, in words and numbers", () => {
  expect(previewProtection(PRESETS.standard)).toEqual({
    breaker: {
      settings: PRESETS.standard.breaker,
      text: "opens after 5 failures in a row, or when half of 20 attempts within 60 s fail; open 30 s, 60 s … at most 600 s; then one probe, then 10 requests a second, or 1.5 times the rate before",
    },
    budget: {
      settings: PRESETS.standard.budget,
      text: "100 tokens: a failed retry takes 5, a timeout 10; a success gives 1 back, a minute 5; without tokens retries wait",
    },
    adaptive: {
      settings: PRESETS.standard.adaptive,
      text: "at least 60 s after timeout, dns_error; 600 s after 401, 403, 404, tls_error; twice the delay after 429 and 503 without Retry-After; never above the longest delay, 86400 s",
    },
    autoDisable: {
      settings: PRESETS.standard.autoDisable,
      text: "without a success, warned after 24 h and 72 h, disabled after 5 days and 20 failures",
    },
  })
})

test("each says when it is off", () => {
  expect(textsOf({ breaker: false, budget: false, adaptive: false, autoDisable: false })).toEqual({
    breaker: "off: an endpoint that is down gets every request of the schedule",
    budget: "off: retries are limited by the schedule alone",
    adaptive: "off: the schedule alone sets the delays",
    autoDisable: "off: without a success, warned after 24 h and 72 h, and never disabled",
  })
  expect(previewProtection(PRESETS.gateway).breaker.settings).toBe(false)
})

test.each<[string, NonNullable<PolicyInput["breaker"]>, string]>([
  [
    "one that only reports",
    "report",
    "only reports that it would open after 5 failures in a row, or when half of",
  ],
  ["one with a constant open time", { open: 60, maxOpen: 60 }, "open 60 s; then one probe"],
  ["one that doubles once", { open: 60, maxOpen: 100 }, "open 60 s, then 100 s; then one probe"],
  ["a part of 12.5 %", { ratio: 0.125 }, "when 12.5 % of 20 attempts"],
  ["a first failure", { failures: 1, ramp: 1 }, "opens after 1 failure in a row"],
])("a breaker in words: %s", (_what, breaker, text) => {
  expect(textsOf({ breaker }).breaker).toContain(text)
})

test("warnings that would come after the disabling are left out", () => {
  const after = (hours: number) => textsOf({ autoDisable: { after: hours * 3600, failures: 1 } }).autoDisable
  expect(after(12)).toBe("without a success, disabled after 12 h and 1 failure")
  expect(after(48)).toBe("without a success, warned after 24 h, disabled after 2 days and 1 failure")
})

test("floors of one's own are grouped, and may be none", () => {
  expect(textsOf({ adaptive: { 404: 90, timeout: 30 } }).adaptive).toMatch(
    /^at least 30 s after timeout; 90 s after 404; /,
  )
  expect(textsOf({ adaptive: {} }).adaptive).toMatch(/^twice the delay after 429 .*, 300 s$/)
})
