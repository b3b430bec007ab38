import { readFileSync } from "node:fs"
import { expect, test } from "vitest"
import { defaultsOf, definitionOf, parseRule, RULE_IDS, requireRule } from "./rules.ts"

test("a rule without settings has its defaults", () => {
  expect(defaultsOf("retry-share")).toEqual({
    enabled: true,
    severity: "warning",
    channels: null,
    thresholds: { share: 0.3, attempts: 100 },
  })
})

test.each<[string, unknown, string]>([
  ["an unknown field", { limit: 5 }, "rules.dead-letters-count.limit"],
  ["a threshold of another rule", { seconds: 5 }, "rules.dead-letters-count.seconds"],
  ["a text for a number", { count: "many" }, "rules.dead-letters-count.count"],
  ["a fraction", { count: 1.5 }, "rules.dead-letters-count.count"],
  ["nothing", { count: 0 }, "rules.dead-letters-count.count"],
  ["not a number", { count: Number.NaN }, "rules.dead-letters-count.count"],
  ["a severity that does not exist", { severity: "fatal" }, "rules.dead-letters-count.severity"],
  ["a text for a list of channels", { channels: "ops" }, "rules.dead-letters-count.channels"],
  ["no channels", { channels: [] }, "rules.dead-letters-count.channels"],
  ["a text for a truth value", { enabled: "no" }, "rules.dead-letters-count.enabled"],
  ["a list", [], "rules.dead-letters-count"],
])("%s is refused with the field", (_name, input, field) => {
  const parse = () => parseRule("dead-letters-count", input, "rules.dead-letters-count")
  expect(parse).toThrow(expect.objectContaining({ code: "invalid_input", field }))
})

test("a misspelt rule is refused with the rule that was meant", () => {
  expect(() => requireRule("oldest-du")).toThrow(/did you mean oldest-due\?/)
  expect(() => requireRule("toString")).toThrow(/must be one of dead-letter,/)
})

test.each(RULE_IDS)("the thresholds of %s accept their defaults and both ends of their ranges", (id) => {
  for (const [name, { fallback, least, most }] of Object.entries(definitionOf(id).thresholds))
    for (const value of [fallback, least, most])
      expect(parseRule(id, { [name]: value }, "").thresholds[name]).toBe(value)
})

test("docs/alerts.md has every rule with its severity and its thresholds", () => {
  const page = readFileSync(new URL("../../docs/alerts.md", import.meta.url), "utf8")
  const rows = [...page.matchAll(/^\| `([a-z-]+)` \| .+ \| (critical|warning|info) \| (.+) \|$/gm)]
  const written = rows.map(([, id, severity, thresholds]) => [id, severity, thresholds])
  const inCode = RULE_IDS.map((id) => {
    const { severity, thresholds } = definitionOf(id)
    const texts = Object.entries(thresholds).map(([name, { fallback }]) => `\`${name}\` ${fallback}`)
    return [id, severity, texts.join(", ")]
  })
  expect(written).toEqual(inCode)
})
