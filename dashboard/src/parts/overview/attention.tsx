/** One sentence that says whether all is well, and a list of the problems. */
import { now } from "../../clock.ts"
import { plural } from "../../format.ts"
import type { Alert, Overview } from "../../types.ts"
import { Badge, Time } from "../../ui/basics.tsx"
import { problemsOf } from "./problems.ts"

const WEIGHTS = { bad: "urgent", warn: "attention", idle: "note", good: "", info: "" } as const
const NUMBERS = ["Nothing", "One thing", "Two things", "Three things", "Four things", "Five things"]

export function Attention({
  overview,
  alerts,
}: {
  readonly overview: Overview
  readonly alerts: readonly Alert[]
}) {
  const problems = problemsOf(overview, alerts, now.value)
  const urgent = problems.filter(({ tone }) => tone !== "idle")
  const worst = urgent[0]?.tone ?? "good"
  return (
    <section class={`attention ${worst}`} aria-label="Is all well?">
      <h2>{urgent.length === 0 ? allIsWell(overview) : sentenceOf(urgent.length)}</h2>
      {problems.length > 0 && (
        <ul>
          {problems.map(({ tone, text, href }) => (
            <li key={text}>
              <Badge tone={tone}>{WEIGHTS[tone]}</Badge> <a href={href}>{text}</a>
            </li>
          ))}
        </ul>
      )}
      {overview.surveyedAt !== null && (
        <p class="faint">
          Read <Time at={overview.surveyedAt} />.
        </p>
      )}
    </section>
  )
}

function sentenceOf(count: number): string {
  return `${NUMBERS[count] ?? `${count} things`} ${count === 1 ? "needs" : "need"} attention.`
}

function allIsWell({ endpoints, deliveries }: Overview): string {
  const count = Object.values(endpoints).reduce((sum, one) => sum + one, 0)
  if (count === 0) return "All is well, and there is no endpoint yet."
  const waiting = deliveries.due + deliveries.retrying
  return `All is well: ${plural(count, "endpoint")}, ${waiting === 0 ? "and nothing waits" : "and nothing is late"}.`
}
