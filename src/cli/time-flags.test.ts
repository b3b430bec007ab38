/** Times and spans as people type them. */
import { expect, test } from "vitest"
import { InvalidValue } from "../core/invalid-value.ts"
import { moment, span, spanText } from "./time-flags.ts"

const NOW = Date.parse("2026-03-10T12:00:00Z")
const since = moment("", "before", {}, () => NOW)

test.each([
  ["90", 90],
  ["90s", 90],
  ["15m", 900],
  ["2h", 7200],
  ["7d", 604_800],
  ["1w", 604_800],
])("%s is %d seconds", (typed, seconds) => expect(span("").read([typed])).toBe(seconds))

test.each([
  ["2h", "2026-03-10T10:00:00.000Z"],
  ["2026-03-01", "2026-03-01T00:00:00.000Z"],
  ["2026-03-01T12:00:00Z", "2026-03-01T12:00:00.000Z"],
  ["2026-03-01T12:00:00+02:00", "2026-03-01T10:00:00.000Z"],
])("--since %s is %s", (typed, time) => expect(since.read([typed])).toBe(time))

test("a span lies ahead where it is said so", () => {
  expect(moment("", "after", {}, () => NOW).read(["1d"])).toBe("2026-03-11T12:00:00.000Z")
})

test.each(["yesterday", "2h30m", "-5m", "", "2026-13-01", "12/31/2026"])("%j is no time", (typed) =>
  expect(() => since.read([typed])).toThrow(InvalidValue))

test.each([
  [0, "0s"],
  [0.5, "0.5s"],
  [59, "59s"],
  [90, "1m 30s"],
  [3600, "1h"],
  [93_784, "1d 2h"],
  [1_209_600, "14d"],
])("%d seconds are shown as %s", (seconds, text) => expect(spanText(seconds)).toBe(text))
