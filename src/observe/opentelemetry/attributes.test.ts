/** The page for operators has every attribute, event and outcome of spans. */
import { readFileSync } from "node:fs"
import { expect, test } from "vitest"
import { ATTEMPT_ATTRIBUTES, ATTEMPT_OUTCOMES, PHASE_EVENTS, PUBLISH_ATTRIBUTES } from "./attributes.ts"

const PAGE = readFileSync(new URL("../../../docs/observability.md", import.meta.url), "utf8")

/** The first column of the table with this heading. */
function namesIn(heading: string): string[] {
  const [, table = ""] = PAGE.split(`| ${heading} |`)
  const [rows = ""] = table.split("\n\n")
  return [...rows.matchAll(/^\| `([\w.]+)` \|/gm)].map(([, name]) => name!)
}

test("docs/observability.md has every attribute of spans, and no other", () => {
  expect(namesIn("attribute of `publish webhooks`")).toEqual([...PUBLISH_ATTRIBUTES])
  expect(namesIn("attribute of an attempt")).toEqual([...ATTEMPT_ATTRIBUTES])
})

test("docs/observability.md has every event and every outcome of an attempt's span", () => {
  const events = /^Events of an attempt's span: (.*)$/m.exec(PAGE)![1]!
  for (const event of Object.values(PHASE_EVENTS)) expect(events).toContain(`\`${event}\``)
  const outcomes = /^\| `posthorn.attempt.outcome` \| (.*) \|$/m.exec(PAGE)![1]!
  expect([...outcomes.matchAll(/`(\w+)`/g)].map(([, name]) => name)).toEqual([...ATTEMPT_OUTCOMES])
})
